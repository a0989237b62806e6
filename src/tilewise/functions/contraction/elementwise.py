"""A semiring's mul on whole arrays that broadcast, for pairs that share no summed label; NumPy's sums along axes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.no_edge import no_edge_of
from tilewise.algebra.semiring import Algebra
from tilewise.api import matmul
from tilewise.system.imported import imported


def multiplied(algebra: Algebra, x: Any, y: Any) -> Any:
    """mul(x, y), elementwise."""
    if is_plus_times(algebra.semiring) and not algebra.semiring.boolean and algebra.partial.kind != "b":
        return x * y
    torch = imported("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        from tilewise.torch.followed import elementwise

        return elementwise(algebra.semiring, x, y)
    dask = imported("dask.array")
    if dask is not None and (isinstance(x, dask.Array) or isinstance(y, dask.Array)):
        return dask.core.elemwise(partial(_by_numpy, algebra), x, y, dtype=algebra.result.numpy)
    if type(x).__module__.startswith("numpy") or isinstance(x, np.ndarray):
        return _by_numpy(algebra, x, y)
    return matmul(x[..., None, None], y[..., None, None], semiring=algebra.semiring)[..., 0, 0]


def _by_numpy(algebra: Algebra, x: Any, y: Any) -> Any:
    wide, edges = algebra.partial.numpy, no_edge_of(algebra)
    x, y = (v != 0 if algebra.semiring.boolean else v.astype(wide, copy=False) for v in (x, y))
    with np.errstate(all="ignore"):
        if edges is None:
            return np.asarray(algebra.mul(x, y)).astype(algebra.result.numpy, copy=False)
        made = np.asarray(algebra.mul(*(edges.encode(v, name)[0] for v, name in ((x, "M"), (y, "N")))))
        edges.decode(made)
        return made.astype(algebra.result.numpy, copy=False)


def sums_in_numpy(algebra: Algebra, x: Any) -> bool:
    """Whether NumPy's own sum is plus_times': for NumPy arrays whose accumulator dtype is the result's."""
    plain = is_plus_times(algebra.semiring) and algebra.partial == algebra.result
    return plain and type(x) is np.ndarray and x.dtype == algebra.result.numpy and algebra.result.kind in "iufc"


def summed(x: Any, axes: tuple[int, ...]) -> Any:
    """The sum over these axes, in x's dtype."""
    with np.errstate(all="ignore"):
        return np.asarray(np.add.reduce(x, axes, x.dtype))
