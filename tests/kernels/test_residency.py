"""How many clusters a card holds at once, and what that makes of the models' choices."""

from __future__ import annotations

import random

import pytest

from seeds import next_seed
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import problem_of_shape
from tilewise.kernels.mma_gemm.direct_half.model import HalfTile
from tilewise.kernels.mma_gemm.family import DirectHalf
from tilewise.kernels.shared.residency import HELD, UNITS, busiest, in_waves, padded, rooms


@pytest.mark.parametrize("cluster", HELD)
def test_a_card_holds_no_more_clusters_than_its_multiprocessors_make(cluster):
    for units in (UNITS, 108, 16):
        for resident in range(1, 7):
            room = rooms(units, cluster, resident)
            assert len(room) == resident
            assert list(room) == sorted(room)
            assert room[0] * cluster <= max(units, cluster)


def test_the_busiest_multiprocessor_has_as_many_blocks_as_hold_what_is_left():
    seed = next_seed() % 10**9
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(500):
        room = rooms(UNITS, rng.choice(list(HELD)), rng.randint(1, 6))
        rest = rng.randint(1, room[-1])
        blocks = busiest(rest, (0.0, *padded(room)), 1)
        assert rest <= room[blocks - 1]
        assert blocks < 2 or rest > room[blocks - 2], "one block less would have held them"


def test_one_cluster_too_many_takes_another_wave():
    """30 clusters of 4 blocks, each of them alone on its multiprocessor, run at once on an H200."""
    fits, beyond = (in_waves(tiles, padded(rooms(UNITS, 4, 1)), 0, 10.0, 1.0, 1.0, 0.0, 0.0) for tiles in (30, 31))
    assert beyond == 2 * fits


def test_one_cluster_of_halves_too_many_is_a_turn_more():
    tile = HalfTile(128, 64, 4, 4, 1, cluster=7)
    fits, beyond = (
        DirectHalf().seconds(tile, problem_of_shape(128, 14 * 64, 64 * n, "float16"), KNOWN_CARDS["h200"])
        for n in (15, 16)
    )
    assert beyond > 1.3 * fits
