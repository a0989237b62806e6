"""`chain` and `power`: products of matrices in the order that costs the fewest steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, overload

import numpy as np

from tilewise.algebra.builtin import find_semiring, is_plus_times
from tilewise.algebra.modular import Modular
from tilewise.algebra.names import BooleanName
from tilewise.algebra.semiring import Semiring
from tilewise.api import matmul
from tilewise.arrays import ArrayOf, HostArray, Kind, Number
from tilewise.arrays.torch_graph import in_graph, whole_in_graph
from tilewise.core.options import AnySemiring, Numeric
from tilewise.core.reproducible import Level, check_reproducible
from tilewise.errors import ShapeError, UsageError
from tilewise.functions.contraction.laws import check_regroups, check_signs, one_over
from tilewise.functions.contraction.traced import check_not_compiled, is_compiled, name_in_graph, semiring_in_graph
from tilewise.functions.contraction.views import array_of, dtype_of_array, to_library_of
from tilewise.system.quantities import counted


@overload
def chain(
    operands: Sequence[ArrayOf[Any]], /, *, semiring: BooleanName, reproducible: Level = ...
) -> ArrayOf[np.bool_]: ...
@overload
def chain(
    operands: Sequence[ArrayOf[Number]], /, *, semiring: Numeric = ..., reproducible: Level = ...
) -> ArrayOf[Number]: ...
@overload
def chain(operands: Sequence[Kind], /, *, semiring: AnySemiring = ..., reproducible: Level = ...) -> Kind: ...
@overload
def chain(operands: Sequence[Any], /, *, semiring: AnySemiring = ..., reproducible: Level = ...) -> HostArray: ...
def chain(operands: Sequence[Any], /, *, semiring: AnySemiring = "plus_times", reproducible: Level = None) -> Any:
    """The product of all of them from left to right, grouped so that it takes the fewest steps.

    The first may be a vector, and the last; stacks broadcast as in `tw.matmul`.
    reproducible: as in `tw.matmul`, for each product. How they are grouped follows from the shapes; with "batch" it
    does not depend on the rows of the first.

    >>> tall = np.ones((1000, 2))
    >>> tw.chain([tall, tall.T, tall]).shape     # tall · (tallᵀ · tall): 8,000 steps instead of 4,000,000
    (1000, 2)
    """
    if not hasattr(operands, "__getitem__") or isinstance(operands, str | bytes | dict):
        raise UsageError(f"chain takes a list of matrices, and was given {type(operands).__name__}")
    if is_compiled(operands):
        check_not_compiled(reproducible, "chain")
        return in_graph("traced_chain", name_in_graph(semiring), *operands)
    return _chain(operands, find_semiring(semiring), check_reproducible(reproducible))


@whole_in_graph
def traced_chain(name: str, *operands: Any) -> Any:
    return _chain(operands, semiring_in_graph(name))


def _chain(operands: Sequence[Any], ring: Semiring, level: str | None = None) -> Any:
    matrices = [array_of(x, f"operand {number} of the chain") for number, x in enumerate(operands, 1)]
    if not matrices:
        raise UsageError("chain takes at least one matrix, and was given none")
    for number, x in enumerate(matrices, 1):
        if x.ndim < 1 or (x.ndim == 1 and number not in (1, len(matrices))):
            raise ShapeError(
                f"operand {number} of the chain has {counted(x.ndim, 'axis', 'axes')}: "
                "only the first and the last are vectors"
            )
    if len(matrices) == 1:
        return _single_operand(matrices[0], ring)
    dims = [1 if matrices[0].ndim == 1 else int(matrices[0].shape[-2])]
    for number, x in enumerate(matrices, 1):
        rows = int(x.shape[-1] if x.ndim == 1 and number == 1 else x.shape[0] if x.ndim == 1 else x.shape[-2])
        if number > 1 and rows != dims[-1]:
            raise ShapeError(f"operand {number} of the chain has {rows} rows, and the one before it {dims[-1]} columns")
        dims.append(int(x.shape[-1]) if x.ndim > 1 or number == 1 else 1)
    if len(matrices) > 2:
        _check(ring, matrices)
    if level == "batch":
        dims[0] = 1
    return _multiply(matrices, best_order(tuple(dims)), 0, len(matrices) - 1, _keywords(ring, level))


@lru_cache(maxsize=1024)
def best_order(dims: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Where to split each subchain (i, j), by dynamic programming over the extents."""
    count = len(dims) - 1
    cost = {(i, i): 0 for i in range(count)}
    cut: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            steps = {k: cost[i, k] + cost[k + 1, j] + dims[i] * dims[k + 1] * dims[j + 1] for k in range(i, j)}
            cut[i, j] = min(steps, key=steps.__getitem__)
            cost[i, j] = steps[cut[i, j]]
    return cut


def _multiply(matrices: list[Any], cut: dict[tuple[int, int], int], i: int, j: int, how: dict[str, Any]) -> Any:
    if i == j:
        return matrices[i]
    k = cut[i, j]
    left, right = _multiply(matrices, cut, i, k, how), _multiply(matrices, cut, k + 1, j, how)
    return matmul(left, right, **how)


def _keywords(ring: Semiring, level: str | None) -> dict[str, Any]:
    """Of each product."""
    return {"semiring": ring} if level is None else {"semiring": ring, "reproducible": level}


@overload
def power(A: ArrayOf[Any], n: int, /, *, semiring: BooleanName, reproducible: Level = ...) -> ArrayOf[np.bool_]: ...
@overload
def power(A: ArrayOf[Number], n: int, /, *, semiring: Numeric = ..., reproducible: Level = ...) -> ArrayOf[Number]: ...
@overload
def power(A: Kind, n: int, /, *, semiring: AnySemiring = ..., reproducible: Level = ...) -> Kind: ...
@overload
def power(A: Any, n: int, /, *, semiring: AnySemiring = ..., reproducible: Level = ...) -> HostArray: ...
def power(A: Any, n: int, /, *, semiring: AnySemiring = "plus_times", reproducible: Level = None) -> Any:
    """A ⊗ A ⊗ … ⊗ A, n times, by squaring. The power 0 is the semiring's identity matrix.

    A: a square matrix, or a stack of them. Integers whose products overflow wrap, and under min_times and max_times the
    order of products then shows. reproducible: as in `tw.matmul`, for each product.

    >>> hops = np.array([[0, 1, np.inf], [np.inf, 0, 1], [np.inf, np.inf, 0]])
    >>> tw.power(hops, 2, semiring="min_plus")[0, 2]
    np.float64(2.0)
    """
    if is_compiled([A]):
        check_not_compiled(reproducible, "power")
        return in_graph("traced_power", name_in_graph(semiring), A, n)
    return _power(array_of(A, "A"), n, find_semiring(semiring), check_reproducible(reproducible))


@whole_in_graph
def traced_power(name: str, A: Any, n: int) -> Any:
    return _power(A, n, semiring_in_graph(name))


def _power(A: Any, n: int, ring: Semiring, level: str | None = None) -> Any:
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ShapeError(f"power takes square matrices, and A is {tuple(A.shape)}")
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise UsageError(f"n={n!r} must be a whole number of 0 or more: a semiring has no inverses")
    if n == 0:
        return _identity(A, ring, tuple(map(int, A.shape)))
    if n == 1:
        return _single_operand(A, ring)
    if n > 2:
        _check(ring, [A])
    made, square, how = None, A, _keywords(ring, level)
    while n:
        if n & 1:
            made = square if made is None else matmul(made, square, **how)
        n >>= 1
        if n:
            square = matmul(square, square, **how)
    return made


def _single_operand(A: Any, ring: Semiring) -> Any:
    """The product of one operand: itself, except for semirings whose results are truth values or remainders."""
    if not ring.boolean and not isinstance(ring, Modular):
        return A
    size = int(A.shape[-1])
    return matmul(A, _identity(A, ring, (size, size)), semiring=ring)


def _identity(A: Any, ring: Semiring, shape: tuple[int, ...]) -> Any:
    """The identity matrix in A's library, or a stack of it."""
    algebra = ring.over(dtype_of_array(A))
    flat = np.full(shape[-2:], algebra.zero, algebra.partial.numpy)
    np.fill_diagonal(flat, one_over(algebra))
    host = np.broadcast_to(flat.astype(algebra.result.numpy), shape).copy()
    return to_library_of(A, host, algebra.result.name)


def _check(ring: Semiring, matrices: list[Any]) -> None:
    if is_plus_times(ring):
        return
    always = check_regroups(ring, ring.over(dtype_of_array(matrices[0])).partial, reorders=False)
    if not always:
        check_signs(ring, matrices, "multiply from left to right yourself")
