"""NumPy arrays in prepared calls: their signature, read from the array objects by machine code where that can be.

A product of two matrices with no keywords, or with `out=` alone, is signed by the bytes of its dtypes' addresses,
shapes and strides, in a seventh of the time that Python takes to ask for them. An `out` that is signed so owns its
memory and is neither operand, which own theirs: it can be written straight. The fields that are read are NumPy's stable
C interface; they are held against a few arrays once. Everything else, and every other Python, is signed by
`numpy_signature`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.arrays.extent import owned
from tilewise.options import UNPREPARED_ON_HOST, Key, keywords_key
from tilewise.system.builtin_call import compiled, made_builtin, native_calls

OWNDATA = 4  # NumPy's NPY_ARRAY_OWNDATA
FIELDS = {"nd": 8, "dimensions": 16, "strides": 24, "base": 32, "descr": 40, "flags": 48}  # behind `data`
WRITEABLE = 0x400  # NPY_ARRAY_WRITEABLE
WORDS = 10  # two dtypes, two shapes, two pairs of strides
WORDS_WITH_OUT = 15
OUT = sys.intern("out")


def numpy_signature(M: Any, N: Any, keywords: Any) -> Key | None:
    """Everything about a call but its addresses; None where memory must be held against its owner each time."""
    if N.__class__ is not np.ndarray or not ((M.base is None or owned(M)) and (N.base is None or owned(N))):
        return None
    if not keywords:
        return (M.shape, N.shape, M.strides, N.strides, M.dtype, N.dtype)
    key = keywords_key(keywords, _numpy_array, UNPREPARED_ON_HOST)
    return None if key is None else (M.shape, N.shape, M.strides, N.strides, M.dtype, N.dtype, *key)


def _numpy_array(x: Any) -> Key | None:
    return (x.shape, x.strides, x.dtype) if x.__class__ is np.ndarray else None


@lru_cache(maxsize=1)
def quickest_signature() -> Callable[[Any, Any, Any], Key | None]:
    """The signature in machine code, or the one in Python."""
    if not native_calls():
        return numpy_signature
    try:
        quick = made_builtin(compiled(signature_text(object.__basicsize__), "sign"), numpy_signature)
        return quick if _tells_true(quick) else numpy_signature
    except (ImportError, RuntimeError, OSError, AttributeError):
        return numpy_signature


def _tells_true(quick: Callable[[Any, Any, Any], Any]) -> bool:
    """Whether the fields are where they are looked for."""
    A = np.empty((3, 5), np.float32)
    for M, N in ((A, np.empty((5, 2))), (np.empty((7, 3), np.int8), A[:, ::2])):
        words = (id(M.dtype), id(N.dtype), *M.shape, *M.strides, *N.shape, *N.strides)
        if quick(M, N, {}) != np.array(words, np.uint64).tobytes():
            return False
        P = np.empty((M.shape[0], N.shape[1]))
        words += (id(P.dtype), *P.shape, *P.strides)
        if (quick(M, N, {"out": P}) == np.array(words, np.uint64).tobytes()) != (N.base is None):
            return False
    strange = np.frombuffer(bytearray(4), np.int8).reshape(2, 2)
    return quick(A, A[0], {}) == numpy_signature(A, A[0], {}) and quick(A, strange, {}) is None


def written_straight(key: Any) -> bool:
    """Whether a key is of a call whose `out` needs no second look."""
    return key.__class__ is bytes and len(key) == 8 * WORDS_WITH_OUT


def signature_text(header: int) -> str:
    """`sign(M, N, keywords)`; `header`: the bytes of CPython's object header. M is an array, N may be anything."""
    return _vouched_text(header) + _matrix_text(header) + _owner_text(header) + _sign_text(header)


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


def _sign_text(header: int) -> str:
    return f"""
define ptr @sign(ptr %self, ptr %arguments, i64 %count) {{
  %words = alloca [{WORDS_WITH_OUT} x i64]
  %three = icmp eq i64 %count, 3
  br i1 %three, label %read, label %slowly
read:
  %M = load ptr, ptr %arguments
  %N.at = getelementptr ptr, ptr %arguments, i64 1
  %N = load ptr, ptr %N.at
  %keywords.at = getelementptr ptr, ptr %arguments, i64 2
  %keywords = load ptr, ptr %keywords.at
  %given = call i64 @PyDict_Size(ptr %keywords)
  %few = icmp ule i64 %given, 1
  %class.M = getelementptr i8, ptr %M, i64 {header - 8}
  %type.M = load ptr, ptr %class.M
  %class.N = getelementptr i8, ptr %N, i64 {header - 8}
  %type.N = load ptr, ptr %class.N
  %alike = icmp eq ptr %type.M, %type.N
  %arrays = and i1 %few, %alike
  br i1 %arrays, label %ask, label %slowly
ask:
  %m = call i64 @matrix(ptr %M)
  %n = call i64 @matrix(ptr %N)
  %matrices = and i64 %m, %n
  %quick = icmp ne i64 %matrices, 0
  br i1 %quick, label %write, label %slowly
write:
{_written("M", 0, 2, header)}
{_written("N", 1, 6, header)}
  %plain = icmp eq i64 %given, 0
  br i1 %plain, label %short, label %one
short:
  %key = call ptr @PyBytes_FromStringAndSize(ptr %words, i64 {8 * WORDS})
  ret ptr %key
one:
  %name = inttoptr i64 {id(OUT)} to ptr
  %P = call ptr @PyDict_GetItem(ptr %keywords, ptr %name)
  %there = icmp ne ptr %P, null
  br i1 %there, label %out, label %slowly
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
  br i1 %straight, label %long, label %slowly
long:
{_written("P", 10, 11, header)}
  %longer = call ptr @PyBytes_FromStringAndSize(ptr %words, i64 {8 * WORDS_WITH_OUT})
  ret ptr %longer
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
