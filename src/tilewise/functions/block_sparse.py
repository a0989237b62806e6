"""Block-sparse products: a mask says which tiles of M hold anything, and only those are multiplied.

The tiles of a row of tiles, side by side, are a group of k: P's rows of that tile are one product of what is there with
the rows of N that it meets. So all of P is one product over groups, in one launch on a card.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from tilewise.algebra.names import BooleanName
from tilewise.arrays import ArrayOf, HostArray, Kind, Number
from tilewise.arrays.labelled import as_host, check_plain, check_whole
from tilewise.core.options import AnySemiring, Numeric
from tilewise.errors import ShapeError
from tilewise.functions.groups import grouped_matmul
from tilewise.system.imported import imported


@overload
def block_sparse_matmul(
    M: HostArray, N: HostArray, mask: Any, /, *, semiring: BooleanName, precision: str = "high"
) -> ArrayOf[np.bool_]: ...
@overload
def block_sparse_matmul(
    M: ArrayOf[Number], N: ArrayOf[Number], mask: Any, /, *, semiring: Numeric = ..., precision: str = "high"
) -> ArrayOf[Number]: ...
@overload
def block_sparse_matmul(
    M: Kind, N: Kind, mask: Any, /, *, semiring: AnySemiring = ..., precision: str = "high"
) -> Kind: ...
@overload
def block_sparse_matmul(
    M: Any, N: Any, mask: Any, /, *, semiring: AnySemiring = ..., precision: str = "high"
) -> HostArray: ...
def block_sparse_matmul(
    M: Any, N: Any, mask: Any, /, *, semiring: AnySemiring = "plus_times", precision: str = "high"
) -> Any:
    """M · N where M counts only in the tiles that `mask` names: elsewhere it is the semiring's zero, whatever it holds.

    M: m × k, N: k × n, arrays of one library, on the host or on a card; PyTorch's gradients reach the tiles and N.
    mask: true where a tile of M holds something. Its shape is how many tiles M has along m and k, and divides M's. It
        is read on the host: a mask on a card is waited for.
    semiring, precision: as in `tw.matmul`.

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
    held = _mask(mask, M, N)
    (m, k), (tiles_m, tiles_k) = M.shape, held.shape
    height, depth = m // tiles_m, k // tiles_k
    row, col = np.nonzero(held)
    ends = np.cumsum(held.sum(1)) * depth
    i, j, offsets = (_beside(M, x) for x in (row, col, ends))
    left = M.reshape(tiles_m, height, tiles_k, depth)[i, :, j].swapaxes(1, 2).reshape(len(row) * depth, height)
    right = N.reshape(tiles_k, depth, N.shape[1])[j].reshape(len(row) * depth, N.shape[1])
    made = grouped_matmul(left, right, offsets, along="k", semiring=semiring, precision=precision)
    return made.reshape(m, N.shape[1])


def _mask(mask: Any, M: Any, N: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The mask on the host, checked."""
    torch = imported("torch")
    if torch is not None and isinstance(mask, torch.Tensor):
        mask = mask.cpu().numpy()
    held = as_host(mask.get() if hasattr(mask, "get") else mask, "mask").astype(bool)
    if M.ndim != 2 or N.ndim != 2 or held.ndim != 2:
        raise ShapeError(f"M, N and the mask have {M.ndim}, {N.ndim} and {held.ndim} axes: each must have two")
    if M.shape[1] != N.shape[0]:
        raise ShapeError(f"the {M.shape[1]} columns of M do not meet the {N.shape[0]} rows of N; they must be equal")
    for extent, tiles, name in zip(M.shape, held.shape, ("rows", "columns"), strict=True):
        if not tiles or extent % tiles:
            raise ShapeError(
                f"the mask has {tiles} tiles along M's {extent} {name}: that must be a divisor of {extent}"
            )
    return held


def _beside(M: Any, numbers: Any) -> Any:
    """Whole numbers as an array of M's library, where M is."""
    torch, cupy, jax = imported("torch"), imported("cupy"), imported("jax")
    if torch is not None and isinstance(M, torch.Tensor):
        return torch.as_tensor(numbers, device=M.device)
    if jax is not None and isinstance(M, jax.Array):
        return jax.numpy.asarray(numbers)
    return cupy.asarray(numbers) if cupy is not None and isinstance(M, cupy.ndarray) else numbers
