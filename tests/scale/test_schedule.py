"""Schedules: within the budget, every tile once, bytes counted as they are moved, and the least that works is true."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewise as tw
from tilewise.core.problem import problem_of_shape
from tilewise.scale import schedule as schedules
from tilewise.scale.budget import budget
from tilewise.scale.files import LEAST_TILE
from tilewise.scale.panels import phases
from tilewise.scale.schedule import Level, make_schedule
from tilewise.scale.staging import Ring

LEVEL = Level("test", 1e9, 5e8, 1e11)


def problem(m, k, n, dtype="float32"):
    return replace(problem_of_shape(m, k, n, dtype), unrounded=True)


@settings(max_examples=40)
@given(
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.sampled_from(["float32", "float64", "bfloat16", "int8"]),
    st.integers(200_000, 50_000_000),
    st.sampled_from([1, 4, 8]),
)
def test_it_fits_and_covers(m, k, n, dtype, memory, bands):
    schedule = make_schedule(problem(m, k, n, dtype), LEVEL, memory, bands=bands)
    assert schedule.needs <= memory
    for phase in phases(schedule):
        heights = [rows.stop - rows.start for rows in phase.bands(schedule.band)]
        assert sum(heights) == phase.tile.shape[0]
        assert max(heights) <= schedule.band
    assert sorted(tile.number for tile in schedule.walk()) == list(range(schedule.tiles))
    cells = sum(tile.shape[0] * tile.shape[1] for tile in schedule.walk())
    assert cells == m * n
    assert sum(s.stop - s.start for s in schedule.slices()) == k


@pytest.mark.parametrize("bands", [1, 4])
@pytest.mark.parametrize(("m", "k", "n"), [(3000, 2000, 1000), (5000, 60, 4000), (4000, 60, 5000), (640, 9000, 700)])
def test_bytes_are_those_that_the_rings_read(m, k, n, bands):
    schedule = make_schedule(problem(m, k, n), LEVEL, 2_000_000, bands=bands)
    ring_m, ring_n, moved = Ring(schedule.held), Ring(2), 0
    for phase in phases(schedule):
        parts = [(ring_m, (rows, phase.ks)) for rows in phase.bands(schedule.band)]
        for ring, part in (*parts, (ring_n, phase.part_n)):
            number, fill = ring.find(part)
            ring.users[number] -= 1
            if fill:
                moved += 4 * (part[0].stop - part[0].start) * (part[1].stop - part[1].start)
    # neighbours share a corner of the walk too, which the schedule does not count on
    assert 0.75 * schedule.bytes_in <= moved <= schedule.bytes_in


@given(
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.integers(200_000, 5_000_000),
    st.sampled_from([1, 8]),
)
def test_no_cut_that_is_left_out_would_be_faster(m, k, n, memory, bands):
    narrow = Level("bytes count", 1e7, 1e9, 1e13)
    best = make_schedule(problem(m, k, n), narrow, memory, bands=bands)
    for rows in schedules._sides(m, 64):
        for cols in schedules._sides(n, 64):
            for made in schedules._depths(replace(best, rows=rows, cols=cols)):
                assert (best.predicted, best.bytes_in) <= (made.predicted, made.bytes_in)


def test_more_memory_never_moves_more():
    rooms = [10**6 * 4**i for i in range(8)]
    moved = [make_schedule(problem(20000, 20000, 20000), LEVEL, room).bytes_in for room in rooms]
    assert moved == sorted(moved, reverse=True)
    assert moved[-1] < moved[0] / 10


def test_bands_leave_room_for_deeper_panels():
    whole, banded = (make_schedule(problem(20000, 20000, 20000), LEVEL, 10**8, bands=bands) for bands in (1, 8))
    same = replace(whole, bands=8)
    assert same.needs < 0.9 * whole.needs
    assert banded.predicted < whole.predicted


def test_slow_copies_to_the_host_stall_the_next_tile():
    fast = make_schedule(problem(20000, 20000, 20000), LEVEL, 10**8, bands=8)
    assert fast.stall_seconds == 0
    slow = replace(fast, level=replace(LEVEL, write=LEVEL.write / 100))
    leaving = 100 * slow.bytes_out / LEVEL.write
    assert 0.9 * leaving < slow.stall_seconds < leaving


def test_a_budget_for_everything_reads_hardly_more_than_once():
    slow_disk = replace(LEVEL, read=1e7)
    schedule = make_schedule(problem(2000, 2000, 2000), slow_disk, 10**9)
    assert schedule.bytes_in == 2 * 4 * 2000**2


def test_the_least_that_works_works():
    with pytest.raises(tw.OutOfMemoryError, match=r"memory=1 kB is too small.*least that works is") as caught:
        make_schedule(problem(3000, 3000, 3000), LEVEL, 1000)
    least = int(re.search(r"is ([\d,]+) bytes", str(caught.value))[1].replace(",", ""))
    assert make_schedule(problem(3000, 3000, 3000), LEVEL, least).needs <= least
    with pytest.raises(tw.OutOfMemoryError):
        make_schedule(problem(3000, 3000, 3000), LEVEL, least - 1001)


def test_with_the_least_that_works_a_product_still_ends():
    """Tiles of 64² would take a hundred times as long: a budget for no more than those is refused."""
    for m, k, n in ((5000, 5000, 5000), (700, 90_000, 3000), (40, 30, 2000)):
        with pytest.raises(tw.OutOfMemoryError) as caught:
            make_schedule(problem(m, k, n), LEVEL, 1000, least=LEAST_TILE)
        least = int(re.search(r"is ([\d,]+) bytes", str(caught.value))[1].replace(",", ""))
        made = make_schedule(problem(m, k, n), LEVEL, least, least=LEAST_TILE)
        assert made.needs <= least
        plenty = make_schedule(problem(m, k, n), LEVEL, 10**10)
        assert made.predicted < 5 * plenty.predicted  # with 64²: 150 times


def test_tiles_of_a_store_hold_whole_chunks():
    schedule = make_schedule(problem(3000, 500, 3000), LEVEL, 3_000_000, grain=(300, 200))
    for tile in schedule.walk():
        assert tile.rows.start % 300 == 0
        assert tile.cols.start % 200 == 0


@pytest.mark.parametrize(
    ("text", "count"), [("1GB", 10**9), ("1GiB", 2**30), ("0.5 MB", 500_000), (4096, 4096), ("12k", 12000)]
)
def test_budgets_as_people_write_them(text, count):
    assert budget(text) == count


@pytest.mark.parametrize("text", ["", "much", "1XB", "-1GB", 0, -5, 1.5, None, True])
def test_what_is_no_budget_is_refused(text):
    with pytest.raises(tw.UsageError, match="no amount of memory"):
        budget(text)
