"""Models mended by what was measured: a table of errors makes expected times right, and is kept whole."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from tilewise.bench.calibrate import draw
from tilewise.calibration import applies, calibrated, classes, with_errors
from tilewise.kernels.registry import FAMILIES
from tilewise.machine import KNOWN_CARDS
from tilewise.planning import make_plan
from tilewise.problem import Problem, problem_of_shape, row_major
from tilewise.tuning import Table, table_for, table_of

H200 = KNOWN_CARDS["h200"]


def plans(problem: Problem):
    taking = [f for f in FAMILIES if not f.teaches and f.refusal(problem, H200) is None]
    return [family.plan(problem, H200, None, None) for family in taking]


def random_problems(count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        shape = draw(rng, ("bfloat16", "float32", "float64", "tf32"))
        yield problem_of_shape(shape.m, shape.k, shape.n, shape.dtype, precision=shape.precision)


def test_a_kernel_that_takes_twice_as_long_is_expected_to():
    seed = int(time.time())
    found = [plan for problem in random_problems(60, seed) for plan in plans(problem)]
    slow = {"plain": 2.0, "wgmma_half": 0.5}
    table = with_errors(Table("NVIDIA H200", {}), [(p, p.predicted * slow.get(p.kernel, 1.0)) for p in found])
    tuned = replace(H200, tuned=table)
    for plan in found:
        mended = calibrated(replace(plan, machine=tuned)).predicted
        expected = max(plan.floor, plan.predicted * slow.get(plan.kernel, 1.0))
        assert mended == pytest.approx(expected, rel=0.5), f"seed {seed}: {plan}"


def test_what_was_not_measured_is_left_alone():
    table = Table("NVIDIA H200", {}, {"plain float32 high": (1.0, 100), "plain float32 ieee": (1.0, 100)})
    tuned = replace(H200, tuned=table)
    for problem in (problem_of_shape(100, 100, 100, semiring="min_plus"), replace(problem_of_shape(9, 9, 9), stack=())):
        plan = make_plan(problem, tuned, "plain")
        assert (plan.predicted > make_plan(problem, H200, "plain").predicted) == applies(problem)
    assert not applies(problem_of_shape(100, 100, 100, semiring="min_plus"))


def test_classes_go_from_coarse_to_fine():
    names = classes(make_plan(problem_of_shape(300, 200, 100, "float16"), H200))
    assert all(fine.startswith(coarse) for coarse, fine in pairwise(names))
    assert "half" in names[0]


def test_a_table_comes_back_as_it_was_written():
    table = table_for("NVIDIA H200")
    assert table is not None
    assert len(table.errors) > 1000
    assert table_of(table.to_json()) == table


def test_stacks_have_classes_of_their_own():
    one = problem_of_shape(17, 129, 33, "bfloat16")
    sides = {"layout_m": (17, 129), "layout_n": (129, 33), "layout_p": (17, 33)}
    many = replace(one, stack=(1000,), **{name: row_major(*side, (1000,)) for name, side in sides.items()})
    for single, stack in zip(plans(one), plans(many), strict=True):
        assert not set(classes(single)) & set(classes(stack))
        assert all(fine.startswith(coarse) for coarse, fine in pairwise(classes(stack)))
    table = with_errors(Table("NVIDIA H200", {}), [(plan, 3 * plan.predicted) for plan in plans(many) for _ in "ab"])
    tuned = replace(H200, tuned=table)
    for plan in plans(many):
        assert calibrated(replace(plan, machine=tuned)).predicted > 2 * plan.predicted
    for plan in plans(one):
        assert calibrated(replace(plan, machine=tuned)).predicted == plan.predicted
