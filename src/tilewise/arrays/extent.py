"""The gate before every native kernel: the bytes an array claims lie within what owns them.

NumPy keeps this for views it makes itself. It does not for `as_strided`, for `__array_interface__` and DLPack, which
take a stranger's word, or for a mapped file that was cut short meanwhile: a kernel that believed those would read
another's memory, or die of a signal. What a stranger owns cannot be asked; that its pages are there at all can.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import sys
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tilewise.errors import DtypeError, FileError, ShapeError
from tilewise.system.imported import imported

Array = np.ndarray[Any, np.dtype[Any]]

MS_ASYNC = 1  # on Linux and macOS: writes nothing that anybody waits for, and refuses a range with a hole
NO_ACCESS = 0  # PROT_NONE
POPULATE = {False: 22, True: 23}  # Linux's MADV_POPULATE_READ and _WRITE
REFUSED = (errno.ENOMEM, errno.EFAULT, errno.EINVAL)
TARGETS = ("out", "P", "arg")  # roles of what is written
ADDRESSES = 1 << 64  # no address is past it


def check_block(value: Any, role: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """What a task was handed for a block, held against what was declared of it."""
    masked = imported("numpy.ma")
    if masked is not None and isinstance(value, masked.MaskedArray):
        raise DtypeError(f"{role} is a masked array, and a product would lose its mask: fill it first")
    block = np.asarray(value)
    if block.shape != shape or block.dtype != dtype:
        raise (ShapeError if block.shape != shape else DtypeError)(
            f"{role} is {_words(block.shape, block.dtype)}, but was declared {_words(shape, dtype)}: "
            "give the array the chunks and the dtype that its blocks have"
        )
    check_extent(block, role)
    return block


def check_operand(array: Array, role: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """An operand of a kernel, as its plan has it; a stack of fewer axes is broadcast."""
    stack, own = shape[:-2], array.shape[:-2]
    fits = array.shape[-2:] == shape[-2:] and len(own) <= len(stack)
    fits = fits and all(x in (1, y) for x, y in zip(reversed(own), reversed(stack), strict=False))
    if not fits or array.dtype != dtype:
        raise (DtypeError if fits else ShapeError)(
            f"{role} is {_words(array.shape, array.dtype)}, and its kernel was made for {_words(shape, dtype)}"
        )
    check_extent(array, role)


def _words(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    return f"{'×'.join(map(str, shape)) or 'a number'} {dtype}"


def owned(array: Array) -> bool:
    """Whether NumPy vouches for it: the array, or the one array it is a view of, owns its memory."""
    base = array.base
    return base is None or (type(base) is np.ndarray and base.base is None and base.flags.owndata)


def check_extent(array: Array, role: str) -> None:
    """Refuse an array that reaches past the memory it lies in."""
    if not array.size or owned(array):
        return
    low, high = byte_bounds(array)
    owner: Any = array.base
    while isinstance(owner, np.ndarray) and not owner.flags.owndata and owner.base is not None:
        owner = owner.base
    if not isinstance(owner, np.ndarray | mmap.mmap) and isinstance(getattr(owner, "base", None), np.ndarray):
        check_extent(owner.base, role)  # as_strided keeps what it strides over in an object of its own
        owner = owner.base
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
    bounds = _bounds(owner)
    if bounds is not None and not (bounds[0] <= low and high <= bounds[1]):
        raise ShapeError(
            f"{role} is {_words(array.shape, array.dtype)} and reaches from byte {low - bounds[0]:,} to "
            f"{high - bounds[0]:,} of memory that has {bounds[1] - bounds[0]:,}: its shape or strides are not true"
        )
    if bounds is None and not mapped(low, high, role in TARGETS):
        raise ShapeError(
            f"{role} is {_words(array.shape, array.dtype)}, and not all of its {high - low:,} bytes are memory of this "
            "process: what it says of itself is not true"
        )
    _check_file(array, owner, low, high, role)


def _bounds(owner: Any) -> tuple[int, int] | None:
    """Where the memory of an owner begins and ends; None where it cannot be asked."""
    if isinstance(owner, np.ndarray):
        return byte_bounds(owner) if owner.flags.owndata else None
    try:
        whole = np.frombuffer(owner, np.uint8)
    except (TypeError, ValueError, BufferError):
        return None
    return whole.ctypes.data, whole.ctypes.data + whole.nbytes


def _check_file(array: Array, owner: Any, low: int, high: int, role: str) -> None:
    """A mapped file that was cut short has pages that nothing is behind: to touch them is a signal."""
    held: Any = owner.obj if isinstance(owner, memoryview) else owner
    if not isinstance(held, mmap.mmap):
        return
    mapping: Any = array
    while isinstance(mapping, np.ndarray) and not isinstance(mapping, np.memmap):
        mapping = mapping.base
    if not isinstance(mapping, np.memmap):
        return
    start = np.frombuffer(held, np.uint8).ctypes.data
    begins = mapping.offset - mapping.offset % mmap.ALLOCATIONGRANULARITY
    try:
        there = held.size() - begins
    except (OSError, ValueError):
        return
    if high - start > there:
        name = getattr(mapping, "filename", None) or "its file"
        raise FileError(f"{role} is mapped from {name}, which was cut short to {there + begins:,} bytes meanwhile")


def _answer(advise: Any, access: int) -> int:
    """What the advice to read a page of this access is answered with."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=access) as page:
        whole = np.frombuffer(page, np.uint8)  # for its address
        answer = int(advise(whole.ctypes.data, mmap.PAGESIZE, POPULATE[False]))
        del whole
    return answer


@lru_cache(maxsize=1)
def _asking() -> tuple[Any, dict[bool, int]] | None:
    """A call of the system that says whether pages can be read, or written; None where there is none.

    Linux since 5.14 has advice that faults pages in as an access would, and says so where that would be a signal: no
    page, one that may not be read, a file that was cut short. Elsewhere msync refuses a range with a hole; so where the
    advice is not understood, or answered without a look (user-mode qemu says yes to every advice), which a page that
    nobody may read tells.
    """
    if sys.platform not in ("linux", "darwin"):
        return None
    try:
        library = ctypes.CDLL(None, use_errno=True)
        advise, sync = library.madvise, library.msync
    except (OSError, AttributeError):
        return None
    for call in (advise, sync):
        call.argtypes, call.restype = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int], ctypes.c_int
    knows = sys.platform == "linux" and _answer(advise, mmap.PROT_READ) == 0 and _answer(advise, NO_ACCESS) != 0
    return (advise, POPULATE) if knows else (sync, {False: MS_ASYNC, True: MS_ASYNC})


def mapped(low: int, high: int, written: bool = False) -> bool:
    """Whether every byte from one address to another can be read (and `written`); true where nobody can be asked."""
    if low < 0 or high > ADDRESSES:
        return False  # strides so long that they wrap: C would take the remainder for an address
    asking = _asking()
    if asking is None or high <= low:
        return True
    call, how = asking
    page = mmap.PAGESIZE
    start = low // page * page
    return bool(call(start, high - start, how[written]) == 0 or ctypes.get_errno() not in REFUSED)
