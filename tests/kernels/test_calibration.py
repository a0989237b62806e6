"""Models corrected by what was measured: fits make expected times right, and are kept whole."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

from seeds import next_seed
from tilewise.bench.calibrate import problem_of
from tilewise.cli.tune import _write
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import problem_of_shape, row_major
from tilewise.core.tuning import TunedTable, table_for, table_of
from tilewise.errors import TilewiseError
from tilewise.kernels.calibration import calibrated, corrected_seconds, features, with_fits
from tilewise.kernels.choosing import ranked_plans

H200 = KNOWN_CARDS["h200"]
NONE = TunedTable("NVIDIA H200", {})


def drawn_plans(count, seed):
    """The plans of every family for drawn problems."""
    for number in range(count):
        try:
            yield [plan for plan in ranked_plans(problem_of(seed, number), H200) if not plan.real]
        except TilewiseError:  # the semiring does not have the dtype
            continue


def test_a_kernel_that_takes_longer_is_expected_to():
    """On products that were not measured, too: by a factor, or by one that grows with the extents."""
    seed = next_seed() % 2**32
    every = [plan for plans in drawn_plans(500, seed) for plan in plans]

    def seconds(plan):
        slow = {"plain": 2.0, "direct": 0.5, "cells": 3 * max(1.0, 64 / plan.problem.n) ** 0.5}
        return max(plan.floor, plan.predicted * slow.get(plan.kernel, 1.0))

    half = len(every) // 2
    tuned = replace(H200, tuned=with_fits(NONE, [(plan, seconds(plan)) for plan in every[:half]]))
    assert {"plain", "direct", "cells"} <= tuned.tuned.fits.keys(), f"seed {seed}"
    for kernel, before in (("plain", math.log(2)), ("direct", math.log(2)), ("cells", 1.0)):
        plans = [plan for plan in every[half:] if plan.kernel == kernel and plan.floor < plan.predicted / 4]
        off = sorted(abs(math.log(corrected_seconds(replace(x, machine=tuned)) / seconds(x))) for x in plans)
        assert off[len(off) // 2] < before / 5, f"seed {seed}: {kernel}"


def test_kinds_of_elements_are_distinguished():
    """A kernel that is slow for one dtype alone is expected to be slow for that one."""
    seed = next_seed() % 2**32
    every = [plan for plans in drawn_plans(600, seed) for plan in plans if plan.kernel == "plain"]
    measured = [(plan, plan.predicted * (4 if plan.problem.dtype.name == "float64" else 1)) for plan in every]
    tuned = replace(H200, tuned=with_fits(NONE, measured))
    for dtype, least, most in (("float64", 2.0, 4.5), ("float32", 0.8, 1.3)):
        plans = [plan for plan in every if plan.problem.dtype.name == dtype and plan.floor < plan.predicted / 8]
        ratios = sorted(corrected_seconds(replace(plan, machine=tuned)) / plan.predicted for plan in plans)
        assert least < ratios[len(ratios) // 2] < most, f"seed {seed}: {dtype}"


def test_what_was_not_measured_is_left_alone():
    plan = ranked_plans(problem_of_shape(300, 200, 100, semiring="min_plus"), H200)[0]
    tuned = replace(H200, tuned=with_fits(NONE, [(plan, 3 * plan.predicted)] * 7))
    assert not tuned.tuned.fits  # a few samples say nothing
    assert calibrated(replace(plan, machine=tuned)).predicted == plan.predicted
    tuned = replace(H200, tuned=with_fits(NONE, [(plan, 3 * plan.predicted)] * 8))
    corrected = corrected_seconds(replace(plan, machine=tuned))
    assert plan.predicted < corrected <= 3 * plan.predicted
    tracked = replace(plan.problem, return_arg=True)
    assert corrected_seconds(replace(plan, machine=tuned, problem=tracked)) == plan.predicted


def test_a_correction_never_passes_the_floor_or_what_was_measured():
    seed = next_seed() % 2**32
    rng = random.Random(seed)
    tuned = replace(H200, tuned=table_for("NVIDIA H200"))
    for _ in range(200):
        m, k, n, members = (round(2 ** rng.uniform(0, most)) for most in (20, 20, 20, 12))
        problem = problem_of_shape(m, k, n, rng.choice(("bfloat16", "float32", "float64", "int8")))
        lies = {f"layout_{x}": row_major(*s, (members,)) for x, s in (("m", (m, k)), ("n", (k, n)), ("p", (m, n)))}
        for plan in ranked_plans(replace(problem, stack=(members,), **lies) if members > 1 else problem, H200):
            fit, corrected = tuned.tuned.fits[plan.kernel], corrected_seconds(replace(plan, machine=tuned))
            assert plan.floor <= corrected <= max(plan.floor, plan.predicted * math.exp(fit.most) * 1.0001), plan
            assert corrected >= plan.predicted * math.exp(fit.least) * 0.9999


def test_a_table_comes_back_as_it_was_written(tmp_path):
    table = table_for("NVIDIA H200")
    assert table is not None
    plan = ranked_plans(problem_of_shape(9, 9, 9), H200)[0]
    assert len(table.fits) > 15
    assert all(len(fit.weights) == len(features(plan)) for fit in table.fits.values())
    _write(tmp_path / "h200.json", table.to_json())
    assert table_of(json.loads((tmp_path / "h200.json").read_text())) == table


def test_tables_of_another_version_are_left_aside():
    document = table_for("NVIDIA H200").to_json()
    assert table_of({**document, "version": 1}) is None
    assert table_of({**document, "fits": {"cells": [1.0]}}) is None
