"""What mma_sync's model reckons with, by bytes of an element."""

from __future__ import annotations

from typing import NamedTuple


class Figures(NamedTuple):
    """Seconds, but for shares: fitted to the ways of 1,490 random products on an H200 (rms 11 to 16 %; held out, the
    choice 3 % above the best of them in the mean)."""

    start: float  # of a launch
    tile: float  # of a tile beside its phases: the first loads, the stores,
    cell: float  # of a cell of it,
    odd: float  # and so many times that more where P is not stored by 16 bytes
    alone: float  # a phase of a block that has a multiprocessor to itself takes so many times what the cores need,
    phase: dict[int, float]  # and this, by bytes of a copy
    shares: tuple[float, ...]  # of a tile's own share
    small: dict[int, float]  # of a phase's time, that copies in such pieces add
    m_across: float  # over it, where k lies across the lines of M,
    n_along: float  # or along those of N
    unit: float  # bytes a second that L2 gives each multiprocessor when all of them ask,
    crowd: float  # and how much more when few do, as a power of their share
    memory: float  # share of the memory's bandwidth
    copy: float  # realigning: a launch,
    copying: float  # share of the bandwidth
    part: float  # adding up the parts of k: a launch,
    adding: float  # times the bandwidth
    edge: float  # thin edges: a launch,
    edges: float  # share of the bandwidth


FIGURES = {  # by bytes of an element
    8: Figures(
        1.13e-06, 1.16e-06, 2.09e-10, 0.0172, 1.64, {16: 2.6e-08, 8: 1.21e-07, 4: 2e-07},
        (1.1, 1.75, 1.1, 1.27), {16: 0.0, 8: 0.309, 4: 0.6}, 0.959, 1.06,
        8.81e+10, 0.367, 0.755, 1.67e-06, 0.803, 1.95e-06, 1.28, 1.82e-06,
        1.11,
    ),
    4: Figures(
        1.39e-06, 8.74e-07, 1.9e-10, 0.379, 2.52, {16: 2.95e-08, 8: 2.49e-08, 4: 7.13e-08},
        (1.73, 0.967, 0.853), {16: 0.0, 8: 0.433, 4: 1.27}, 0.797, 1.18,
        8.53e+10, 0.264, 0.688, 1.8e-06, 0.756, 1.98e-06, 0.653, 2.78e-06,
        0.846,
    ),
    2: Figures(
        9.53e-07, 1.72e-06, 5.13e-11, 7.01, 1.58, {16: 1.16e-08, 8: 1.19e-07, 4: 5.61e-07},
        (2.03, 2.05, 1.03, 3.63, 1.93, 1.88), {16: 0.0, 8: 1.3, 4: 3.04}, 0.957, 1.04,
        6.96e+10, 0.0748, 0.738, 2.64e-06, 0.783, 1.78e-06, 0.641, 5.66e-06,
        0.88,
    ),
}  # fmt: skip
FIGURES[1] = FIGURES[2]._replace(shares=(1.0,))
FEWEST = 0.15  # share of the multiprocessors, below which nothing is faster any more
