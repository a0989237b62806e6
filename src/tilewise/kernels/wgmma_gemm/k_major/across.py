"""What `k_across.cu` is given: descriptors for lines that start anywhere, a class of them at a time."""

from __future__ import annotations

from collections.abc import Callable

from tilewise.core.recipe import Address, TensorMap
from tilewise.kernels.shared.placed import Placed
from tilewise.kernels.wgmma_gemm.k_major.model import KMajorConfig, lines_apart
from tilewise.kernels.wgmma_gemm.k_major.seconds import CLASSES

DEPTH = 32  # of k in a stage
STAGED_ROWS = 16  # of P
BOX_BYTES, SPARE = 16, {True: 4, False: 8}  # what a box starts on; columns it brings beside the tile's, by `apart`


def classes_of(x: Placed, member: tuple[int, ...], classes: int) -> list[tuple[Address, int, int, int, int]]:
    """(address on a boundary, rows, length, bytes from row to row, elements before the first) of each class of rows."""
    made, size, lead = [], x.dtype.itemsize, x.layout.row
    for at in range(classes):
        address = x.member(member) + size * at * lead
        misalignment = address % BOX_BYTES // size
        rows = (x.rows - at + classes - 1) // classes
        made.append((address - address % BOX_BYTES, rows, x.cols + misalignment, size * classes * lead, misalignment))
    return made


def maps_of_n(
    N: Placed, config: KMajorConfig, member: tuple[int, ...], tensor_map: Callable[..., TensorMap]
) -> tuple[list[TensorMap], list[int]]:
    """Descriptors of N's lines, and how many elements before them each begins."""
    scattered, tile = lines_apart(N.layout), config.tile
    lines = DEPTH // CLASSES if scattered else DEPTH // (1 if tile.beside else tile.cluster)
    width = tile.cols + SPARE[scattered]
    parts = classes_of(N, member, CLASSES if scattered else 1)
    return [tensor_map(*part[:4], 4, width, lines, swizzled=False) for part in parts], [part[4] for part in parts]
