"""Block-sparse products: a mask selects the tiles of M that are multiplied.

The selected tiles of a row of tiles, concatenated along k, times the matching rows of N are the rows of P of that tile.
So P is one product over groups of k, in one launch on a card.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from tilewise.algebra.names import BooleanName
from tilewise.arrays import ArrayOf, HostArray, Kind, Number
from tilewise.arrays.labelled import as_host, check_plain, check_whole
from tilewise.core.options import AnySemiring, Numeric
from tilewise.core.reproducible import Level
from tilewise.errors import ShapeError
from tilewise.functions.groups import grouped_matmul
from tilewise.system.imported import imported


@overload
def block_sparse_matmul(
    M: HostArray,
    N: HostArray,
    mask: Any,
    /,
    *,
    semiring: BooleanName,
    precision: str = "high",
    reproducible: Level = None,
) -> ArrayOf[np.bool_]: ...
@overload
def block_sparse_matmul(
    M: ArrayOf[Number],
    N: ArrayOf[Number],
    mask: Any,
    /,
    *,
    semiring: Numeric = ...,
    precision: str = "high",
    reproducible: Level = None,
) -> ArrayOf[Number]: ...
@overload
def block_sparse_matmul(
    M: Kind, N: Kind, mask: Any, /, *, semiring: AnySemiring = ..., precision: str = "high", reproducible: Level = None
) -> Kind: ...
@overload
def block_sparse_matmul(
    M: Any, N: Any, mask: Any, /, *, semiring: AnySemiring = ..., precision: str = "high", reproducible: Level = None
) -> HostArray: ...
def block_sparse_matmul(
    M: Any,
    N: Any,
    mask: Any,
    /,
    *,
    semiring: AnySemiring = "plus_times",
    precision: str = "high",
    reproducible: Level = None,
) -> Any:
    """M · N of the tiles of M that `mask` selects: elsewhere M is taken as the semiring's zero, whatever it holds.

    M: m × k, N: k × n, arrays of one library, on the host or on a card; PyTorch's gradients reach the tiles and N.
    mask: true for the tiles to multiply. Its shape is the number of tiles of M along m and k, and divides M's. It
        is read on the host: a mask on a card is waited for.
    semiring, precision: as in `tw.matmul`; reproducible: as in `tw.grouped_matmul`, k being that of the tiles.

    >>> M, N = np.arange(16.0).reshape(4, 4), np.ones((4, 1))
    >>> tw.block_sparse_matmul(M, N, [[True, False], [False, False]])
    array([[1.],
           [9.],
           [0.],
           [0.]])
    """
    for x, role in ((M, "M"), (N, "N")):
        check_plain(x, role)
        check_whole(x, role)
    M, N = (x if hasattr(x, "ndim") else as_host(x, role) for x, role in ((M, "M"), (N, "N")))
    tiles_present = _mask(mask, M, N)
    (m, k), (tiles_m, tiles_k) = M.shape, tiles_present.shape
    height, depth = m // tiles_m, k // tiles_k
    row, col = np.nonzero(tiles_present)
    ends = np.cumsum(tiles_present.sum(1)) * depth
    i, j, offsets = (_index_array(M, x) for x in (row, col, ends))
    left = M.reshape(tiles_m, height, tiles_k, depth)[i, :, j].swapaxes(1, 2).reshape(len(row) * depth, height)
    right = N.reshape(tiles_k, depth, N.shape[1])[j].reshape(len(row) * depth, N.shape[1])
    how: Any = {"semiring": semiring, "precision": precision, "reproducible": reproducible}
    made = grouped_matmul(left, right, offsets, along="k", **how)
    return made.reshape(m, N.shape[1])


def _mask(mask: Any, M: Any, N: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The mask on the host, checked."""
    torch = imported("torch")
    if torch is not None and isinstance(mask, torch.Tensor):
        mask = mask.cpu().numpy()
    tiles_present = as_host(mask.get() if hasattr(mask, "get") else mask, "mask").astype(bool)
    if M.ndim != 2 or N.ndim != 2 or tiles_present.ndim != 2:
        raise ShapeError(f"M, N and the mask have {M.ndim}, {N.ndim} and {tiles_present.ndim} axes: each must have two")
    if M.shape[1] != N.shape[0]:
        raise ShapeError(f"the {M.shape[1]} columns of M do not meet the {N.shape[0]} rows of N; they must be equal")
    for extent, tiles, name in zip(M.shape, tiles_present.shape, ("rows", "columns"), strict=True):
        if not tiles or extent % tiles:
            raise ShapeError(
                f"the mask has {tiles} tiles along M's {extent} {name}: that must be a divisor of {extent}"
            )
    return tiles_present


def _index_array(M: Any, numbers: Any) -> Any:
    """Indices as an array of M's library, on M's device."""
    torch, cupy, jax = imported("torch"), imported("cupy"), imported("jax")
    if torch is not None and isinstance(M, torch.Tensor):
        return torch.as_tensor(numbers, device=M.device)
    if jax is not None and isinstance(M, jax.Array):
        return jax.numpy.asarray(numbers)
    return cupy.asarray(numbers) if cupy is not None and isinstance(M, cupy.ndarray) else numbers
