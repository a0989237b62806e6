"""How a product is cut for a CPU: which kernel, the register tile MR × NR, the strips KC, MC, NC.

Pure functions over plain values: a plan can be made for an instruction set that is not there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.algebra.dtypes import DType
from tilewise.algebra.expression import Apply, Expression, Variable
from tilewise.algebra.to_llvm import KINDS
from tilewise.errors import UsageError
from tilewise.problem import Problem

FEW = 16  # rows or columns that count as a handful
TINY = 2048  # steps up to which the call is the cost
LITTLE = 2**20  # steps times bytes up to which packing costs more than it brings: 64³ in float32
TALL_K = 8192  # from here on k is shared among threads where P is small
SMALL_P = 256 * 256  # cells of such a P
NARROW = 2**25  # steps from which integers of one or two bytes are better spread over 32 bits, by packing M
DEPTH = 384  # of a packed strip of k: deeper ones visit P less often, but leave the first cache no room
HEAVY = ("exp", "log", "log1p", "logaddexp")  # a call of the C library, or a long chain of instructions
KERNELS = {
    "packed_n": "M is read where it lies, panels of N are packed on the way, a register tile over all of KC",
    "packed": "panels of M and N packed first: for any strides and dtypes",
    "bits": "truth values, eight columns to a byte",
    "little": "everything lies in the caches; M and N are read where they lie",
    "few_rows": "a handful of rows; N is read once, where it lies",
    "few_columns": "a handful of columns; M is read once, where it lies",
    "dots": "one column; dot products along k",
    "tiny": "a call that costs more than its arithmetic",
}


@dataclass(frozen=True)
class Blocking:
    """The choice. `swapped`: Pᵀ = Nᵀ ⊗ Mᵀ is computed, because P's rows lie side by side and its columns do not."""

    kernel: str
    swapped: bool
    MR: int
    NR: int
    KC: int
    MC: int
    NC: int
    group: int  # columns of packed N that are walked before the next panel of M
    why: str = ""
    columns: int = 1  # columns of P that a lane holds: eight where truth values are packed into bits

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("swapped", "MR", "NR", "KC", "MC", "NC", "group")}


def register_tile(registers: int, dtype: DType, *, tracks_arg: bool = False, heavy: bool = False) -> tuple[int, int]:
    """Rows and vectors of the tile whose sums stay in registers over k."""
    wide = registers >= 32
    if heavy:  # a step hides the next one's loads, and wants the registers for itself
        return (4, 1)
    if tracks_arg:
        return (4, 3) if wide else (3, 2)
    if dtype.kind == "c":
        return (6, 2) if wide else (3, 2)
    return (8, 3) if wide else (6, 2)


def uses(tree: Expression, ops: tuple[str, ...]) -> bool:
    """Whether any of the operations occurs in the tree."""
    return isinstance(tree, Apply) and (tree.op in ops or any(uses(arg, ops) for arg in tree.args))


def is_heavy(add: Expression, mul: Expression) -> bool:
    return uses(add, HEAVY) or uses(mul, HEAVY)


def is_or_and(problem: Problem) -> bool:
    """Whether a product over truth values is or of ands, whatever + and × are called."""
    add, mul, both = problem.semiring.add, problem.semiring.mul, {Variable("x"), Variable("y")}
    return (
        problem.algebra.partial.kind == "b"
        and isinstance(add, Apply)
        and isinstance(mul, Apply)
        and add.op in ("or", "add", "max")
        and mul.op in ("and", "mul", "min")
        and set(add.args) == set(mul.args) == both
    )


def has_kernel(problem: Problem) -> bool:
    """Whether the cpu engine can write a kernel; what has none (long double, say) runs in the reference engine."""
    partial, ring = problem.algebra.partial, problem.semiring
    if any(dtype.name not in KINDS for dtype in (partial, problem.dtype_m, problem.dtype_n)):
        return False
    refused = ("abs", "div") if partial.kind == "c" else ()
    return not (uses(ring.add, refused) or uses(ring.mul, refused))


@dataclass(frozen=True)
class _View:
    """The product as a kernel would see it, straight or swapped; an extent of 1 counts as side by side."""

    m: int
    n: int
    m_along_k: bool  # M's elements lie side by side along k
    n_along_k: bool
    n_along_n: bool  # N's lie side by side along its columns
    p_along_n: bool
    swapped: bool


def _views(problem: Problem) -> tuple[_View, _View]:
    m, k, n = problem.m, problem.k, problem.n
    M, N, P = problem.layout_m, problem.layout_n, problem.layout_p
    m_rows, m_cols = M.row == 1 or m == 1, M.col == 1 or k == 1
    n_rows, n_cols = N.row == 1 or k == 1, N.col == 1 or n == 1
    p_rows, p_cols = P.row == 1 or m == 1, P.col == 1 or n == 1
    return (
        _View(m, n, m_cols, n_rows, n_cols, p_cols, False),
        _View(n, m, n_rows, m_cols, m_rows, p_rows, True),
    )


def _small_kernel(view: _View, problem: Problem, NR: int) -> tuple[str, str] | None:
    """A kernel for products that packing would slow down, and why; None when there is none."""
    m, k, n = view.m, problem.k, view.n
    if n == 1 and view.m_along_k and m > 1:
        return "dots", "one column, and M's rows lie along k: dot products read M once"
    if view.n_along_n and view.p_along_n and m * k * n * problem.dtype.itemsize <= LITTLE:
        return "little", "little enough for N to be read where it lies"
    if m <= FEW and view.n_along_n and view.p_along_n and (n >= 4 * NR or k < TALL_K):
        return "few_rows", f"{m} rows: N is read once where it lies, packing it would cost more"
    if n <= few_columns_limit(NR) and view.m_along_k and view.p_along_n and m > FEW:
        return "few_columns", f"{n} columns: M is read once where it lies, packing it would cost more"
    spread = problem.dtype.itemsize < 4 and m * k * n >= NARROW  # else each takes a port that its arithmetic needs
    if view.m_along_k and view.n_along_n and view.p_along_n and (k < TALL_K or m * n > SMALL_P) and not spread:
        return "packed_n", "M's rows lie along k, and are read where they are"
    return None


def few_columns_limit(NR: int) -> int:
    """Columns that `few_columns` takes: its widest tile has NR, and it makes one pass over M."""
    return min(FEW, NR)


def even_strips(k: int) -> int:
    """KC: strips of k alike, near DEPTH; a short one at the end would read and write P for little work."""
    return -(-k // (8 * max(1, round(k / DEPTH)))) * 8


def choose(problem: Problem, vector_bytes: int, registers: int, kernel: str | None = None) -> Blocking:
    """The cut for a problem on a machine with such vectors; `kernel` pins what would be chosen."""
    ring, partial, tracks_arg = problem.semiring, problem.algebra.partial, problem.return_arg
    heavy = is_heavy(ring.add, ring.mul)
    part = partial.itemsize // (2 if partial.kind == "c" else 1)
    rows, vectors = register_tile(registers, partial, tracks_arg=tracks_arg, heavy=heavy)
    MR, NR = rows, vectors * (vector_bytes // part)
    straight, turned = _views(problem)
    plain = problem.dtype_m == problem.dtype_n == partial == problem.result and partial.kind in "iuf" and not tracks_arg
    name, swapped = "packed", turned.p_along_n and not straight.p_along_n
    why = "large enough for packed panels to pay"
    if is_or_and(problem) and not tracks_arg:
        name, why, NR = "bits", "or and and over truth values work on bits", 8 * NR
    elif plain and problem.m * problem.k * problem.n <= TINY:
        name, swapped, why = "tiny", False, "so small that the call is the cost"
    elif plain and not heavy:
        for view in (straight, turned):
            found = _small_kernel(view, problem, NR)
            if found:
                (name, why), swapped = found, view.swapped
                break
    if kernel is not None and kernel != name:
        if kernel != "packed" or name == "bits":
            raise UsageError(f"kernel={kernel!r} does not fit {problem.shape} {problem.dtype}: {name!r} would run")
        name, swapped, why = "packed", turned.p_along_n and not straight.p_along_n, "the kernel was asked for"
    even = even_strips(problem.k)
    KC = {"few_columns": 4096, "packed": even, "packed_n": even}.get(name, 256)
    if name in ("few_rows", "little") and problem.k * max(problem.m, problem.n) * part > 2**18:
        m = min(problem.m, problem.n)
        KC = 8 if m <= 2 else 32 if m <= 8 else 64  # N comes from memory: thin strips are few, long streams
    if tracks_arg and part == 1:
        KC = 127  # a tile counts its k in integers as wide as a lane
    MC = {1: 1024, 2: 1024, 4: 512, 8: 512, 16: 256}[partial.itemsize] // MR * MR
    MC = 256 // MR * MR if name == "bits" else MC  # its packed M is four times as large as M
    NC = max(1, 16384 // partial.itemsize // NR) * NR
    group = (12 if name == "packed_n" else 8) * NR
    return Blocking(name, swapped, MR, NR, KC, MC, NC, group, why, 8 if name == "bits" else 1)
