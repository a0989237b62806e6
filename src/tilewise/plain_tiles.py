"""The plain kernels as the planner sees them: how a semiring is stepped, which tiles there are, and their model.

A `Way` says how the cells of M and N become words and what a step costs: one element a word, two halves or shorts
stepped as a pair, 32 truths as bits. A `Choice` is what `engines/cuda/plain.py` launches.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from tilewise.algebra.dtypes import DType
from tilewise.algebra.expression import Apply, Expression, Variable
from tilewise.algebra.semiring import Algebra
from tilewise.errors import DtypeError
from tilewise.machine import Machine
from tilewise.problem import Layout, Problem
from tilewise.rungs import Geometry

KERNEL = "plain"
FEW_ROWS, FEW_DOTS = "few_rows", "few_dots"
IDEAS = {
    KERNEL: "warps of register tiles over any semiring, fed by asynchronous copies",
    FEW_ROWS: "few rows (or columns): the long operand is read once, lanes along its lines",
    FEW_DOTS: "few rows (or columns): the long operand is read once, lanes along k",
}
FEW = 16  # rows or columns that count as few
START_SECONDS = 4e-6
COMBINE_SECONDS = 3e-6  # a second launch
MAX_PIECES = 64  # of k
THIN = 16  # rows or columns left over by whole tiles that are made by a kernel for few


@dataclass(frozen=True)
class Way:
    """How sums are stepped. `slots` are issue slots of a step, in float32 multiply-adds."""

    name: str  # each, fused, three, pairs, bits, online or where
    word_bytes: int
    per_word: int  # elements along k that a word holds
    sum_words: int  # 4-byte registers of one sum
    slots: float
    converts: bool = False  # words are not the elements as they lie: operands are packed first

    @property
    def idea(self) -> str:
        return WAYS[self.name]


WAYS = {
    "each": "one element of k",
    "fused": "one element of k, add and min in one instruction",
    "three": "two elements of k, compared as integers, three at a time",
    "pairs": "two elements of k in one word",
    "bits": "32 truths of k in one word",
    "online": "one element of k, onto the largest so far and a sum beside it",
    "where": "one element of k, and which k it was",
}


def binary(tree: Expression) -> str | None:
    """The operation of a tree that is nothing but one operation on x and y, else None."""
    if isinstance(tree, Apply) and len(tree.args) == 2 and all(isinstance(a, Variable) for a in tree.args):
        names = {a.name for a in tree.args if isinstance(a, Variable)}
        return tree.op if len(names) == 2 else None
    return None


def arch_number(arch: str) -> int:
    digits = re.match(r"sm_(\d+)", arch)
    return int(digits.group(1)) if digits else 0


@lru_cache(maxsize=1024)
def way_of(algebra: Algebra, machine: Machine, nonnegative: bool = False, return_arg: bool = False) -> Way:
    """The fastest way that gives the specified bits on this card."""
    add, mul = binary(algebra.semiring.add), binary(algebra.semiring.mul)
    element, partial, number = algebra.element, algebra.partial, arch_number(machine.arch)
    size = max(4, element.itemsize)
    small = element.itemsize < 4
    slots = step_slots(algebra, machine)
    if return_arg:
        return Way("where", size, 1, partial.itemsize // 4 + 1 if partial.itemsize >= 4 else 2, slots + 3, small)
    if partial.kind == "b" and (add, mul) in BIT_OPERATIONS:
        return Way("bits", 4, 32, 1, 2 / 32, True)
    if add in ("min", "max") and element.itemsize == 2 and element.kind == "f":
        # min and max of rounded values are the rounded min and max, and float32 rounds no half's sum or product twice
        exact = ("add", "min", "max", "mul") if element.name == "float16" else ("add", "min", "max")
        if mul in exact and number >= (80 if element.name == "float16" else 90):
            return Way("pairs", 4, 2, 1, slots / 2, True)
    if add in ("min", "max") and mul == "add" and element.is_integer and element.itemsize == 2 and number >= 90:
        return Way("pairs", 4, 2, 1, 1.0, True)
    if add in ("min", "max") and mul == "add" and element.is_integer and element.itemsize == 4 and number >= 90:
        return Way("fused", 4, 1, 1, 2.0)
    if nonnegative and element.name == "float32" and number >= 90 and (
        (add == "min" and mul in ("add", "mul", "min", "max")) or (add == "max" and mul in ("add", "min", "max"))
    ):
        return Way("three", 4, 1, 1, 0.75 * slots)
    if add == "logaddexp" and partial.kind == "f":
        return Way("online", size, 1, partial.itemsize // 2, slots, small)
    return Way("each", size, 1, max(1, partial.itemsize // 4), slots, small)


# over truths: what a word of 32 does for add and mul, and what its sum starts from and must be to hold
BIT_OPERATIONS = {
    **{(a, m): ("|", "&", "0u") for a in ("or", "add", "max") for m in ("and", "mul", "min")},
    **{(a, m): ("&", "|", "0xffffffffu") for a in ("and", "mul", "min") for m in ("or", "add", "max")},
}


def step_slots(algebra: Algebra, machine: Machine | None = None) -> float:
    """Issue slots of a step: multiply-adds count 1; min, max, compares and integers go at half rate, beside them."""
    add, mul, partial = algebra.semiring.add, algebra.semiring.mul, algebra.partial
    double = 2.0 if machine is None else machine.step_rate("float32") / machine.step_rate("float64")
    if (binary(add), binary(mul)) == ("add", "mul"):
        if partial.kind in "fc":
            return (4.0 if partial.kind == "c" else 1.0) * (double if partial.name in ("float64", "complex128") else 1.0)
        return 10.0 if partial.itemsize == 8 else 2.0
    total, slow = 0.0, 0.0
    for op in _operations(add) + _operations(mul):
        if partial.kind == "f" and op in ("add", "sub", "mul", "neg"):
            total += 1
        elif op in ("div", "exp", "log", "log1p", "sqrt", "logaddexp"):
            total, slow = total + 10, slow + 10
        else:
            total, slow = total + 1, slow + 2
    wide = 1.0 if partial.itemsize <= 4 else 2.25 * double if partial.kind == "f" else 3.0
    return max(total, slow) * wide


def _operations(tree: Expression) -> list[str]:
    if not isinstance(tree, Apply):
        return []
    return [tree.op, *(op for arg in tree.args for op in _operations(arg))]


@dataclass(frozen=True)
class PlainTile:
    """Warps of 32 lanes, 4 × 8 over a warp's tile; a thread keeps `tm` × `tn` sums. `share` is the part of the step
    limit that it reaches inside a large product (measured on an H200, `tilewise bench semirings`)."""

    warps_m: int
    warps_n: int
    tm: int
    tn: int
    depth: int
    stages: int
    resident: int  # blocks a multiprocessor holds at once
    share: float
    lanes_m: int = 4
    lanes_n: int = 8
    ahead: bool = True  # the next words are read from shared memory while these are stepped

    @property
    def rows(self) -> int:
        return self.warps_m * self.lanes_m * self.tm

    @property
    def cols(self) -> int:
        return self.warps_n * self.lanes_n * self.tn

    @property
    def threads(self) -> int:
        return 32 * self.warps_m * self.warps_n

    def shared_bytes(self, word_bytes: int) -> int:
        """As the kernel's STAGE_WORDS has it, both operands turned."""
        return self.stages * self.depth * ((self.rows + self.cols) * word_bytes + 32)

    def geometry(self, way: Way) -> Geometry:
        shared = self.shared_bytes(way.word_bytes)
        return Geometry((self.threads, 1), self.rows, self.cols, self.depth * way.per_word, shared)


# by 4-byte registers of one sum (1, 2 or 4), the widest first
TILES: dict[int, tuple[PlainTile, ...]] = {
    1: (
        PlainTile(4, 2, 8, 8, 16, 3, 2, 0.90),
        PlainTile(2, 2, 8, 8, 16, 3, 4, 0.85),
        PlainTile(2, 2, 8, 4, 16, 3, 6, 0.72),
        PlainTile(2, 1, 8, 4, 16, 3, 8, 0.65),
    ),
    2: (
        PlainTile(4, 2, 8, 4, 8, 3, 2, 0.88),
        PlainTile(2, 2, 8, 4, 8, 3, 4, 0.85),
        PlainTile(2, 2, 4, 4, 8, 3, 6, 0.70),
    ),
    4: (
        PlainTile(4, 2, 4, 4, 8, 2, 2, 0.85),
        PlainTile(2, 2, 4, 4, 8, 2, 4, 0.80),
        PlainTile(2, 2, 4, 2, 8, 2, 4, 0.65),
    ),
}


def tiles_of(way: Way) -> tuple[PlainTile, ...]:
    return TILES[max(1, min(4, max(way.sum_words if way.sum_words != 3 else 4, way.word_bytes // 4)))]


@dataclass(frozen=True)
class Choice:
    """What runs: the kernel, its tile, how many pieces k is cut into, and what whole tiles make of P."""

    kernel: str
    way: Way
    tile: PlainTile
    pieces: int
    rows: int  # of P that the tiles make; what is left is thin and made by a kernel for few
    cols: int
    predicted: float


def k_each(k_words: int, tile: PlainTile, pieces: int) -> int:
    """Words of k of one piece: whole phases."""
    phases = math.ceil(k_words / tile.depth)
    return max(1, math.ceil(phases / pieces)) * tile.depth


@lru_cache(maxsize=4096)
def choose(problem: Problem, machine: Machine, kernel: str | None = None) -> Choice:
    """The tile and the pieces of k with the least expected time; `kernel` pins which of the plain kernels."""
    p = problem
    way = way_of(p.algebra, machine, p.nonnegative, p.return_arg)
    words = math.ceil(p.k / way.per_word)
    rate = machine.step_rate("float32") / machine.units / way.slots  # steps a second of one multiprocessor
    if p.return_arg and p.k >= 2**31:
        raise DtypeError(f"return_arg=True knows k below 2³¹, and k is {p.k}")
    packing = _packing_bytes(p, way) / (0.6 * machine.bandwidth)
    memory = p.least_bytes / machine.bandwidth
    best: Choice | None = None
    for tile in tiles_of(way):
        rows, cols = _without_thin(p.m, tile.rows), _without_thin(p.n, tile.cols)
        tiles = math.ceil(rows / tile.rows) * math.ceil(cols / tile.cols) * p.members
        thin = (p.m - rows) * p.n + rows * (p.n - cols)
        edges = START_SECONDS * ((rows < p.m) + (cols < p.n)) + 2 * p.members * thin * p.k / (machine.units * rate)
        edges += ((rows < p.m) * p.k * p.n + (cols < p.n) * p.m * p.k) * p.dtype.itemsize / machine.bandwidth
        for pieces in _pieces(words, tile):
            blocks = tiles * pieces
            steps = tile.rows * tile.cols * min(words, k_each(words, tile, pieces)) * way.per_word
            full, rest = divmod(blocks, machine.units * tile.resident)
            # a multiprocessor with one block of two is not half as fast, and no block runs at the whole rate alone
            alone = math.ceil(rest / machine.units)
            seconds = steps / (rate * tile.share)
            work = (full * tile.resident + max(alone, 0.45 * tile.resident * (alone > 0))) * seconds
            combine = 0.0
            if pieces > 1:
                planes = 2 * pieces * p.m * p.n * p.algebra.partial.itemsize * p.members
                combine = COMBINE_SECONDS + planes / machine.bandwidth
            expected = max(work, memory) + combine + packing + edges + START_SECONDS
            if best is None or expected < best.predicted:
                best = Choice(KERNEL, way, tile, pieces, rows, cols, expected)
    assert best is not None
    return best


def _without_thin(extent: int, side: int) -> int:
    """The extent that tiles make: without a rest so thin that a row of tiles for it would be nearly empty."""
    rest = extent % side
    return extent - rest if extent > side and 0 < rest <= THIN else extent


def _pieces(words: int, tile: PlainTile) -> list[int]:
    phases = max(1, math.ceil(words / tile.depth))
    made = [1]
    while made[-1] * 2 <= min(MAX_PIECES, phases // 4):
        made.append(made[-1] * 2)
    return made


def _packing_bytes(p: Problem, way: Way) -> int:
    total = 0
    for layout, rows, cols, dtype in (
        (p.layout_m, p.m, p.k, p.dtype_m),
        (p.layout_n, p.k, p.n, p.dtype_n),
    ):
        if source_of_words(layout, rows, cols, dtype, p.dtype, way) is None:
            total += rows * cols * dtype.itemsize + rows * cols * way.word_bytes // way.per_word
    return total * p.members


def source_of_words(
    layout: Layout, rows: int, cols: int, dtype: DType, wanted: DType, way: Way
) -> tuple[bool, int] | None:
    """(lines run along columns of the matrix, lead) where the operand can be copied as it lies, else None."""
    if way.converts or dtype != wanted or layout.alignment < way.word_bytes:
        return None
    if (layout.col == 1 or cols <= 1) and (layout.row >= cols or rows <= 1):
        return False, layout.row if rows > 1 else cols
    if (layout.row == 1 or rows <= 1) and (layout.col >= rows or cols <= 1):
        return True, layout.col if cols > 1 else rows
    return None
