"""A family: one algorithm for products on a CPU, as the planner, the compiler and the launcher use it.

Each is a folder in `kernels/`: `model.py` decides what it takes, when it is the best, and how a product is cut into
tasks; `text.py` generates its LLVM IR. A kernel gets only products that its `takes` accepts, chosen or pinned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks
from tilewise.core.blocking import Blocking, RegisterTile
from tilewise.core.problem import Problem

PERIOD, ASSOCIATIVITY = 2**14, 4  # L1 of NEON cores: addresses with this distance in bytes share a set; its ways
PAGE = 2**12  # L1 of x86: addresses with this distance in bytes share a set
COLLIDING = 2**11  # row stride in bytes from which conflict misses cost more than packing


class View(NamedTuple):
    """The product as a kernel would compute it, as it is or transposed; an extent of 1 counts as contiguous."""

    m: int
    k: int
    n: int
    m_along_k: bool  # M is contiguous along k
    n_along_k: bool
    n_along_n: bool  # N's rows are contiguous
    p_along_n: bool
    swapped: bool
    preferred: bool  # P is row-major in this view: the one for kernels that take any strides


def views(problem: Problem) -> tuple[View, View]:
    """P = M ⊗ N, and Pᵀ = Nᵀ ⊗ Mᵀ; that one first where P is one column, and M's columns fill vectors."""
    m, k, n = problem.m, problem.k, problem.n
    M, N, P = problem.layout_m, problem.layout_n, problem.layout_p
    m_rows, m_cols = M.row == 1 or m == 1, M.col == 1 or k == 1
    n_rows, n_cols = N.row == 1 or k == 1, N.col == 1 or n == 1
    p_rows, p_cols = P.row == 1 or m == 1, P.col == 1 or n == 1
    transposed = p_rows and not p_cols
    straight = View(m, k, n, m_cols, n_rows, n_cols, p_cols, False, not transposed)
    swapped = View(n, k, m, n_rows, m_cols, m_rows, p_rows, True, transposed)
    return (swapped, straight) if n == 1 < m and m_rows and (k == 1 or not m_cols) else (straight, swapped)


def is_dot(view: View) -> bool:
    """Whether P is one cell: the dot product of two vectors."""
    return view.m == view.n == 1


def rows_collide(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """Whether rows of N map to so few sets of L1 that a line is evicted before its next vector is read: widths of 512,
    1024, 4096 (NEON; for x86 see `rows_alias_4k`)."""
    stride, period = _row_stride_n(problem, view) * problem.dtype.itemsize, PERIOD
    if not tile.neon or stride == 0 or stride % COLLIDING:
        return False
    while stride % period:
        period //= 2
    return view.k > ASSOCIATIVITY * PERIOD // period


def rows_alias_4k(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """Whether all rows of N map to the same sets of an L1 with 4 KB per way (AVX-512: 48 KB, 12 ways)."""
    stride = _row_stride_n(problem, view) * problem.dtype.itemsize
    return tile.vector_bytes == 64 and stride != 0 and stride % PAGE == 0


def _row_stride_n(problem: Problem, view: View) -> int:
    """N's row stride in elements."""
    return problem.layout_m.col if view.swapped else problem.layout_n.row


def is_x86_sum(problem: Problem, tile: RegisterTile) -> bool:
    """plus_times of float32 or float64 on AVX-512: limits that were measured there alone."""
    return tile.vector_bytes == 64 and problem.light and problem.dtype.kind == "f" and problem.semiring.multiplies


def light_or_halves(problem: Problem) -> bool:
    return problem.light or (problem.halves and not problem.semiring.heavy)


@dataclass(frozen=True)
class CpuFamily:
    """`suits` returns the reason why it is the best choice, or ""."""

    name: str
    idea: str
    takes: Callable[[Problem, View, RegisterTile], bool]
    suits: Callable[[Problem, View, RegisterTile], str]
    tasks: Callable[[Arithmetic, Blocking, Extents], Tasks]
    text: Callable[[Arithmetic], str]
    KC: Callable[[Problem], int] = lambda problem: 256  # k of a strip
    columns: int = 1  # of P per lane
    k_pack: Callable[[Problem, RegisterTile], int] | None = None  # consecutive k per lane; sums are int32 then
    MC: int = 0  # rows of a packed block of M; 0: by the element size
    group: int = 8  # panels of packed N per pass over the panels of M
    pairs: bool = False  # complex operands are read in place, as pairs of real numbers
    k_order: bool = False  # adds up in chains of `core.reproducible`, if the arithmetic is ordered
    keeps_gil: bool = False  # it takes less time than releasing the GIL
    # whether it takes a problem's dtypes and semiring, for any shape: evaluated once for all sizes
    takes_algebra: Callable[[Problem, RegisterTile], bool] = lambda problem, tile: True


class FamilyModel(Protocol):
    """A family's `model.py`."""

    IDEA: str

    def takes(self, problem: Problem, view: View, tile: RegisterTile, /) -> bool: ...

    def suits(self, problem: Problem, view: View, tile: RegisterTile, /) -> str: ...

    def tasks(self, a: Arithmetic, cut: Blocking, x: Extents, /) -> Tasks: ...


def family(name: str, model: FamilyModel, text: Callable[[Arithmetic], str], **options: Any) -> CpuFamily:
    return CpuFamily(name, model.IDEA, model.takes, model.suits, model.tasks, text, **options)
