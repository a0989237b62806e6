"""Families whose cost model is tables: the best configuration is the fastest of all, and each has its own time."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from seeds import next_seed
from tilewise.bench.drawn_problems import drawn_problem
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Layout, problem_of_shape
from tilewise.kernels.by_configs import Tabled, timed
from tilewise.kernels.mma_gemm.family import HalfDots
from tilewise.kernels.registry import FAMILIES

H200 = KNOWN_CARDS["h200"]
KINDS = ("bfloat16", "float32", "tf32", "float64")


# direct_half is weighed by 0.95 of its time, bulk_lines looks at two cuts of k of a tile
WITHIN = {"direct_half": 0.06, "bulk_lines": 0.1}
ELSEWHERE = "mma_sync", "grouped"  # the one looks at fewer tiles, the other takes groups alone
TABLED = [one for one in FAMILIES if isinstance(one, Tabled) and one.name not in ELSEWHERE]


@pytest.mark.parametrize("family", TABLED, ids=lambda one: one.name)
def test_the_best_is_the_fastest_of_all(family):
    rng, met = random.Random(next_seed()), 0
    for _ in range(150):
        problem = drawn_problem(rng, rng.choice(KINDS), 512)
        if met == 4 or problem.epilogue or problem.stack or family.refusal(problem, H200):
            continue
        met += 1
        every, within = dict(timed(family.tables(problem, H200))), WITHIN.get(family.name, 1e-9)
        seconds, config = family.best(problem, H200)
        assert seconds == pytest.approx(min(every.values()), rel=within), problem
        assert family.seconds(config, problem, H200) == pytest.approx(seconds, rel=within), problem
    assert met


def test_of_two_orientations_the_sooner_one_is_taken():
    """Both operands of a small P have k along their lines: either may be the one that is read once."""
    for m, n in ((3, 30), (30, 3)):
        problem = replace(problem_of_shape(m, 4001, n, "bfloat16"), layout_n=Layout(1, 4001))
        found = [
            table.formula.least(table.rows, table.given, problem.largest) for table in HalfDots().tables(problem, H200)
        ]
        assert len({seconds for _, seconds in found}) == 2
        assert HalfDots().best(problem, H200)[0] == min(seconds for _, seconds in found)


def test_kernels_without_classes_in_tuned_tables_are_not_tuned():
    """`tilewise tune` asked some of them for a class, and ended with their TypeError."""
    problem = problem_of_shape(64, 64, 64)
    assert {one.name for one in FAMILIES if one.tuning_class(problem) is not None} == {"wgmma_half", "mma_sync"}
