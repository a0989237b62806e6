"""Groups of rows on the host: one product after the other, prepared once for each size of a group."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import dtype_of, promote
from tilewise.algebra.semiring import Semiring
from tilewise.arrays import HostArray
from tilewise.arrays.extent import held
from tilewise.backends.cpu.ready import Ready
from tilewise.backends.cpu.runtime.pool import num_threads
from tilewise.core.problem import Layout, Problem, check_precision
from tilewise.dispatch import product as dispatch
from tilewise.dispatch.execute import machine_of
from tilewise.planning.choose import make_plan
from tilewise.scale.pieces import is_long

Multiply = Callable[[HostArray, HostArray, HostArray], Any]  # M, N and P


def into(M: HostArray, N: HostArray, P: HostArray, **keywords: Any) -> None:
    """P = M · N by `matmul`."""
    dispatch.matmul(M, N, out=P, **keywords)


def multiply_groups(
    M: HostArray,
    N: HostArray,
    P: HostArray,
    ends: list[int],
    by_k: bool,
    zero: Any,
    multiply: Callable[[int], Multiply],
) -> None:
    """Write P for the groups with these ends. Rows behind the last group, and products of empty groups, are `zero`.
    `multiply`: from the size of a group to the function that multiplies it."""
    start = 0
    for group, end in enumerate(ends):
        if end == start and by_k:
            P[group] = zero
        elif by_k:
            multiply(end - start)(M[:, start:end], N[start:end], P[group])
        elif end > start:
            multiply(end - start)(M[start:end], N[group], P[start:end])
        start = end
    if not by_k and start < len(P):
        P[start:] = zero


@lru_cache(maxsize=1024)
def _result(left: Any, right: Any, semiring: str | Semiring) -> tuple[Any, Any]:
    """The dtype of P, and the semiring's zero in it."""
    algebra = find_semiring(semiring).over(promote(dtype_of(left), dtype_of(right)))
    with np.errstate(all="ignore"):
        return algebra.result.numpy, np.asarray(algebra.zero).astype(algebra.result.numpy)


@lru_cache(maxsize=4096)
def _prepared(
    sizes: tuple[int, int, int],
    strides: tuple[Any, ...],
    dtype: Any,
    ring: str | Semiring,
    precision: str,
    threads: int,
) -> tuple[Multiply, Ready] | None:
    """The prepared product of a group of this size; None if the CPU backend has no kernel for it. `strides`: of a
    group's rows, of its matrix and of P's rows; `threads` is part of the cache key only. The function does not keep
    its `Ready` alive, so both are returned."""
    m, k, n = sizes
    algebra = find_semiring(ring).over(dtype)
    each = np.dtype(dtype.numpy).itemsize, np.dtype(algebra.result.numpy).itemsize
    layouts = [Layout(*(step // size for step in pair)) for pair, size in zip(strides, (each[0], *each), strict=True)]
    layout_m, layout_n, layout_p = layouts
    problem = Problem(m, k, n, (), dtype, dtype, find_semiring(ring), layout_m, layout_n, layout_p, precision=precision)
    plan = make_plan(problem, machine_of("cpu"))
    if plan.engine != "cpu" or is_long(problem, plan.machine):
        return None
    assert plan.blocking is not None
    ready = Ready(problem, plan.blocking)
    return ready.into_given_memory(), ready


def multiply_prepared_groups(
    M: HostArray,
    N: HostArray,
    P: HostArray,
    ends: list[int],
    by_k: bool,
    zero: Any,
    ring: str | Semiring,
    precision: str,
) -> bool:
    """`multiply_groups` by products prepared for the groups' sizes; False if these arrays need `matmul`. P must not
    overlap M or N, and all must be inside their allocations."""
    check_precision(precision)
    if M.dtype != N.dtype or not P.size or not M.shape[1] or P.dtype != _result(M.dtype, N.dtype, ring)[0]:
        return False
    if not all(x.flags.aligned and not any(step % x.itemsize for step in x.strides) for x in (M, N, P)):
        return False
    dtype, threads, (m, k), n = dtype_of(M.dtype), num_threads(), M.shape, N.shape[-1]
    strides = M.strides, N.strides[-2:], P.strides[-2:]
    calls: dict[int, Multiply] = {}
    kept: list[Ready] = []  # references, because the cache may evict them
    for size in {end - begin for begin, end in pairwise([0, *ends])} - {0}:
        made = _prepared((m, size, n) if by_k else (size, k, n), strides, dtype, ring, precision, threads)
        if made is None:
            return False
        kept.append(made[1])
        calls[size] = made[0]
    multiply_groups(M, N, P, ends, by_k, zero, calls.__getitem__)
    return True


def numpy_groups(
    x: Any, w: Any, offsets: Any, along: str, rows: Any, semiring: Any, out: Any, precision: str, kernel: str | None
) -> HostArray | None:
    """The product of NumPy arrays with default keywords; None for other and for invalid calls."""
    if not (x.__class__ is w.__class__ is offsets.__class__ is np.ndarray) or x.ndim != 2 or w.ndim != 3:
        return None
    if not (along.__class__ is precision.__class__ is str) or not isinstance(semiring, str | Semiring):
        return None
    if along != "rows" or rows is not None or out is not None or kernel is not None:
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
    known = held(x, "x") and held(w, "w")
    if not (known and multiply_prepared_groups(x, w, product, ends, False, zero, semiring, precision)):
        multiply_groups(x, w, product, ends, False, zero, lambda _: partial(into, **keywords))
    return product
