"""The signature of a call of NumPy matrices as LLVM IR: fields of array objects become the words of a key.

The key of a call without keywords, or with an `out` that can be written straight, is bytes. With other keywords it is a
tuple: bytes, in which arrays among them have words too, then names and values, for an array its dtype; for a pair of
scales two values, where all numbers are alike. What is not spelled here goes to Python.
"""

from __future__ import annotations

import sys

from tilewise.algebra.modular import Modular
from tilewise.algebra.semiring import Semiring
from tilewise.arrays.numpy_fields_text import (
    OWNDATA,
    WORDS_OF_AN_ARRAY,
    WRITEABLE,
    array_text,
    field,
    matrix_text,
    owner_text,
    vouched_text,
    written,
)
from tilewise.core.options import ARRAYS, NAMES, UNPREPARED_ON_HOST
from tilewise.system.builtin_call import CALL_READ

WORDS = 10  # two dtypes, two shapes, two pairs of strides
WORDS_WITH_OUT = 15
MOST_ARRAYS = len(ARRAYS) + 2  # scales may be two
MOST = 8  # keywords; a call with more is signed by Python
OUT = sys.intern("out")
# names are compared by their addresses: they stay
KEPT_NAMES = tuple(sys.intern(name) for name in sorted(NAMES))
NUMBER = sys.intern("number")
PLAIN = (str, float, int, bool, type, Semiring, Modular)  # values whose hash is quick and never fails


def signature_text(header: int) -> str:
    """`sign(M, N, keywords)`; `header`: the bytes of CPython's object header. M is an array, N may be anything."""
    parts = (vouched_text, matrix_text, owner_text, array_text, _scale_text, _keyworded_text, _sign_text)
    return "".join(part(header) for part in parts)


def _scale_text(header: int) -> str:
    """One of two scales: what stands for it in the key, its words written as an array's are; null for Python's part."""
    numbers = " ".join(f"i64 {id(kind)}, label %number" for kind in (int, float, type(None)))
    return f"""
define private ptr @scale(ptr %x, ptr %class, ptr %words, ptr %used) {{
  %type.at = getelementptr i8, ptr %x, i64 {header - 8}
  %type = load ptr, ptr %type.at
  %type.word = ptrtoint ptr %type to i64
  switch i64 %type.word, label %other [ {numbers} ]
number:
  ret ptr inttoptr (i64 {id(NUMBER)} to ptr)
other:
  %alike = icmp eq ptr %type, %class
  br i1 %alike, label %write, label %no
write:
  %before = load i64, ptr %used
  %at = getelementptr i64, ptr %words, i64 %before
{field("descr", "%x", header)}
  %wrote = call i64 @array(ptr %x, ptr %at)
  %after = add i64 %before, %wrote
  store i64 %after, ptr %used
  %few = icmp ne i64 %wrote, 0
  br i1 %few, label %yes, label %no
yes:
  ret ptr %descr
no:
  ret ptr null
}}
"""


def _put_text() -> str:
    """Inside of `keyworded`: a name and what stands for its value."""
    return f"""
keep:
  %added = phi i64 [0, %plain], [%wrote, %write]
  %second = phi ptr [%value, %plain], [%descr, %write]
  %free = icmp ult i64 %count, {2 * MOST}
  br i1 %free, label %put, label %slowly
put:
  %to = getelementptr ptr, ptr %items, i64 %count
  store ptr %name, ptr %to
  %beside = getelementptr ptr, ptr %to, i64 1
  store ptr %second, ptr %beside
  %longer = add i64 %count, 2
  %written = add i64 %used, %added
  br label %next
"""


def _pair_text() -> str:
    """Inside of `keyworded`: a pair of scales."""
    return f"""
a.pair:
  br i1 %none, label %next, label %of.tuple
of.tuple:
  %tuple = icmp eq i64 %type.word, {id(tuple)}
  br i1 %tuple, label %sized, label %slowly
sized:
  %size = call i64 @PyTuple_Size(ptr %value)
  %two = icmp eq i64 %size, 2
  %place.free = icmp ult i64 %count, {2 * MOST}
  %pair = and i1 %two, %place.free
  br i1 %pair, label %sides, label %slowly
sides:
  store i64 %used, ptr %used.at
  %a.object = call ptr @PyTuple_GetItem(ptr %value, i64 0)
  %a = call ptr @scale(ptr %a.object, ptr %class, ptr %words, ptr %used.at)
  %b.object = call ptr @PyTuple_GetItem(ptr %value, i64 1)
  %b = call ptr @scale(ptr %b.object, ptr %class, ptr %words, ptr %used.at)
  %a.none = icmp eq ptr %a, null
  %b.none = icmp eq ptr %b, null
  %neither = or i1 %a.none, %b.none
  br i1 %neither, label %slowly, label %put.pair
put.pair:
  %pair.to = getelementptr ptr, ptr %items, i64 %count
  store ptr %name, ptr %pair.to
  %a.to = getelementptr ptr, ptr %pair.to, i64 1
  store ptr %a, ptr %a.to
  %b.to = getelementptr ptr, ptr %pair.to, i64 2
  store ptr %b, ptr %b.to
  %three.more = add i64 %count, 3
  %pair.written = load i64, ptr %used.at
  br label %next
"""


def _keyworded_text(header: int) -> str:
    """The key of a call with keywords, behind the words of M and N; null where Python must look."""
    return _keywords_text(header) + _put_text() + _pair_text() + _tuple_text()


def _keywords_text(header: int) -> str:
    """Names and values gathered; of an array, its dtype, and its words behind the others."""
    names, kinds = _cases()
    return f"""
define private ptr @keyworded(ptr %keywords, ptr %words, ptr %class) {{
entry:
  %items = alloca [{2 * MOST + 2} x ptr]
  %used.at = alloca i64
  %position = alloca i64
  %name.at = alloca ptr
  %value.at = alloca ptr
  store i64 0, ptr %position
  br label %next
next:
  %count = phi i64 [0, %entry], [%count, %a.value], [%count, %an.array], [%longer, %put],
    [%count, %a.pair], [%three.more, %put.pair]
  %used = phi i64 [{WORDS}, %entry], [%used, %a.value], [%used, %an.array], [%written, %put],
    [%used, %a.pair], [%pair.written, %put.pair]
  %any = call i32 @PyDict_Next(ptr %keywords, ptr %position, ptr %name.at, ptr %value.at)
  %over = icmp eq i32 %any, 0
  br i1 %over, label %build, label %look
look:
  %name = load ptr, ptr %name.at
  %value = load ptr, ptr %value.at
  %none = icmp eq ptr %value, inttoptr (i64 {id(None)} to ptr)
  %type.at = getelementptr i8, ptr %value, i64 {header - 8}
  %type = load ptr, ptr %type.at
  %type.word = ptrtoint ptr %type to i64
  %name.word = ptrtoint ptr %name to i64
  switch i64 %name.word, label %slowly [ {names} ]
a.value:
  br i1 %none, label %next, label %of.type
of.type:
  switch i64 %type.word, label %slowly [ {kinds} ]
plain:
  br label %keep
an.array:
  br i1 %none, label %next, label %of.class
of.class:
  %alike = icmp eq ptr %type, %class
  %room = icmp ule i64 %used, {WORDS + WORDS_OF_AN_ARRAY * (MOST_ARRAYS - 1)}
  %fits = and i1 %alike, %room
  br i1 %fits, label %write, label %slowly
write:
  %at = getelementptr i64, ptr %words, i64 %used
{field("descr", "%value", header)}
  %wrote = call i64 @array(ptr %value, ptr %at)
  %few = icmp ne i64 %wrote, 0
  br i1 %few, label %keep, label %slowly
"""


def _cases() -> tuple[str, str]:
    """Where a keyword's name leads, and where the class of its value does."""
    kept = [name for name in KEPT_NAMES if name not in UNPREPARED_ON_HOST]
    leads = dict.fromkeys(kept, "a.value") | dict.fromkeys(ARRAYS, "an.array") | {"scales": "a.pair"}
    names = " ".join(f"i64 {id(name)}, label %{leads[name]}" for name in kept)
    return names, " ".join(f"i64 {id(kind)}, label %plain" for kind in PLAIN)


def _tuple_text() -> str:
    """A tuple of the words' bytes and of what was gathered."""
    return """
build:
  %bytes = shl i64 %used, 3
  %said = call ptr @PyBytes_FromStringAndSize(ptr %words, i64 %bytes)
  %length = add i64 %count, 1
  %key = call ptr @PyTuple_New(i64 %length)
  %bad.said = icmp eq ptr %said, null
  %bad.key = icmp eq ptr %key, null
  %bad = or i1 %bad.said, %bad.key
  br i1 %bad, label %slowly, label %fill
fill:
  %set = call i32 @PyTuple_SetItem(ptr %key, i64 0, ptr %said)
  br label %again
again:
  %i = phi i64 [0, %fill], [%following, %item]
  %done = icmp eq i64 %i, %count
  br i1 %done, label %ready, label %item
item:
  %from = getelementptr ptr, ptr %items, i64 %i
  %object = load ptr, ptr %from
  call void @Py_IncRef(ptr %object)
  %following = add i64 %i, 1
  %put.there = call i32 @PyTuple_SetItem(ptr %key, i64 %following, ptr %object)
  br label %again
ready:
  ret ptr %key
slowly:
  ret ptr null
}
"""


def _sign_text(header: int) -> str:
    return _operands_text(header) + _out_text(header)


def _operands_text(header: int) -> str:
    """M and N, and the key where nothing else is given."""
    return f"""
define ptr @sign(ptr %self, ptr %arguments, i64 %count) {{
  %words = alloca [{WORDS + WORDS_OF_AN_ARRAY * MOST_ARRAYS} x i64]
{CALL_READ}  %class.M = getelementptr i8, ptr %M, i64 {header - 8}
  %type.M = load ptr, ptr %class.M
  %class.N = getelementptr i8, ptr %N, i64 {header - 8}
  %type.N = load ptr, ptr %class.N
  %alike = icmp eq ptr %type.M, %type.N
  br i1 %alike, label %ask, label %slowly
ask:
  %m = call i64 @matrix(ptr %M)
  %n = call i64 @matrix(ptr %N)
  %matrices = and i64 %m, %n
  %quick = icmp ne i64 %matrices, 0
  br i1 %quick, label %write, label %slowly
write:
{written("M", 0, 2, header)}
{written("N", 1, 6, header)}
  switch i64 %given, label %more [ i64 0, label %short i64 1, label %one ]
short:
  %key = call ptr @PyBytes_FromStringAndSize(ptr %words, i64 {8 * WORDS})
  ret ptr %key
"""


def _out_text(header: int) -> str:
    """The key with `out` alone, where it can be written straight; with keywords; and the way of Python."""
    return f"""
one:
  %name = inttoptr i64 {id(OUT)} to ptr
  %P = call ptr @PyDict_GetItem(ptr %keywords, ptr %name)
  %there = icmp ne ptr %P, null
  br i1 %there, label %out, label %more
out:
  %class.P = getelementptr i8, ptr %P, i64 {header - 8}
  %type.P = load ptr, ptr %class.P
  %array = icmp eq ptr %type.P, %type.M
  br i1 %array, label %own, label %slowly
own:
  %is.M = icmp eq ptr %P, %M
  %is.N = icmp eq ptr %P, %N
  %operand = or i1 %is.M, %is.N
  %two = call i64 @matrix(ptr %P)
  %own.P = call i32 @owner(ptr %P)
  %own.M = call i32 @owner(ptr %M)
  %own.N = call i32 @owner(ptr %N)
  %all = and i32 %own.M, %own.N
  %every = and i32 %all, %own.P
  %owners = and i32 %every, {OWNDATA}
  %mine = icmp ne i32 %owners, 0
  %flag = and i32 %own.P, {WRITEABLE}
  %may = icmp ne i32 %flag, 0
  %matrix = icmp ne i64 %two, 0
  %good = and i1 %mine, %may
  %better = and i1 %good, %matrix
  %straight = select i1 %operand, i1 false, i1 %better
  br i1 %straight, label %long, label %more
long:
{written("P", 10, 11, header)}
  %longer = call ptr @PyBytes_FromStringAndSize(ptr %words, i64 {8 * WORDS_WITH_OUT})
  ret ptr %longer
more:
  %keyed = call ptr @keyworded(ptr %keywords, ptr %words, ptr %type.M)
  %signed = icmp ne ptr %keyed, null
  br i1 %signed, label %known, label %slowly
known:
  ret ptr %keyed
slowly:
  %other = call ptr @PyObject_Vectorcall(ptr %self, ptr %arguments, i64 %count, ptr null)
  ret ptr %other
}}
"""
