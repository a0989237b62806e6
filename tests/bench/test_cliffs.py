"""`bench cliffs`: which walks there are, and which neighbours are reported."""

from __future__ import annotations

import pytest

from tilewise.bench import cliffs
from tilewise.bench.report import tables
from tilewise.bench.suites import Request, Shape, pieces

SMALL, LARGE = (100, 100, 100), (150, 100, 100)


def test_a_walk_varies_one_extent_as_far_as_memory_and_time_allow() -> None:
    walk = cliffs.shapes(1, (2, 8))
    assert walk[:4] == [(2, 1, 8), (2, 2, 8), (2, 3, 8), (2, 4, 8)]
    assert all(2 * k * 8 <= cliffs.STEPS for _, k, _ in walk)
    assert walk[-1][1] > 200_000
    assert len(pieces(Request("cliffs", "cpu"))) > len(pieces(Request("cliffs", "cpu", quick=True))) > 20


@pytest.mark.parametrize(
    ("short", "long", "cliff"),
    [(1e-3, 1.5e-3, False), (1e-3, 0.6e-3, True), (1e-3, 0.75e-3, False), (1e-3, 4e-3, True), (1e-6, 4e-6, False)],
)
def test_times_that_fall_or_grow_faster_than_the_work_are_cliffs(short: float, long: float, cliff: bool) -> None:
    assert cliffs.is_cliff((SMALL, LARGE), short, long) == cliff


def test_a_cliff_is_listed_with_both_kernels_only_if_it_shows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[Shape] = []

    def slower(shape: Shape, dtype: str, layouts: str) -> tuple[float, float]:
        timed.append(shape)
        return (1e-3 if shape == SMALL or len(timed) > limit else 5e-3), 1e-3

    monkeypatch.setattr(cliffs, "seconds", slower)
    limit = 100
    (row,) = cliffs.cliffs("float64", "NN", [SMALL, LARGE], 1)
    assert len(timed) == 2 * (1 + cliffs.CONFIRMED)
    ((_, _, ((case, kernels, ours, _),)),) = tables({"suite": "cliffs", "rows": [row]})
    assert (case, ours) == ("float64 NN 100×100×100 → 150×100×100", "1000.0 → 5000.0")
    assert kernels.count("→") == 1
    timed.clear()
    limit = 4
    assert cliffs.cliffs("float64", "NN", [SMALL, LARGE], 1) == []
