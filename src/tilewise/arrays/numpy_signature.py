"""NumPy arrays in prepared calls: their signature, read from the array objects by native code where possible.

The key of matrices and vectors with no keywords, or with `out=` alone, is the bytes of their dtypes' addresses, shapes
and strides, which takes a seventh of the time that Python needs. An `out` in such a key owns its memory and is neither
operand, and they own theirs: it can be written directly. Other keywords are read from their dictionary in the same way.
The fields are NumPy's stable C interface; they are compared with a few arrays once. Everything else, and every other
Python, uses `numpy_signature`, which tests memory of another owner in each call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.arrays.extent import held
from tilewise.arrays.numpy_signature_text import NO_AXIS, SLOTS_WITH_OUT, signature_text
from tilewise.core.options import UNPREPARED_ON_HOST, Key, keywords_key
from tilewise.system.builtin_call import compiled, made_builtin, native_calls

CLASSES = (np.ndarray, np.memmap)  # with the same fields
BESIDE: dict[type, Callable[[Any, Any, Any], Key | None]] = {}  # signatures of a NumPy M with an N of another class


def numpy_signature(M: Any, N: Any, keywords: Any) -> Key | None:
    """Everything about a call but its addresses; None where an operand is not within its memory."""
    if N.__class__ not in CLASSES:
        other = BESIDE.get(N.__class__)
        return None if other is None else other(M, N, keywords)
    if not ((M.base is None or held(M, "M")) and (N.base is None or held(N, "N"))):
        return None
    if not keywords:
        return (M.shape, N.shape, M.strides, N.strides, M.dtype, N.dtype)
    key = keywords_key(keywords, _numpy_array, UNPREPARED_ON_HOST)
    return None if key is None else (M.shape, N.shape, M.strides, N.strides, M.dtype, N.dtype, *key)


def _numpy_array(x: Any) -> Key | None:
    return (x.shape, x.strides, x.dtype) if x.__class__ in CLASSES else None


@lru_cache(maxsize=1)
def quickest_signature() -> Callable[[Any, Any, Any], Key | None]:
    """The native signature function, or the one in Python."""
    if not native_calls():
        return numpy_signature
    try:
        quick = made_builtin(compiled(signature_text(), "sign"), numpy_signature)
        return quick if _reads_right(quick) else numpy_signature
    except (ImportError, RuntimeError, OSError, AttributeError):
        return numpy_signature


def _reads_right(quick: Callable[[Any, Any, Any], Any]) -> bool:
    """Whether the fields are at the expected offsets."""
    A = np.empty((3, 5), np.float32)
    for M, N in ((A, np.empty((5, 2))), (np.empty((7, 3), np.int8), A[:, ::2])):
        values = (id(M.dtype), id(N.dtype), *M.shape, *M.strides, *N.shape, *N.strides)
        if quick(M, N, {}) != np.array(values, np.uint64).tobytes():
            return False
        P = np.empty((M.shape[0], N.shape[1]))
        values += (id(P.dtype), *P.shape, *P.strides)
        if (quick(M, N, {"out": P}) == np.array(values, np.uint64).tobytes()) != (N.base is None):
            return False
    foreign, stack, v = np.frombuffer(bytearray(4), np.int8).reshape(2, 2), np.empty((2, 3, 5)), A[0, ::2]
    values = (id(v.dtype), id(A.dtype), *v.shape, NO_AXIS, *v.strides, 0, *A.shape, *A.strides)
    vectors = quick(v, A, {}) == np.array(values, np.int64).tobytes()
    return vectors and all(quick(x, y, {}) == numpy_signature(x, y, {}) for x, y in ((stack, A), (A, foreign)))


def written_directly(key: Any) -> bool:
    """Whether a key is of a call whose `out` needs no further check."""
    return key.__class__ is bytes and len(key) == 8 * SLOTS_WITH_OUT
