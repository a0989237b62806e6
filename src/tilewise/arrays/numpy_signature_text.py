"""The signature of a call of NumPy matrices and vectors as LLVM IR: fields of arrays become 64-bit slots of a key.

The key of a call without keywords, or with an `out` that is written directly, is bytes. With other keywords it is a
tuple: bytes, with slots for arrays among them too, then names and values; an array is represented by its dtype, a pair
of scales by two values, equal for all numbers. Anything else goes to Python.
"""

from __future__ import annotations

import sys

from tilewise.algebra.modular import Modular
from tilewise.algebra.semiring import Semiring
from tilewise.arrays.ir_macros import constant, expand
from tilewise.core.options import ARRAYS, NAMES, UNPREPARED_ON_HOST
from tilewise.system.builtin_call import CALL_READ

HEADER = object.__basicsize__  # bytes before an object's own fields
CLASS = HEADER - 8
ND, DIMENSIONS, STRIDES, BASE, DESCR, FLAGS = (HEADER + at for at in (8, 16, 24, 32, 40, 48))  # of an array
OWNDATA, WRITEABLE = 4, 0x400  # NumPy's NPY_ARRAY_OWNDATA and NPY_ARRAY_WRITEABLE

NO_AXIS = -1  # in place of a vector's second extent
SLOTS = 10  # two dtypes, two shapes, two pairs of strides
SLOTS_WITH_OUT = 15
ARRAY_SLOTS = 5  # of an array among keywords: axes, two extents, two strides
MOST_ARRAYS = len(ARRAYS) + 2  # scales may be two
MOST = 8  # keywords; a call with more is signed by Python
OUT = sys.intern("out")
# names are compared by address, so they are kept alive here
KEPT_NAMES = tuple(sys.intern(name) for name in sorted(NAMES))
NUMBER = sys.intern("number")
PLAIN = (str, float, int, bool, type, Semiring, Modular)  # values whose hash is fast and never fails


def signature_text() -> str:
    """`sign(M, N, keywords)`. M is an array, N may be anything."""
    return expand(_arrays_text() + _fields_text() + _stored_text() + _keywords_text() + _pairs_text() + _sign_text())


def _arrays_text() -> str:
    """`axes`: one or two, 0 where an array has others or `extent.owned` does not hold. `owner`: the flags of an array
    that owns its memory, else 0. `array`: slots of an array among keywords, their number, 0 for too many axes."""
    return f"""
define private i64 @axes(ptr %array) {{
  %nd = load i32, ptr %array + {ND}
  %axes = zext i32 %nd to i64
  %before = sub i64 %axes, 1
  require icmp ult i64 %before, 2 else no
  %base = load ptr, ptr %array + {BASE}
  require icmp ne ptr %base, null else yes
  %class = load ptr, ptr %array + {CLASS}
  %base.class = load ptr, ptr %base + {CLASS}
  require icmp eq ptr %class, %base.class else no
  %owns = call i32 @owner(ptr %base)
  require icmp ne i32 %owns, 0 else no
  br label %yes
yes:
  ret i64 %axes
no:
  ret i64 0
}}

define private i32 @owner(ptr %array) {{
  %base = load ptr, ptr %array + {BASE}
  require icmp eq ptr %base, null else no
  %flags = load i32, ptr %array + {FLAGS}
  %owns = and i32 %flags, {OWNDATA}
  require icmp ne i32 %owns, 0 else no
  ret i32 %flags
no:
  ret i32 0
}}

define private i64 @array(ptr %array, ptr %at) {{
  %nd = load i32, ptr %array + {ND}
  %axes = zext i32 %nd to i64
  %before = sub i64 %axes, 1
  require icmp ult i64 %before, 2 else no
  store i64 %axes, ptr %at
  %rest = getelementptr i64, ptr %at, i64 1
  call void @fields(ptr %array, i64 %axes, ptr %rest)
  ret i64 {ARRAY_SLOTS}
no:
  ret i64 0
}}
"""


def _fields_text() -> str:
    """`fields`: two extents and two strides of an array of one axis or two."""
    return f"""
define private void @fields(ptr %array, i64 %axes, ptr %to) {{
  %dimensions = load ptr, ptr %array + {DIMENSIONS}
  %strides = load ptr, ptr %array + {STRIDES}
  %extent = load i64, ptr %dimensions[0]
  store i64 %extent, ptr %to[0]
  %stride = load i64, ptr %strides[0]
  store i64 %stride, ptr %to[2]
  store i64 {NO_AXIS}, ptr %to[1]
  store i64 0, ptr %to[3]
  require icmp eq i64 %axes, 2 else done
  %extent2 = load i64, ptr %dimensions[1]
  store i64 %extent2, ptr %to[1]
  %stride2 = load i64, ptr %strides[1]
  store i64 %stride2, ptr %to[3]
  br label %done
done:
  ret void
}}
"""


def _stored_text() -> str:
    """`stored`: what represents a scale, or an array of %class, whose slots are written; null for Python."""
    numbers = " ".join(f"i64 {id(kind)}, label %number" for kind in (int, float, type(None)))
    return f"""
define private ptr @stored(ptr %x, ptr %class, ptr %slots, ptr %used.at) {{
  %type = load ptr, ptr %x + {CLASS}
  %type.address = ptrtoint ptr %type to i64
  switch i64 %type.address, label %other [ {numbers} ]
number:
  ret ptr {constant(NUMBER)}
other:
  require icmp eq ptr %type, %class else no
  %used = load i64, ptr %used.at
  %at = getelementptr i64, ptr %slots, i64 %used
  %wrote = call i64 @array(ptr %x, ptr %at)
  require icmp ne i64 %wrote, 0 else no
  %after = add i64 %used, %wrote
  store i64 %after, ptr %used.at
  %descr = load ptr, ptr %x + {DESCR}
  ret ptr %descr
no:
  ret ptr null
}}
"""


def _keywords_text() -> str:
    """`keyworded`: the key of a call with keywords; null where Python must sign. Names and values are gathered in
    %items."""
    kept = [name for name in KEPT_NAMES if name not in UNPREPARED_ON_HOST]
    target = dict.fromkeys(kept, "a.value") | dict.fromkeys(ARRAYS, "an.array") | {"scales": "a.pair"}
    names = " ".join(f"i64 {id(name)}, label %{target[name]}" for name in kept)
    kinds = " ".join(f"i64 {id(kind)}, label %plain" for kind in PLAIN)
    return f"""
define private ptr @keyworded(ptr %keywords, ptr %slots, ptr %class) {{
  %items = alloca [{2 * MOST + 2} x ptr]
  %count.at = alloca i64
  %used.at = alloca i64
  %position = alloca i64
  %name.at = alloca ptr
  %value.at = alloca ptr
  store i64 0, ptr %position
  store i64 0, ptr %count.at
  store i64 {SLOTS}, ptr %used.at
  br label %next
next:
  %count = load i64, ptr %count.at
  %used = load i64, ptr %used.at
  %any = call i32 @PyDict_Next(ptr %keywords, ptr %position, ptr %name.at, ptr %value.at)
  require icmp ne i32 %any, 0 else build
  %name = load ptr, ptr %name.at
  %value = load ptr, ptr %value.at
  %type = load ptr, ptr %value + {CLASS}
  %type.address = ptrtoint ptr %type to i64
  %name.address = ptrtoint ptr %name to i64
  switch i64 %name.address, label %slowly [ {names} ]
a.value:
  require icmp ne ptr %value, {constant(None)} else next
  switch i64 %type.address, label %slowly [ {kinds} ]
plain:
  br label %keep
an.array:
  require icmp ne ptr %value, {constant(None)} else next
  require icmp eq ptr %type, %class else slowly
  require icmp ule i64 %used, {SLOTS + ARRAY_SLOTS * (MOST_ARRAYS - 1)} else slowly
  %descr = call ptr @stored(ptr %value, ptr %class, ptr %slots, ptr %used.at)
  %written = icmp ne ptr %descr, null
  br i1 %written, label %an.array.written, label %slowly
an.array.written:
  br label %keep
keep:
  %second = phi ptr [%value, %plain], [%descr, %an.array.written]
  require icmp ult i64 %count, {2 * MOST} else slowly
  %to = getelementptr ptr, ptr %items, i64 %count
  store ptr %name, ptr %to
  store ptr %second, ptr %to[1]
  %two.more = add i64 %count, 2
  store i64 %two.more, ptr %count.at
  br label %next
"""


def _pairs_text() -> str:
    """The rest of `keyworded`: a pair of scales, and the tuple of the slots' bytes and the items."""
    return f"""
a.pair:
  require icmp ne ptr %value, {constant(None)} else next
  require icmp eq i64 %type.address, {id(tuple)} else slowly
  %size = call i64 @PyTuple_Size(ptr %value)
  require icmp eq i64 %size, 2 else slowly
  require icmp ult i64 %count, {2 * MOST} else slowly
  %a.object = call ptr @PyTuple_GetItem(ptr %value, i64 0)
  %a = call ptr @stored(ptr %a.object, ptr %class, ptr %slots, ptr %used.at)
  require icmp ne ptr %a, null else slowly
  %b.object = call ptr @PyTuple_GetItem(ptr %value, i64 1)
  %b = call ptr @stored(ptr %b.object, ptr %class, ptr %slots, ptr %used.at)
  require icmp ne ptr %b, null else slowly
  %pair.to = getelementptr ptr, ptr %items, i64 %count
  store ptr %name, ptr %pair.to
  store ptr %a, ptr %pair.to[1]
  store ptr %b, ptr %pair.to[2]
  %three.more = add i64 %count, 3
  store i64 %three.more, ptr %count.at
  br label %next
build:
  %bytes = shl i64 %used, 3
  %text = call ptr @PyBytes_FromStringAndSize(ptr %slots, i64 %bytes)
  require icmp ne ptr %text, null else slowly
  %length = add i64 %count, 1
  %key = call ptr @PyTuple_New(i64 %length)
  require icmp ne ptr %key, null else slowly
  %set = call i32 @PyTuple_SetItem(ptr %key, i64 0, ptr %text)
  br label %fill
fill:
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
  %put = call i32 @PyTuple_SetItem(ptr %key, i64 %following, ptr %object)
  br label %again
ready:
  ret ptr %key
slowly:
  ret ptr null
}}
"""


def _sign_text() -> str:
    """M and N; the key without keywords; with `out` alone, where it is written directly; with keywords; or Python."""
    return f"""
define ptr @sign(ptr %self, ptr %arguments, i64 %count) {{
  %slots = alloca [{SLOTS + ARRAY_SLOTS * MOST_ARRAYS} x i64]
{CALL_READ}  %type.M = load ptr, ptr %M + {CLASS}
  %type.N = load ptr, ptr %N + {CLASS}
  require icmp eq ptr %type.M, %type.N else slowly
  %m = call i64 @axes(ptr %M)
  require icmp ne i64 %m, 0 else slowly
  %n = call i64 @axes(ptr %N)
  require icmp ne i64 %n, 0 else slowly
{_written("M", "m", 0, 2)}
{_written("N", "n", 1, 6)}
  switch i64 %given, label %more [ i64 0, label %short i64 1, label %one ]
short:
  %key = call ptr @PyBytes_FromStringAndSize(ptr %slots, i64 {8 * SLOTS})
  ret ptr %key
one:
  %P = call ptr @PyDict_GetItem(ptr %keywords, ptr {constant(OUT)})
  require icmp ne ptr %P, null else more
  %type.P = load ptr, ptr %P + {CLASS}
  require icmp eq ptr %type.P, %type.M else slowly
  require icmp ne ptr %P, %M else more
  require icmp ne ptr %P, %N else more
  %p = call i64 @axes(ptr %P)
  require icmp ne i64 %p, 0 else more
  %own.P = call i32 @owner(ptr %P)
  %writes = and i32 %own.P, {WRITEABLE}
  require icmp ne i32 %writes, 0 else more
  %own.M = call i32 @owner(ptr %M)
  require icmp ne i32 %own.M, 0 else more
  %own.N = call i32 @owner(ptr %N)
  require icmp ne i32 %own.N, 0 else more
{_written("P", "p", 10, 11)}
  %longer = call ptr @PyBytes_FromStringAndSize(ptr %slots, i64 {8 * SLOTS_WITH_OUT})
  ret ptr %longer
more:
  %keyed = call ptr @keyworded(ptr %keywords, ptr %slots, ptr %type.M)
  require icmp ne ptr %keyed, null else slowly
  ret ptr %keyed
slowly:
  %other = call ptr @PyObject_Vectorcall(ptr %self, ptr %arguments, i64 %count, ptr null)
  ret ptr %other
}}
"""


def _written(array: str, axes: str, dtype: int, first: int) -> str:
    """IR that writes an array's dtype, extents and strides into slots of the key."""
    return f"""  %{array}.descr = load ptr, ptr %{array} + {DESCR}
  store ptr %{array}.descr, ptr %slots[{dtype}]
  %{array}.to = getelementptr i64, ptr %slots, i64 {first}
  call void @fields(ptr %{array}, i64 %{axes}, ptr %{array}.to)"""
