"""The worked examples of the course, number by number."""

from __future__ import annotations

from collections import Counter

import pytest
from simt_support import KERNELS

from tilewise.emulator.machine.events import NONE, EventKind
from tilewise.teaching.trace import check, trace
from tilewise.teaching.trace.table import block_loads, uses_per_value


def loads(result, block, phase, thread=None):
    """(thread, array, requested, reached) of a block's loads in a phase; threads as (ty, tx)."""
    events = result.events.of(EventKind.LOAD, block=block, phase=phase)
    out = []
    for i in range(len(events)):
        got = (int(events.got_row[i]), int(events.got_col[i]))
        who = divmod(int(events.thread[i]), result.run.block[0])
        if thread in (None, who):
            requested = (int(events.row[i]), int(events.col[i]))
            out.append((who, result.names[events.array[i]], requested, None if got[0] == NONE else got))
    return out


@pytest.fixture(scope="module")
def four():
    return trace(KERNELS / "collaborative.cu", shape=(4, 4, 4), tile=2, blocks="all")


@pytest.fixture(scope="module")
def three():
    return trace(KERNELS / "tiled_edges.cu", shape=(3, 3, 3), tile=2, blocks="all")


@pytest.fixture(scope="module")
def unchecked():
    return trace(KERNELS / "tiled_unchecked.cu", shape=(3, 3, 3), tile=2, blocks="all")


def test_four_by_four_loads_half(four):
    assert four.counters["loads"] == 64
    assert four.counters["loads without tiles"] == 128
    assert block_loads(four, 0) == (16, 32)
    assert four.phases == 2
    assert not four.run.faults


def test_every_shared_value_is_read_by_two_threads(four):
    assert uses_per_value(four.events) == {2: 64}


def test_values_are_counted_as_one_would_by_hand(three):
    """At an edge some threads are outside P, so that values have different numbers of readers."""
    readers, uses = {}, three.events.of(EventKind.USE)
    for *value, thread in zip(uses.block, uses.phase, uses.array, uses.row, uses.col, uses.thread, strict=True):
        readers.setdefault(tuple(value), set()).add(thread)
    assert uses_per_value(three.events) == Counter(map(len, readers.values()))


def test_the_table_of_block_0_0(four):
    for phase in (0, 1):
        for ty in (0, 1):
            for tx in (0, 1):
                got = loads(four, 0, phase, (ty, tx))
                assert [(a, c) for _, a, c, _ in got] == [
                    ("d_M", (ty, 2 * phase + tx)),
                    ("d_N", (2 * phase + ty, tx)),
                ]
    events = four.events.of(EventKind.LOAD, block=0)
    assert (events.to_row == events.thread // 2).all()
    assert (events.to_col == events.thread % 2).all()


def test_three_by_three_fills_the_edges(three):
    assert three.counters["loads"] == 36
    assert three.counters["fills"] == 28
    assert three.counters["stores"] == 9
    assert len(three.events.of(EventKind.FILL)) == 28
    assert not three.run.faults


def test_a_thread_that_stores_nothing_still_loads(three):
    assert loads(three, 3, 0, (1, 0)) == [((1, 0), "N", (1, 2), (1, 2))]
    stores = three.events.of(EventKind.STORE, block=3)
    assert stores.thread.tolist() == [0]


def test_without_checks_block_0_0_phase_1(unchecked):
    wrong = [x for x in loads(unchecked, 0, 1) if x[2] != x[3]]
    assert wrong == [
        ((0, 1), "M", (0, 3), (1, 0)),
        ((1, 1), "M", (1, 3), (2, 0)),
        ((1, 0), "N", (3, 0), None),
        ((1, 1), "N", (3, 1), None),
    ]


def test_without_checks_block_1_1_phase_0(unchecked):
    wrong = [x for x in loads(unchecked, 3, 0) if x[2] != x[3]]
    assert [(who, array, requested) for who, array, requested, _ in wrong] == [
        ((1, 0), "M", (3, 0)),
        ((1, 1), "M", (3, 1)),
        ((0, 1), "N", (0, 3)),
        ((1, 1), "N", (1, 3)),
    ]


def test_without_checks_the_whole_grid(unchecked):
    counts = {(str(f.kind), f.array, f.scope): f.count for f in unchecked.run.faults}
    assert counts[("silent-overrun", "M", "")] == 4
    assert counts[("out-of-bounds", "M", "")] == 10
    assert counts[("silent-overrun", "N", "")] == 4
    assert counts[("out-of-bounds", "N", "")] == 10
    assert counts[("silent-overrun", "P", "")] == 2
    assert counts[("out-of-bounds", "P", "")] == 5
    assert counts[("race", "P", "between blocks")] == 2


def test_the_struct_kernel_with_its_own_launch():
    report = check(KERNELS / "matrix_struct.cu", shape=[(5, 7, 3), (16, 16, 16), (33, 20, 17)])
    assert report.ok
    assert [r.grid for r in report.runs] == [(1, 1, 1), (1, 1, 1), (2, 3, 1)]
