"""Blocking for the CPU, as in BLIS: the register tile MR × NR and the cache blocks KC, MC, NC.

Pure functions over plain values: a plan can be made for an instruction set that this machine lacks. Which kernel runs,
and which problems it takes, is decided in `backends/cpu/kernels/*/model.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tilewise.algebra.dtypes import DType
from tilewise.algebra.expression import HEAVY, Expression, is_plain, uses
from tilewise.algebra.to_llvm import KINDS, never_signals
from tilewise.core.problem import Problem
from tilewise.system.once import once

SKINNY = 16  # a product with at most this many rows or columns is skinny
TALL_K = 8192  # from this k on, threads split k where P is small
SMALL_P = 256 * 256  # cells of such a P
# rows of N of at most this many bytes: a strip of them stays in L1, so a skinny product with a long k reads N once and
# packing would only add traffic (2x10^6x8 float32 took 4.2 times as long with `packed`, 16x10^5x16 int32 1.3 times)
THIN_ROW = 192
SHORT = 2**16  # multiply-add steps below which the call overhead exceeds the kernel's time
AMX_TILE = 32, 32  # MR, NR: four accumulator tiles of 16 x 16, which leaves two tile registers each for M and N
DEPTH = 384  # KC: a larger one visits P less often, but leaves no room in the L1 cache


class Blocking(NamedTuple):
    """The choice. `swapped`: Pᵀ = Nᵀ ⊗ Mᵀ is computed, because P is column-major."""

    kernel: str
    swapped: bool
    MR: int
    NR: int
    KC: int
    MC: int
    NC: int
    group: int  # columns of packed N per pass over the panels of M
    why: str = ""
    columns: int = 1  # columns of P per lane: eight where booleans are packed into bits
    k_pack: int = 1  # consecutive k per 32-bit lane: 4 bytes or 2 16-bit integers, for VNNI, sdot and pmaddwd
    pairs: bool = False  # complex operands are read in place, as pairs of real numbers
    symmetric: bool = False  # tiles left of the diagonal of P are not computed but mirrored
    amx: bool = False  # the microkernel multiplies AMX tiles
    rounds: bool = False  # the microkernel rounds its sums to P's dtype: KC is all of k

    def rate(self, dtype: str) -> str:
        """The name of the machine's rate: AMX multiplies float32 as three bfloat16 each, by six products."""
        return "float32 as bfloat16" if self.amx and dtype == "float32" else dtype

    def computed_share(self, m: int) -> float:
        """The fraction of P's tiles that is computed, for a P of m rows."""
        panels, across = -(-m // self.MR), -(-m // self.NR)
        left = sum(panel * self.MR // self.NR for panel in range(panels)) if self.symmetric else 0
        return 1 - left / (panels * across)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("swapped", "MR", "NR", "KC", "MC", "NC", "group")}


@dataclass(frozen=True)
class RegisterTile:
    """The accumulator tile of the microkernel, and the machine's vector registers."""

    MR: int
    NR: int
    vector_bytes: int
    registers: int
    byte_dots: bool = False
    matrix_tiles: bool = False

    @once
    def neon(self) -> bool:
        """No instruction takes an operand from memory, and only a multiply takes one lane as its operand."""
        return self.vector_bytes == 16 and self.registers >= 32


def register_tile(
    vector_bytes: int, registers: int, dtype: DType, add: Expression, mul: Expression, *, tracks_arg: bool = False
) -> tuple[int, int]:
    """Rows and vectors of the tile."""
    wide = registers >= 32
    if is_heavy(add, mul):  # a step hides the latency of the next loads, and needs registers of its own
        return (4, 1)
    if tracks_arg:
        return (4, 3) if wide else (3, 2)
    if wide and vector_bytes == 16:
        return _neon_tile(dtype, is_plain(add, "add"), is_plain(mul, "mul"))
    if dtype.kind == "c":
        return (6, 2) if wide else (5, 1)
    if not wide and dtype.kind == "f" and not never_signals(mul):  # the NaN masks of N's vectors take registers too
        return (4, 2)
    return (8, 3) if wide else (6, 2)


def _neon_tile(dtype: DType, sums: bool, products: bool) -> tuple[int, int]:
    """NEON instructions take no operand from memory, so the value between a mul and an add needs a register too. The
    tallest tile whose loops do not spill (`tests/backends/cpu/test_inner_loops.py`)."""
    if dtype.kind == "c":
        return (4, 3) if dtype.itemsize == 8 else (6, 2)
    if dtype.is_integer and dtype.itemsize == 8:  # NEON has no 64-bit multiply, min or max
        return (4, 3)
    if dtype.itemsize >= 4 and not products:  # a tile row is one cache line of P; one broadcast serves four vectors
        return (5, 4)
    return (
        (8, 3) if sums and products and dtype.kind != "b" else (8, 2)
    )  # 5 × 4 reaches 0.83 of the port limit on max_times 1024³


def broadcast_costs(problem: Problem, tile: RegisterTile) -> bool:
    """Whether broadcasting an element of M occupies a vector port: on NEON, unless mul is a multiply by lane. False
    for short products."""
    by_lane = is_plain(problem.semiring.mul, "mul")
    return tile.neon and problem.dtype.itemsize >= 4 and not by_lane and not is_short(problem)


def is_short(problem: Problem) -> bool:
    return problem.m * problem.k * problem.n < SHORT


def is_heavy(add: Expression, mul: Expression) -> bool:
    return uses(add, HEAVY) or uses(mul, HEAVY)


def has_kernel(problem: Problem) -> bool:
    """Whether the cpu backend can emit a kernel; other problems (long double, say) run in the reference backend."""
    partial, ring = problem.algebra.partial, problem.semiring
    if any(dtype.name not in KINDS for dtype in (partial, problem.dtype_m, problem.dtype_n)):
        return False
    return partial.kind != "c" or not any(uses(tree, ("abs", "div")) for tree in (ring.add, ring.mul))


def even_strips(k: int, depth: int = DEPTH) -> int:
    """KC near `depth` that cuts k into equal strips: a short last strip would read and write P for few steps."""
    return -(-k // (8 * max(1, round(k / depth)))) * 8
