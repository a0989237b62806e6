"""Lists of unrelated products: small ones of one dtype on a card in one launch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.names import BooleanName
from tilewise.algebra.semiring import Semiring
from tilewise.api import matmul, torch_follows
from tilewise.arrays import ArrayOf, HostArray, Kind, Library, Number, Operand, find_library
from tilewise.core.options import AnySemiring, Numeric
from tilewise.core.problem import check_precision
from tilewise.core.reproducible import Level, check_reproducible
from tilewise.errors import UsageError

Pair = tuple[Any, Any]


@overload
def matmul_many(
    pairs: Iterable[tuple[ArrayOf[Number], ArrayOf[Number]]],
    /,
    *,
    semiring: Numeric = ...,
    precision: str = "high",
    reproducible: Level = None,
) -> list[ArrayOf[Number]]: ...
@overload
def matmul_many(
    pairs: Iterable[tuple[HostArray, HostArray]],
    /,
    *,
    semiring: BooleanName,
    precision: str = "high",
    reproducible: Level = None,
) -> list[ArrayOf[np.bool_]]: ...
@overload
def matmul_many(
    pairs: Iterable[tuple[Kind, Kind]],
    /,
    *,
    semiring: AnySemiring = ...,
    precision: str = "high",
    reproducible: Level = None,
) -> list[Kind]: ...
@overload
def matmul_many(
    pairs: Iterable[tuple[Any, Any]],
    /,
    *,
    semiring: AnySemiring = ...,
    precision: str = "high",
    reproducible: Level = None,
) -> list[HostArray]: ...
def matmul_many(
    pairs: Iterable[Pair],
    /,
    *,
    semiring: AnySemiring = "plus_times",
    precision: str = "high",
    reproducible: str | None = None,
) -> Any:
    """The product of every pair, of any shapes, as `tw.matmul` makes it.

    On a card, small products of one dtype (up to 8 million steps each) are launched together, forty at a time, so that
    a list of them costs little more than one. Pairs whose operands are one after the other the same matrices of a stack
    are better off as a stack, and those of one matrix's rows with `tw.grouped_matmul`. With `reproducible=` each is
    launched by itself.

    >>> tw.matmul_many([(np.eye(2), np.ones((2, 1))), (np.ones((1, 3)), np.eye(3))])
    [array([[1.],
           [1.]]), array([[1., 1., 1.]])]
    """
    given, ring = _pairs(pairs), find_semiring(semiring)
    check_precision(precision)
    made: list[Any] = [None] * len(given)
    how: dict[str, Any] = {} if check_reproducible(reproducible) is None else {"reproducible": reproducible}
    grouped = {} if how else _groupable(given)
    if len(grouped) > 1:
        _launch_together(grouped, made, ring)
    else:
        grouped = {}
    for number, (M, N) in enumerate(given):
        if number not in grouped:
            made[number] = matmul(M, N, semiring=semiring, precision=precision, **how)
    return made


def _pairs(pairs: Iterable[Pair]) -> list[Pair]:
    try:
        return [(M, N) for M, N in pairs]
    except (TypeError, ValueError):
        raise UsageError(f"pairs must be a list of pairs (M, N), and {type(pairs).__name__} is none") from None


def _groupable(pairs: list[Pair]) -> dict[int, tuple[Operand, Operand]]:
    """The operands of the pairs that one launch can compute, by number: small matrices on one card, of one dtype,
    without gradients."""
    found: dict[int, tuple[Operand, Operand]] = {}
    for number, pair in enumerate(pairs):
        operands = _on_a_card(pair)
        if operands is None:
            continue
        M, N = operands
        first = next(iter(found.values()), operands)[0]
        if all((x.dtype, x.device, x.library.name) == (first.dtype, first.device, first.library.name) for x in (M, N)):
            found[number] = operands
    return found


def _on_a_card(pair: Pair) -> tuple[Operand, Operand] | None:
    from tilewise.kernels.simt_gemm.grouped import SMALL

    M, N = pair
    kinds = {type(x).__module__.partition(".")[0] for x in pair}
    if len(kinds) > 1 or not kinds <= {"torch", "cupy"}:
        return None
    if "torch" in kinds and (not M.is_cuda or torch_follows(M, N)):
        return None
    library: Library = find_library(M)
    left, right = library.operand(M, "M"), library.operand(N, "N")
    fits = len(left.shape) == len(right.shape) == 2 and left.shape[1] == right.shape[0]
    if not fits or left.device == "cpu" or left.dtype.kind == "c":
        return None
    return (left, right) if left.shape[0] * left.shape[1] * right.shape[1] <= SMALL else None


def _launch_together(grouped: dict[int, tuple[Operand, Operand]], made: list[Any], ring: Semiring) -> None:
    """Queue one launch of all pairs on the caller's stream, and put each product into its place of `made`."""
    from tilewise.backends.cuda.launcher import Launcher
    from tilewise.kernels.simt_gemm.grouped import Job, many_recipe

    first = next(iter(grouped.values()))[0]
    library, device, algebra, jobs = first.library, first.device, ring.over(first.dtype), []
    for number, (M, N) in grouped.items():
        (m, k), n = M.shape, N.shape[1]
        P = library.empty((m, n), algebra.result, device)
        jobs.append(Job(M.pointer, N.pointer, P.pointer, *M.strides, *N.strides, *P.strides, m, k, n))
        made[number] = library.deliver(P)
    Launcher(many_recipe(algebra, jobs), device)(library.stream(device))
