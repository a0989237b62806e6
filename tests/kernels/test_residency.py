"""How many clusters a card holds at once, and what that makes of the models' choices."""

from __future__ import annotations

import random
import time

import pytest

from tilewise.kernels.mma_small.model import seconds, ways
from tilewise.kernels.shared.residency import HELD, UNITS, rooms, spread
from tilewise.machine import KNOWN_CARDS
from tilewise.problem import problem_of_shape

H200 = KNOWN_CARDS["h200"]


@pytest.mark.parametrize("cluster", HELD)
def test_a_card_holds_no_more_clusters_than_its_multiprocessors_make(cluster):
    for units in (UNITS, 108, 16):
        for resident in range(1, 7):
            room = rooms(units, cluster, resident)
            assert len(room) == resident
            assert list(room) == sorted(room)
            assert room[0] * cluster <= max(units, cluster)


def test_clusters_are_spread_over_waves_that_hold_them_all():
    seed = time.time_ns() % 10**9
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(500):
        room = rooms(UNITS, rng.choice(list(HELD)), rng.randint(1, 6))
        clusters = rng.randint(1, 2000)
        full, last = spread(clusters, room)
        assert clusters - full * room[-1] == 0 if not last else clusters - full * room[-1] <= room[last - 1]
        assert last < 2 or clusters - full * room[-1] > room[last - 2], "one block less would have held them"


def test_one_cluster_too_many_takes_another_wave():
    """30 clusters of 4 blocks of 64 KB each run at once on an H200, and 31 took 1.6 times as long."""
    took = []
    for tiles in (30, 31):
        problem = problem_of_shape(32 * tiles, 4096, 64, "float64")
        way = next(w for w in ways(problem, H200) if w.words() == "32x64 c4")
        took.append(seconds(way, problem, H200))
    assert took[1] > 1.3 * took[0]
