"""How long `bulk_lines` is expected to take: what a way asks of a card, and what each of that costs."""

from __future__ import annotations

from math import ceil, sqrt
from typing import NamedTuple


class Figures(NamedTuple):
    """Seconds of an H200, fitted."""

    start: float  # of a launch,
    item: float  # of a tile of P in its block, where nothing hides that,
    chunk: float  # of each of its stages,
    word: float  # of each word and product that a thread reads and makes,
    step: float  # of each step of k,
    cell: float  # of each sum of a thread;
    read: float  # of a multiprocessor, for each word that its warps read,
    stored: float  # for each sum,
    byte: float  # for each byte that comes and goes,
    piece: float  # and for each 16 bytes that a thread copies;
    copied: float  # of a copying warp, for each of these;
    memory: float  # of the card, for each byte of the operands and P
    product: float  # of a multiprocessor, for each product of fragments
    cluster: float  # of blocks of a cluster that wait for one another,
    part: float  # and for each of them


# Fitted to 2,527 ways of 943 products and stacks of halves and 396 of 196 of tf32 (rms 15 and 16 %; what they choose
# took 2 and 1 % longer than the soonest of the ways timed, in the mean: all of them seen).
HALVES = Figures(
    3.06e-06, 8.55e-10, 1.18e-06, 2.3e-09, 6.43e-10, 8.74e-09, 1.38e-09, 4.08e-09, 2.75e-11, 5.61e-11, 7.37e-08,
    1 / 4.85e12, 8.07e-10, 1.04e-06, 3.81e-08,
)  # fmt: skip
TF32 = Figures(
    3.74e-06, 3.06e-07, 9.18e-07, 1.64e-09, 4.3e-08, 3.39e-11, 1.57e-09, 8.38e-09, 2.48e-11, 2.59e-11, 5.71e-08,
    1 / 4.35e12, 4.35e-10, 7.93e-07, 4.93e-09,
)  # fmt: skip


class Work(NamedTuple):
    """What a way asks for."""

    turns: float  # tiles of a block, one after the other
    tiles: float  # of a multiprocessor
    chunks: int  # stages of a tile
    steps: int  # of k in a tile
    words: float  # that a thread reads in a step
    products: float  # that a warp makes in a step
    cells: float  # sums of a thread
    warps: int  # that have any sums
    bytes: float  # of a tile, that come and go
    pieces: float  # of a tile, that come in 16 bytes a thread
    producers: int
    least: int  # bytes of the operands and P
    cluster: int  # blocks that k is cut over


def rounds(items: int, room: int) -> float:
    """How often `room` places are taken; tiles of many rounds do not wait for one another."""
    return ceil(items / room) if items < 4 * room else items / room + 0.5


def expected(work: Work, f: Figures) -> float:
    """A block's tiles one after the other, or what a multiprocessor or the card has to do, whichever is more."""
    w = work
    reading = w.steps * w.words
    block = w.turns * (
        f.item + f.chunk * w.chunks + f.word * (reading + w.steps * w.products) + f.step * w.steps + f.cell * w.cells
    )
    copying = w.turns * f.copied * w.pieces / (32 * w.producers)
    unit = w.tiles * w.warps * (f.read * reading + f.stored * w.cells)
    products = w.tiles * w.warps * f.product * w.steps * w.products
    moving = w.tiles * (f.byte * w.bytes + f.piece * w.pieces)
    memory = f.memory * w.least
    meeting = 0.0 if w.cluster == 1 else f.cluster + f.part * w.cluster
    return meeting + f.start + sqrt(sqrt(block**4 + copying**4 + unit**4 + products**4 + moving**4 + memory**4))
