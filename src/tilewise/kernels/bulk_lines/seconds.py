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


# Fitted to 2,037 ways of 195 stacks of halves and 544 of 57 of tf32 (rms 16 and 17 %; what they choose took 4 % longer
# than the soonest of the ways timed, in the mean: both seen).
HALVES = Figures(
    2.78e-06, 2.1e-09, 8.83e-07, 1.03e-09, 5.1e-08, 2.21e-08, 1.26e-09, 4.62e-09, 1.8e-12, 5.79e-10, 5.73e-08,
    1 / 4.2e12, 3.3e-09,
)  # fmt: skip
TF32 = Figures(
    3.38e-06, 9.37e-07, 1.06e-06, 8.13e-10, 2.0e-08, 3.4e-11, 1.92e-09, 7.44e-09, 1.87e-11, 1.68e-10, 4.09e-08,
    1 / 3.4e12, 4.46e-10,
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
    return f.start + sqrt(sqrt(block**4 + copying**4 + unit**4 + products**4 + moving**4 + memory**4))
