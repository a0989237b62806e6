"""The signature of a call of NumPy matrices as LLVM IR: fields of array objects become the words of a key.

The key of a call without keywords, or with an `out` that can be written straight, is bytes. With other keywords it is a
tuple: bytes, in which arrays among them have words too, then names and values, for an array its dtype. What is not
spelled here goes to Python.
"""

from __future__ import annotations

import sys

from tilewise.algebra.modular import Modular
from tilewise.algebra.semiring import Semiring
from tilewise.options import ARRAYS, NAMES, UNPREPARED_ON_HOST
from tilewise.system.builtin_call import CALL_READ

OWNDATA = 4  # NumPy's NPY_ARRAY_OWNDATA
WRITEABLE = 0x400  # NPY_ARRAY_WRITEABLE
FIELDS = {"nd": 8, "dimensions": 16, "strides": 24, "base": 32, "descr": 40, "flags": 48}  # behind `data`
WORDS = 10  # two dtypes, two shapes, two pairs of strides
WORDS_WITH_OUT = 15
WORDS_OF_AN_ARRAY = 5  # among keywords: axes, two extents, two strides
MOST = 8  # keywords; a call with more is signed by Python
OUT = sys.intern("out")
# names are compared by their addresses: they stay
KEPT_NAMES = tuple(sys.intern(name) for name in sorted(NAMES))
PLAIN = (str, float, int, bool, type, Semiring, Modular)  # values whose hash is quick and never fails


def signature_text(header: int) -> str:
    """`sign(M, N, keywords)`; `header`: the bytes of CPython's object header. M is an array, N may be anything."""
    parts = (_vouched_text, _matrix_text, _owner_text, _array_text, _keyworded_text, _sign_text)
    return "".join(part(header) for part in parts)


def _vouched_text(header: int) -> str:
    """Whether NumPy vouches for an array, as `extent.owned` asks."""
    return f"""
define private i64 @vouched(ptr %array) {{
{_field("base", "%array", header)}
  %none = icmp eq ptr %base, null
  br i1 %none, label %yes, label %view
view:
  %class.array = getelementptr i8, ptr %array, i64 {header - 8}
  %array.type = load ptr, ptr %class.array
  %class.base = getelementptr i8, ptr %base, i64 {header - 8}
  %base.type = load ptr, ptr %class.base
  %alike = icmp eq ptr %array.type, %base.type
  br i1 %alike, label %owner, label %no
owner:
{_field("base", "%base", header, "of")}
  %last = icmp eq ptr %of.base, null
  %flags.at = getelementptr i8, ptr %base, i64 {header + FIELDS["flags"]}
  %flags = load i32, ptr %flags.at
  %owns = and i32 %flags, {OWNDATA}
  %owned = icmp ne i32 %owns, 0
  %both = and i1 %last, %owned
  br i1 %both, label %yes, label %no
yes:
  ret i64 1
no:
  ret i64 0
}}
"""


def _matrix_text(header: int) -> str:
    """Whether it has two axes, too."""
    return f"""
define private i64 @matrix(ptr %array) {{
  %at = getelementptr i8, ptr %array, i64 {header + FIELDS["nd"]}
  %axes = load i32, ptr %at
  %two = icmp eq i32 %axes, 2
  br i1 %two, label %ask, label %no
ask:
  %answer = call i64 @vouched(ptr %array)
  ret i64 %answer
no:
  ret i64 0
}}
"""


def _owner_text(header: int) -> str:
    """The flags of an array that owns its memory, else 0."""
    return f"""
define private i32 @owner(ptr %array) {{
{_field("base", "%array", header)}
  %none = icmp eq ptr %base, null
  %at = getelementptr i8, ptr %array, i64 {header + FIELDS["flags"]}
  %flags = load i32, ptr %at
  %owns = and i32 %flags, {OWNDATA}
  %owned = icmp ne i32 %owns, 0
  %both = and i1 %none, %owned
  %answer = select i1 %both, i32 %flags, i32 0
  ret i32 %answer
}}
"""


def _array_text(header: int) -> str:
    """An array among the keywords: its words are written at %at; how many, 0 where it has too many axes."""
    return f"""
define private i64 @array(ptr %array, ptr %at) {{
{_field("dimensions", "%array", header)}
{_field("strides", "%array", header)}
  %nd.at = getelementptr i8, ptr %array, i64 {header + FIELDS["nd"]}
  %nd = load i32, ptr %nd.at
  %axes = zext i32 %nd to i64
  store i64 %axes, ptr %at
  %to1 = getelementptr i64, ptr %at, i64 1
  %to2 = getelementptr i64, ptr %at, i64 2
  %to3 = getelementptr i64, ptr %at, i64 3
  %to4 = getelementptr i64, ptr %at, i64 4
  store <4 x i64> zeroinitializer, ptr %to1, align 8
  switch i64 %axes, label %no [ i64 1, label %first i64 2, label %second ]
second:
  %extent2.at = getelementptr i64, ptr %dimensions, i64 1
  %extent2 = load i64, ptr %extent2.at
  store i64 %extent2, ptr %to2
  %stride2.at = getelementptr i64, ptr %strides, i64 1
  %stride2 = load i64, ptr %stride2.at
  store i64 %stride2, ptr %to4
  br label %first
first:
  %extent = load i64, ptr %dimensions
  store i64 %extent, ptr %to1
  %stride = load i64, ptr %strides
  store i64 %stride, ptr %to3
  ret i64 {WORDS_OF_AN_ARRAY}
no:
  ret i64 0
}}
"""


def _keyworded_text(header: int) -> str:
    """The key of a call with keywords, behind the words of M and N; null where Python must look."""
    return _keywords_text(header) + _tuple_text()


def _keywords_text(header: int) -> str:
    """Names and values gathered; of an array, its dtype, and its words behind the others."""
    names, kinds = _cases()
    return f"""
define private ptr @keyworded(ptr %keywords, ptr %words, ptr %class) {{
entry:
  %items = alloca [{2 * MOST} x ptr]
  %position = alloca i64
  %name.at = alloca ptr
  %value.at = alloca ptr
  store i64 0, ptr %position
  br label %next
next:
  %count = phi i64 [0, %entry], [%count, %a.value], [%count, %an.array], [%longer, %put]
  %used = phi i64 [{WORDS}, %entry], [%used, %a.value], [%used, %an.array], [%written, %put]
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
  %room = icmp ule i64 %used, {WORDS + WORDS_OF_AN_ARRAY * (len(ARRAYS) - 1)}
  %fits = and i1 %alike, %room
  br i1 %fits, label %write, label %slowly
write:
  %at = getelementptr i64, ptr %words, i64 %used
{_field("descr", "%value", header)}
  %wrote = call i64 @array(ptr %value, ptr %at)
  %few = icmp ne i64 %wrote, 0
  br i1 %few, label %keep, label %slowly
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


def _cases() -> tuple[str, str]:
    """Where a keyword's name leads, and where the class of its value does."""
    kept = [name for name in KEPT_NAMES if name not in UNPREPARED_ON_HOST and name != "scales"]
    names = " ".join(f"i64 {id(name)}, label %{'an.array' if name in ARRAYS else 'a.value'}" for name in kept)
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
  %words = alloca [{WORDS + WORDS_OF_AN_ARRAY * len(ARRAYS)} x i64]
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
{_written("M", 0, 2, header)}
{_written("N", 1, 6, header)}
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
{_written("P", 10, 11, header)}
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


def _field(name: str, array: str, header: int, prefix: str = "") -> str:
    """IR that loads a pointer of an array object into %name, or %prefix.name."""
    to = f"{prefix}.{name}" if prefix else name
    at = header + FIELDS[name]
    return f"  %{to}.at = getelementptr i8, ptr {array}, i64 {at}\n  %{to} = load ptr, ptr %{to}.at"


def _written(array: str, dtype: int, first: int, header: int) -> str:
    """IR that writes an array's dtype, two extents and two strides into words of the key."""
    lines = [_field(name, f"%{array}", header, array) for name in ("descr", "dimensions", "strides")]
    lines.append(
        f"  %{array}.d = getelementptr i64, ptr %words, i64 {dtype}\n  store ptr %{array}.descr, ptr %{array}.d"
    )
    for i, name in enumerate(("dimensions", "strides")):
        to = f"%{array}.{name}"
        lines.append(f"  {to}.v = load <2 x i64>, ptr {to}, align 8")
        lines.append(f"  {to}.to = getelementptr i64, ptr %words, i64 {first + 2 * i}")
        lines.append(f"  store <2 x i64> {to}.v, ptr {to}.to, align 8")
    return "\n".join(lines)
