"""The choice of a plan is that of an exhaustive search."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace

import pytest

from seeds import next_seed, sample_size
from tilewise.bench.drawn_problems import KINDS, drawn_problem
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.plan import after_epilogue
from tilewise.core.problem import Groups, problem_of_shape, row_major
from tilewise.core.tuning import preferred, table_for
from tilewise.kernels.by_configs import timed
from tilewise.kernels.calibration import corrected_seconds
from tilewise.kernels.choosing import PASS_SECONDS, competing, problem_for
from tilewise.kernels.registry import family_of
from tilewise.kernels.wgmma_gemm.wgmma_half import model as wgmma_half
from tilewise.planning.choose import make_plan
from tilewise.system import machine_code
from tilewise.system.machine_code import Formula, Search

H200 = replace(KNOWN_CARDS["h200"], arch="sm_90a", tuned=table_for("NVIDIA H200"))
CARDS = (H200, KNOWN_CARDS["h200"], KNOWN_CARDS["a100"], KNOWN_CARDS["rtx4090"])


@pytest.fixture
def rng():
    seed = next_seed() % 10**9
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("card", [H200, KNOWN_CARDS["h200"]], ids=("tuned", "not tuned"))
def test_tiles_that_are_left_out_are_slower(rng, card):
    for _ in range(sample_size(60)):
        problem = drawn_problem(rng, rng.choice(("bfloat16", "float16")))
        every = enumerate(timed(wgmma_half.tables(problem, card)))
        numbered = [(seconds, number, config) for number, (config, seconds) in every]
        seconds, best, tuned = preferred(numbered, wgmma_half.tuning_class(problem), card.tuned)
        found, config = wgmma_half.best_config(problem, card)
        assert (config, config.tuned, found) == (best, tuned, seconds), problem


def test_groups_take_configs_for_groups(rng):
    """Also those of a few hundred rows, which alone would be a tile's columns."""
    for _ in range(40):
        m, n, count = rng.randint(65, 512), 8 * rng.randint(8, 300), rng.randint(1, 300)
        problem = problem_of_shape(m, 8 * rng.randint(1, 100), n, "bfloat16")
        of_n = problem.layout_n._replace(stack=(problem.k * n,))
        grouped = replace(problem, layout_n=of_n, groups=Groups(count))
        assert wgmma_half.best_config(grouped, H200)[1] in wgmma_half.configs(grouped, H200)


@pytest.mark.parametrize("kind", KINDS)
def test_the_family_with_the_least_corrected_time_is_chosen(rng, kind):
    for card in CARDS:
        for _ in range(25):
            problem = drawn_problem(rng, kind).folded  # as the planner folds a stack whose members share N
            plan = make_plan(problem, card)
            times, passes = {}, {}
            for family in competing(problem, card, None):
                seen = problem_for(family, problem)
                offer = family.offer(seen, card, None)
                seconds = corrected_seconds(offer)
                times[family.name] = seconds if family.can.fuses else after_epilogue(seconds, problem, card)
                passes[family.name] = offer.passes
            weighed = {name: seconds + PASS_SECONDS * passes[name] for name, seconds in times.items()}
            assert plan.family == min(weighed, key=weighed.__getitem__), (problem, times)
            assert plan.predicted == pytest.approx(times[plan.family], rel=1e-12)
            assert plan.passes == passes[plan.family]


def test_no_family_computes_times_in_python(rng, monkeypatch):
    """That took longer than all others."""
    machine_code.compile_formulas()
    for searched in (Formula, Search):
        monkeypatch.setattr(searched, "_in_python", lambda *_: pytest.fail("computed in Python"))
    for kind, members in (("bfloat16", 1), ("float32", 1), ("bfloat16", 40)):
        for _ in range(sample_size(60)):
            extents = [round(2 ** rng.uniform(4, 13 if members == 1 else 10)) for _ in range(3)]
            problem = problem_of_shape(*extents, kind)
            if members > 1:
                layouts = {f"layout_{name}": row_major(*sides, (members,)) for name, sides in _sides(*extents)}
                problem = replace(problem, stack=(members,), **layouts)
            make_plan(problem, H200)


def _sides(m, k, n):
    return ("m", (m, k)), ("n", (k, n)), ("p", (m, n))


@pytest.mark.parametrize("kind", KINDS)
def test_an_offer_agrees_with_the_plan(rng, kind):
    for _ in range(40):
        problem = drawn_problem(rng, kind)
        for family in competing(problem, H200, None):
            seen = problem_for(family, problem)
            offer, plan = family.offer(seen, H200, None), family.plan(seen, H200, None, None)
            assert (offer.kernel, offer.passes) == (plan.kernel, plan.passes), problem
            assert (offer.predicted, offer.floor) == pytest.approx((plan.predicted, plan.floor), rel=1e-12)
            assert family_of(offer.kernel) is family


def test_a_problem_travels_to_another_process_without_its_hash(rng):
    problem = drawn_problem(rng, "float32")
    hash(problem)
    assert "_hash" not in pickle.loads(pickle.dumps(problem)).__dict__
    assert pickle.loads(pickle.dumps(problem)) == problem


def test_formulas_in_python_choose_as_machine_code_does(rng, monkeypatch):
    machine_code.compile_formulas()
    problems = [drawn_problem(rng, rng.choice(list(KINDS))) for _ in range(60)]
    quick = [_chosen(problem, "one") for problem in problems]
    monkeypatch.setattr(Formula, "least", lambda self, table, given, largest: self._in_python(table, given))
    monkeypatch.setattr(Search, "least", Search._in_python)
    assert [_chosen(problem, "two") for problem in problems] == quick


def _chosen(problem, name):
    """On a card of another name no cache holds the answer."""
    plan = make_plan(problem, replace(H200, name=name))
    return plan.kernel, plan.config, plan.predicted, plan.why
