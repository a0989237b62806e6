"""What k_major's model reckons with, by bytes of an element, and how operands reach the kernel."""

from __future__ import annotations

from typing import NamedTuple

AS_IT_IS, TRANSPOSED = "as it is", "turned"
ACROSS, BY_CLASSES = "from registers", "by classes of rows"  # of N, and of an M that goes with it
SHARPNESS = 4  # how little two limits that are equally near hinder each other
EVEN_SHARE = (
    1.15  # a stage where rows of M that nobody shares lie an even number of memory lines apart: why is not known
)
BOXED_SHARE = 0.3  # of what a tile takes longer whose N came from registers, where the copy engine stores it
FEWEST = 0.15  # share of the multiprocessors, below which nothing is faster any more


class Figures(NamedTuple):
    """Seconds, but for shares and bandwidths."""

    share: float  # of the peak at the highest clock, which the card cannot hold under this load
    unit: float  # bytes a second that L2 gives each multiprocessor when all of them ask,
    crowd: float  # and how much more when few do, as a power of their share
    tile: dict[bool, tuple[float, float]]  # a tile's start and stores, and for a column: by the copy engine, by rows
    start: float
    cluster: float  # blocks of a cluster wait for one another
    memory: float  # share of the memory's bandwidth on paper
    turn: float  # turning: its launch,
    turning: float  # and bytes a second that it reads and writes
    gather: float  # adding up the parts of k: its launch,
    gathering: float  # the bytes,
    cell: float  # and blocks of 32 cells
    across: dict[str, float]  # how much longer a stage takes whose N comes from registers, by how M comes,
    across_tile: tuple[float, float]  # and a tile of it, and for a row
    classes: float  # rows of M by classes


# by bytes of an element: of 4 fitted to 447 random products on an H200 (rms 11 %), of 1 as docs/dtypes.md says
FIGURES = {
    4: Figures(
        0.74, 7.6e+10, 0.555, {True: (7.04e-07, 6.5e-09), False: (1.18e-06, 1.22e-08)}, 2.35e-06, 4.1e-07,
        0.519, 1.45e-06, 3.98e+12, 2.39e-06, 1.11e+13, 5.59e-11,
        {AS_IT_IS: 1.04, TRANSPOSED: 1.04, BY_CLASSES: 1.1}, (2e-06, 0.0), 2.71e-06,
    ),
    1: Figures(
        0.74, 76e9, 0.0, {True: (0.6e-6, 0.0), False: (4.5e-6, 0.0)}, 4.2e-6, 1.8e-6, 0.87, 4e-6, 1.6e12, 4e-6, 3e12,
        2e-11, {AS_IT_IS: 1.04, TRANSPOSED: 1.04, BY_CLASSES: 1.1}, (0.0, 0.0), 0.0,
    ),
}  # fmt: skip
