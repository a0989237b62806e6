"""Models mended by what was measured: a table of errors makes expected times right, and is kept whole."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise

import pytest

from seeds import next_seed
from tilewise.bench.random_shapes import draw
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Problem, problem_of_shape, row_major
from tilewise.core.tuning import StackFit, TunedTable, table_for, table_of
from tilewise.kernels.calibration import Mending, applies, calibrated, classes, with_errors
from tilewise.kernels.registry import FAMILIES
from tilewise.planning.choose import make_plan

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
    seed = next_seed() % 2**32
    found = [plan for problem in random_problems(60, seed) for plan in plans(problem)]
    slow = {"plain": 2.0, "wgmma_half": 0.5}
    table = with_errors(TunedTable("NVIDIA H200", {}), [(p, p.predicted * slow.get(p.kernel, 1.0)) for p in found])
    tuned = replace(H200, tuned=table)
    for plan in found:
        mended = calibrated(replace(plan, machine=tuned)).predicted
        expected = max(plan.floor, plan.predicted * slow.get(plan.kernel, 1.0))
        assert mended == pytest.approx(expected, rel=0.5), f"seed {seed}: {plan}"


def test_what_was_not_measured_is_left_alone():
    table = TunedTable("NVIDIA H200", {}, {"plain float32 high": (1.0, 100), "plain float32 ieee": (1.0, 100)})
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
    assert len(table.errors) > 300
    assert len(table.stacks) > 10
    assert table_of(table.to_json()) == table


def stacked(members, m, k, n, dtype="bfloat16"):
    sides = {"layout_m": (m, k), "layout_n": (k, n), "layout_p": (m, n)}
    lies = {name: row_major(*side, (members,)) for name, side in sides.items()}
    return replace(problem_of_shape(m, k, n, dtype), stack=(members,), **lies)


def test_stacks_are_mended_by_their_extents():
    """A kernel that is slower the fewer columns there are is expected to be, on stacks that were not measured, too; and
    nothing else is."""
    seed = next_seed() % 2**32
    rng = random.Random(seed)
    problems = [stacked(*(round(2 ** rng.uniform(1, top)) for top in (10, 9, 9, 9))) for _ in range(120)]
    found = [plan for problem in problems for plan in plans(problem)]

    def slow(plan):
        return plan.predicted * (2 * max(1.0, 64 / plan.problem.n) ** 0.5 if plan.kernel == "cells" else 1.0)

    half = len(found) // 2
    table = with_errors(TunedTable("NVIDIA H200", {}), [(plan, slow(plan)) for plan in found[:half]])
    assert not table.errors
    tuned = replace(H200, tuned=table)
    checked = [plan for plan in found[half:] if f"{plan.kernel} half" in table.stacks]
    assert {"cells", "wgmma_half"} <= {plan.kernel for plan in checked}, f"seed {seed}"
    off = []
    for plan in checked:
        mended = calibrated(replace(plan, machine=tuned)).predicted
        off.append(abs(math.log(mended / max(plan.floor, slow(plan)))))
        least = Mending(plan.problem, tuned).least(plan.predicted, [plan.kernel])
        assert least <= max(plan.floor, mended), f"seed {seed}"
    assert sorted(off)[len(off) * 9 // 10] < 0.3, f"seed {seed}"  # a few stacks lie outside of what was measured
    one = make_plan(problem_of_shape(17, 129, 33, "bfloat16"), H200)
    assert calibrated(replace(one, machine=tuned)).predicted == one.predicted


def test_a_few_stacks_say_nothing():
    many = plans(stacked(1000, 17, 129, 33))
    table = with_errors(TunedTable("NVIDIA H200", {}), [(plan, 3 * plan.predicted) for plan in many for _ in range(5)])
    assert not table.stacks


def test_tables_of_another_form_of_lines_are_left_alone():
    document = TunedTable("NVIDIA H200", {}, {}, 0.0, {"cells half": StackFit((0.5, 1.0), -1.0, 1.0)}).to_json()
    assert table_of(document).stacks == {"cells half": StackFit((0.5, 1.0), -1.0, 1.0)}
    assert table_of({**document, "stacks": {"cells half": [1.0]}}) is None
    plan = make_plan(stacked(1000, 17, 129, 33), H200, "cells")
    tuned = replace(H200, tuned=table_of(document))
    assert calibrated(replace(plan, machine=tuned)).predicted == plan.predicted
