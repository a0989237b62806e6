"""A family: one algorithm for products on a CPU, with what the planner, the compiler and the runner need of it.

Each is a folder in `kernels/`: `model.py` decides what it takes, when it is the best, and how a product is cut into
tasks; `text.py` writes its LLVM. A kernel gets only products that its `takes` accepts, chosen or pinned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks
from tilewise.core.blocking import Blocking, RegisterTile
from tilewise.core.problem import Problem

PERIOD, ASSOCIATIVITY = 2**14, 4  # of NEON's first caches: bytes after which addresses share a set
PAGE = 2**12  # bytes after which addresses share a set of x86's first caches
COLLIDING = 2**11  # bytes from row to row, of which that begins to cost more than packing


class View(NamedTuple):
    """The product as a kernel would compute it, as it is or transposed; an extent of 1 counts as contiguous."""

    m: int
    k: int
    n: int
    m_along_k: bool  # M's elements lie side by side along k
    n_along_k: bool
    n_along_n: bool  # N's lie side by side along its columns
    p_along_n: bool
    swapped: bool
    preferred: bool  # of the two, by how P lies: for kernels that take any strides


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
    """Whether rows of N fall onto so few sets of a core's first cache that a line is gone before its next vector is
    read: widths of 512, 1024, 4096 (NEON; of x86 see `whole_pages_apart`)."""
    apart = _rows_of_n(problem, view)
    period = math.gcd(abs(apart) * problem.dtype.itemsize, PERIOD)
    return tile.neon and apart != 0 and period >= COLLIDING and view.k > ASSOCIATIVITY * PERIOD // period


def whole_pages_apart(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """Whether all rows of N fall onto the same sets of a first cache with 4 KB a way (AVX-512: 48 KB, 12-way)."""
    apart = _rows_of_n(problem, view) * problem.dtype.itemsize
    return tile.vector_bytes == 64 and apart != 0 and apart % PAGE == 0


def _rows_of_n(problem: Problem, view: View) -> int:
    """Elements from one row to the next."""
    return problem.layout_m.col if view.swapped else problem.layout_n.row


def light_or_halves(problem: Problem) -> bool:
    return problem.light or (problem.halves and not problem.semiring.heavy)


@dataclass(frozen=True)
class CpuFamily:
    """`suits` says in a sentence why it is the best, or nothing."""

    name: str
    idea: str
    takes: Callable[[Problem, View, RegisterTile], bool]
    suits: Callable[[Problem, View, RegisterTile], str]
    tasks: Callable[[Arithmetic, Blocking, Extents], Tasks]
    text: Callable[[Arithmetic], str]
    KC: Callable[[Problem], int] = lambda problem: 256  # k of a strip
    columns: int = 1  # of P that a lane holds
    k_pack: Callable[[Problem, RegisterTile], int] | None = None  # k that a lane holds; sums are int32 then
    MC: int = 0  # rows of a packed block of M; 0: as many as the second cache likes
    group: int = 8  # panels of packed N that are walked before the next panel of M
    pairs: bool = False  # complex numbers are multiplied where they lie, as pairs of real ones
    keeps_gil: bool = False  # it takes less time than releasing the GIL
    # whether it takes a problem's numbers, whatever their shape: found once for all sizes
    numbers: Callable[[Problem, RegisterTile], bool] = lambda problem, tile: True


class FamilyModel(Protocol):
    """A family's `model.py`."""

    IDEA: str

    def takes(self, problem: Problem, view: View, tile: RegisterTile, /) -> bool: ...

    def suits(self, problem: Problem, view: View, tile: RegisterTile, /) -> str: ...

    def tasks(self, a: Arithmetic, cut: Blocking, x: Extents, /) -> Tasks: ...


def family(name: str, model: FamilyModel, text: Callable[[Arithmetic], str], **options: Any) -> CpuFamily:
    return CpuFamily(name, model.IDEA, model.takes, model.suits, model.tasks, text, **options)
