"""How many blocks or clusters are resident on a card at once: the size of a wave.

A cluster's blocks lie on multiprocessors of one processing cluster, of which some are smaller than others. So a card
holds fewer clusters than its multiprocessors would make, and one too many is a wave more.
"""

from __future__ import annotations

import math
from functools import lru_cache
from math import sqrt

from tilewise.core.machine import Machine, arch_number
from tilewise.system.machine_code import Row

# Clusters with one block, and with two, of a multiprocessor, of an H200's 132: one more took 1.4 to 1.8 times as long.
HELD = {
    1: (132, 264),
    2: (66, 132),
    3: (39, 79),
    4: (30, 62),
    5: (21, 47),
    6: (17, 39),
    7: (15, 31),
    8: (15, 30),
}
UNITS = 132
HOPPER = 90
UNIT_SHARED = 227 * 1024  # bytes of shared memory that a block may have, alone on a multiprocessor of Hopper's
FEWEST = 0.15  # share of the multiprocessors, below which nothing is faster any more
MOST = 6  # blocks of a multiprocessor: more of them change nothing
UNEVEN = 1.5  # blocks of a multiprocessor, in the mean, from which some have three where three fit


def clusters_of(machine: Machine) -> tuple[int, ...]:
    """Blocks of a cluster that may share the k of a tile."""
    return (1, 2, 4, 8) if arch_number(machine.arch) >= HOPPER else (1,)


@lru_cache(maxsize=256)
def rooms(units: int, cluster: int, resident: int) -> tuple[int, ...]:
    """Clusters that a card holds with so many blocks of each multiprocessor: one, two, and so on."""
    one, two = (max(1, held * units // UNITS) for held in HELD[cluster])
    made = [one, two, *(two * blocks // 2 for blocks in range(3, resident + 1))][:resident]
    if resident == 3 and cluster <= 2:
        made[1] = math.floor(UNEVEN * one)
    return tuple(made)


def padded(room: tuple[int, ...]) -> tuple[int, ...]:
    """The end of a formula's row: the number of rooms, then the rooms."""
    return len(room), *room, *(0,) * (MOST - len(room))


def rounded_up(x: float) -> int:
    """A positive number, where formulas have no ceil."""
    return int(x) + (1 if x > int(x) else 0)


def parts_of(tiles: int, at_once: int, deepest: int) -> int:
    """Split-K: the parts of k that fill one wave of `at_once` tiles, `deepest` at most."""
    return min(at_once // max(1, tiles), deepest)


def busiest(rest: int, row: Row, at: int) -> int:
    """Blocks of the busiest multiprocessor where so many clusters are left, by the rooms in a row from `at` on."""
    count = int(row[at])
    last = count
    for back in range(count):
        if rest <= int(row[at + count - back]):
            last = count - back
    return last


def crowded(blocks: int, units: int, power: float) -> float:
    """The time of L2 loads where not all multiprocessors load, relative to all of them."""
    return 1.0 if blocks >= units else max(FEWEST, blocks / units) ** power


def in_waves(tiles: int, row: Row, at: int, steps: float, alone: float, busy: float, end: float, store: float) -> float:
    """Seconds of tiles in waves of as many as a card holds, by the rooms in a row from `at` on: each as long as its
    steps one after the other, which take what a block alone needs or all of the busiest multiprocessor's together
    (fourth powers: limits that are equally near hinder each other), its end, and the stores of all of these."""
    held, work = int(row[at]), 0.0
    full, rest = tiles // int(row[at + held]), tiles % int(row[at + held])
    if full:
        work = full * (steps * sqrt(sqrt(alone + busy * held**4)) + end + store * held)
    if rest:
        last = busiest(rest, row, at)
        work += steps * sqrt(sqrt(alone + busy * last**4)) + end + store * last
    return work
