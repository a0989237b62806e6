"""Bounds check before every native kernel: the bytes of an array are within the memory of its owner.

NumPy ensures this for views it makes itself, but not for `as_strided`, for `__array_interface__` and DLPack, which
trust another library, or for a mapped file that was truncated later: a kernel would read other memory, or end by a
signal. The size of foreign memory is unknown; whether its pages are mapped can be tested.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import sys
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.arrays.address import address
from tilewise.errors import DtypeError, FileError, ShapeError, TilewiseError
from tilewise.system.imported import imported

MS_ASYNC = 1  # msync on Linux and macOS: starts no write, and fails on a range with an unmapped page
NO_ACCESS = 0  # PROT_NONE
POPULATE = {False: 22, True: 23}  # Linux's MADV_POPULATE_READ and _WRITE
REFUSED = (errno.ENOMEM, errno.EFAULT, errno.EINVAL)
TARGETS = ("out", "P", "arg")  # roles of what is written
ADDRESSES = 1 << 64  # no address is past it


def check_block(value: Any, role: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A task's block, checked against its declaration."""
    masked = imported("numpy.ma")
    if masked is not None and isinstance(value, masked.MaskedArray):
        raise DtypeError(f"{role} is a masked array, and a product would lose its mask: fill it first")
    block = np.asarray(value)
    if block.shape != shape or block.dtype != dtype:
        raise (ShapeError if block.shape != shape else DtypeError)(
            f"{role} is {_described(block.shape, block.dtype)}, but was declared {_described(shape, dtype)}: "
            "give the array the chunks and the dtype that its blocks have"
        )
    check_extent(block, role)
    return block


def check_operand(array: Array, role: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Check an operand of a kernel against its plan; a stack of fewer axes is broadcast."""
    stack, own = shape[:-2], array.shape[:-2]
    fits = array.shape[-2:] == shape[-2:] and len(own) <= len(stack)
    fits = fits and all(x in (1, y) for x, y in zip(reversed(own), reversed(stack), strict=False))
    if not fits or array.dtype != dtype:
        raise (DtypeError if fits else ShapeError)(
            f"{role} is {_described(array.shape, array.dtype)}, and its kernel was made for {_described(shape, dtype)}"
        )
    check_extent(array, role)


def _described(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    return f"{'×'.join(map(str, shape)) or 'a number'} {dtype}"


def owned(array: Array) -> bool:
    """Whether the array, or the one array it is a view of, owns its memory: NumPy ensures the bounds."""
    base = array.base
    return base is None or (type(base) is np.ndarray and base.base is None and base.flags.owndata)


def held(array: Array, role: str) -> bool:
    """Whether an array is within its memory now. Views of files and of other libraries' arrays are tested each time."""
    if owned(array):
        return True
    try:
        check_extent(array, role)
    except TilewiseError:
        return False
    return True


def writable(out: Array) -> bool:
    """Whether a kernel may write to an array: cells of a strided view that NumPy did not make may share memory."""
    flags = out.flags
    return flags.writeable and (owned(out) or (flags.forc and held(out, "out")))


def byte_bounds(array: Array) -> tuple[int, int]:
    """The first and past-the-last address of the elements of an array that is not empty, as NumPy's function, which
    takes two microseconds more."""
    low = high = address(array)
    for n, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (n - 1) * stride
        else:
            high += (n - 1) * stride
    return low, high + array.itemsize


def check_extent(array: Array, role: str) -> None:
    """Refuse an array that exceeds its memory."""
    if not array.size or owned(array):
        return
    low, high = byte_bounds(array)
    owner = _owner(array)
    bounds = _bounds(owner)
    if bounds is not None and not (bounds[0] <= low and high <= bounds[1]):
        raise ShapeError(
            f"{role} is {_described(array.shape, array.dtype)} and reaches from byte {low - bounds[0]:,} to "
            f"{high - bounds[0]:,} of memory that has {bounds[1] - bounds[0]:,}: its shape or strides are wrong"
        )
    if bounds is None and not mapped(low, high, role in TARGETS):
        raise ShapeError(
            f"{role} is {_described(array.shape, array.dtype)}, and not all of its {high - low:,} bytes are memory of "
            "this process: its address, shape or strides are wrong"
        )
    _check_file(array, owner, low, high, role)


def _owner(array: Array) -> Any:
    """The array or object that has the memory: views of views are followed, also through the objects that as_strided
    keeps its sources in."""
    owner: Any = array.base
    while True:
        if isinstance(owner, np.ndarray):
            if owner.flags.owndata or owner.base is None:
                return owner
        elif isinstance(owner, mmap.mmap) or not isinstance(getattr(owner, "base", None), np.ndarray):
            return owner
        owner = owner.base


def _bounds(owner: Any) -> tuple[int, int] | None:
    """The first and past-the-last address of an owner's memory; None where it is unknown."""
    if isinstance(owner, np.ndarray):
        return byte_bounds(owner) if owner.flags.owndata else None
    try:
        whole = np.frombuffer(owner, np.uint8)
    except (TypeError, ValueError, BufferError):
        return None
    return byte_bounds(whole) if whole.size else (address(whole), address(whole))


def _check_file(array: Array, owner: Any, low: int, high: int, role: str) -> None:
    """Refuse a mapped file that was truncated: an access past its end raises a signal."""
    mapping_of_file: Any = owner.obj if isinstance(owner, memoryview) else owner
    if not isinstance(mapping_of_file, mmap.mmap):
        return
    mapping: Any = array
    while isinstance(mapping, np.ndarray) and not isinstance(mapping, np.memmap):
        mapping = mapping.base
    if not isinstance(mapping, np.memmap):
        return
    start = address(np.frombuffer(mapping_of_file, np.uint8))
    begins = mapping.offset - mapping.offset % mmap.ALLOCATIONGRANULARITY
    try:
        there = mapping_of_file.size() - begins
    except (OSError, ValueError):
        return
    if high - start > there:
        name = getattr(mapping, "filename", None) or "its file"
        raise FileError(f"{role} is mapped from {name}, which was cut short to {there + begins:,} bytes meanwhile")


def _advice(advise: Any, access: int) -> int:
    """The result of the madvise call for a page with this access."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=access) as page:
        whole = np.frombuffer(page, np.uint8)  # for its address
        answer = int(advise(whole.ctypes.data, mmap.PAGESIZE, POPULATE[False]))
        del whole
    return answer


@lru_cache(maxsize=1)
def _page_check() -> tuple[Any, dict[bool, int]] | None:
    """A system call that tests whether pages can be read, or written; None where there is none.

    Linux since 5.14 has advice that faults pages in as an access would, and fails where that would raise a signal: no
    page, one without read access, a truncated file. Elsewhere msync, which fails on a range with an unmapped page; also
    where the advice is unknown or always succeeds (user-mode qemu), which a page without access shows.
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
    works = sys.platform == "linux" and _advice(advise, mmap.PROT_READ) == 0 and _advice(advise, NO_ACCESS) != 0
    return (advise, POPULATE) if works else (sync, {False: MS_ASYNC, True: MS_ASYNC})


def mapped(low: int, high: int, written: bool = False) -> bool:
    """Whether every byte from one address to another can be read (or `written`); true where it cannot be tested."""
    if low < 0 or high > ADDRESSES:
        return False  # long strides wrap around in C
    check = _page_check()
    if check is None or high <= low:
        return True
    call, how = check
    page = mmap.PAGESIZE
    start = low // page * page
    return bool(call(start, high - start, how[written]) == 0 or ctypes.get_errno() not in REFUSED)
