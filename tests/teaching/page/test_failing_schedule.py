"""The order that fails really fails: its P is wrong, and a second program that replays the order gets the same P."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from page_variants import variant
from seeds import next_seed
from tilewise.emulator.limits import Limits
from tilewise.teaching.page.exploring import explore
from tilewise.teaching.page.variants import BARRIER, drops_of, without

LOAD, FILL, STORE, USE, SUM, BARRIER_EVENT = range(6)


def replayed(document):
    """P after the recorded order, from the JSON alone: memory is a dictionary, sums are redone from what was read."""
    names, columns = document["names"], document["events"]
    matrices = {m["name"]: np.array(m["values"], object).reshape(m["rows"], m["cols"]) for m in matrices_of(document)}
    shared, sums, read, out = {}, {}, {}, {}
    for i, kind in enumerate(columns["kind"]):
        who = (columns["block"][i], columns["thread"][i])
        name = names[columns["array"][i]] if columns["array"][i] >= 0 else ""
        cell = (columns["row"][i], columns["col"][i])
        if kind == LOAD and columns["to_array"][i] >= 0 and columns["to_row"][i] is not None:
            to = (who[0], names[columns["to_array"][i]], columns["to_row"][i], columns["to_col"][i])
            shared[to] = matrices[name][columns["got_row"][i], columns["got_col"][i]]
        elif kind == FILL:
            shared[who[0], name, *cell] = columns["value"][i]
        elif kind == USE:
            held = shared.get((who[0], name, *cell))
            assert held is None or held == columns["value"][i], "a read gives what was put there last"
            read.setdefault(who, []).append(held)
        elif kind == SUM:
            one, two = read.pop(who)
            sums[who] = None if None in (one, two, sums.get(who, 0)) else sums.get(who, 0) + one * two
        elif kind == STORE:
            out[columns["got_row"][i], columns["got_col"][i]] = sums[who]
    return out


def matrices_of(document):
    return document["matrices"].values()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("kernel", [None, "tiled", "tiled_edges"])
def test_the_failing_order_ends_with_a_wrong_p_that_a_second_program_finds_too(kernel):
    seed = next_seed() % 1000
    k = 4 + seed % 3 * 2  # two phases at least
    shape = (4, k, 4) if kernel == "tiled" else (3 + seed % 3, k - 1, 3 + seed % 2)
    page = explore(kernel, shape=shape, tile=2, limits=Limits(seconds=300))
    barriers = [name for name in page.drops if name.startswith(BARRIER)]
    assert len(barriers) == 2
    for name in barriers:
        made = variant(page, [name]).failing
        assert made is not None, f"{name} has no order that fails at {shape} (seed {seed})"
        held, wrong = made.matrices["P"].values, made.wrong
        right = made.matrices["M"].values.astype(float) @ made.matrices["N"].values.astype(float)
        assert wrong
        assert all(held[cell] != right[cell] for cell in wrong), f"seed {seed}"
        again = replayed(made.to_json())
        assert set(again) == {(r, c) for r in range(shape[0]) for c in range(shape[2])}
        for cell, value in again.items():
            assert value is None or value == held[cell], f"{cell} at {shape}, seed {seed}"
        assert sum(again[cell] is not None for cell in wrong) or name == "barrier-1", "what is wrong is a number"


@pytest.mark.slow
def test_every_missing_barrier_of_every_rung_has_an_order_that_fails():
    for kernel, tile, shape in (("coarsened", 2, (4, 6, 8)), ("register_tiled", 16, (8, 20, 8))):
        made = tw.trace(kernel, shape=shape, tile=tile, blocks="all")
        for drop in drops_of(made):
            if drop.kind == BARRIER:
                text = without(made.source, (drop,))
                variant = tw.trace(
                    text,
                    shape=shape,
                    tile=tile,
                    grid=made.run.grid,
                    block=made.run.block,
                    adversarial=True,
                    limits=Limits(seconds=300),
                )
                assert variant.failing is not None, f"{kernel} without {drop.name}"
                assert variant.failing.wrong


def test_what_a_run_counts_does_not_grow_with_the_orders_tried():
    """A race makes the launch run again in other orders: the counters are those of the first run."""
    made = tw.trace("tiled_edges", shape=(4, 4, 4), tile=2, blocks="all")
    text = without(made.source, drops_of(made)[-1:])
    quiet = tw.trace(text, shape=(4, 4, 4), tile=2).counters
    shown = tw.trace(text, shape=(4, 4, 4), tile=2, adversarial=True).counters
    assert shown == quiet
    assert shown["loads of M"] + shown["loads of N"] == shown["loads"]
