"""Groups of rows on the host: one product after the other, each prepared by its own signature."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from tilewise import api
from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import dtype_of, promote
from tilewise.algebra.semiring import Semiring
from tilewise.arrays import HostArray


def multiply_in_turn(
    M: HostArray, N: HostArray, P: HostArray, ends: list[int], by_k: bool, zero: Any, keywords: dict[str, Any]
) -> None:
    """P of the groups that end there; rows behind the last are `zero`."""
    start, multiply = 0, api.matmul
    for group, end in enumerate(ends):
        if by_k:
            multiply(M[:, start:end], N[start:end], out=P[group], **keywords)
        elif end > start:
            multiply(M[start:end], N[group], out=P[start:end], **keywords)
        start = end
    if not by_k and start < len(P):
        P[start:] = zero


@lru_cache(maxsize=1024)
def _result(left: Any, right: Any, semiring: str | Semiring) -> tuple[Any, Any]:
    """The dtype of P, and the semiring's zero in it."""
    algebra = find_semiring(semiring).over(promote(dtype_of(left), dtype_of(right)))
    with np.errstate(all="ignore"):
        return algebra.result.numpy, np.asarray(algebra.zero).astype(algebra.result.numpy)


def plain_groups(x: Any, w: Any, offsets: Any, semiring: str | Semiring, precision: str) -> HostArray | None:
    """The product of groups of rows of plain NumPy arrays that fit each other, or None: then somebody says why not."""
    if not (x.__class__ is w.__class__ is offsets.__class__ is np.ndarray) or x.ndim != 2 or w.ndim != 3:
        return None
    fits = offsets.ndim == 1 and len(w) == len(offsets) > 0 and x.shape[1] == w.shape[1]
    if not fits or offsets.dtype not in (np.int32, np.int64) or not (x.dtype.isnative and w.dtype.isnative):
        return None
    ends = offsets.tolist()
    if ends[0] < 0 or ends[-1] > len(x) or any(a > b for a, b in pairwise(ends)):
        return None
    keywords: dict[str, Any] = {} if semiring == "plus_times" else {"semiring": semiring}
    if precision != "high":
        keywords["precision"] = precision
    dtype, zero = _result(x.dtype, w.dtype, semiring)
    product = np.empty((len(x), w.shape[2]), dtype)
    multiply_in_turn(x, w, product, ends, False, zero, keywords)
    return product
