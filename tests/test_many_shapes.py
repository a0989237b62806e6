"""A program that meets a new shape at every call: plans are kept, but not all of them, and threads may plan at once."""

from __future__ import annotations

import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from seeds import next_seed
from tilewise.bench.drawn_problems import KINDS, drawn_problem
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import problem_of_shape
from tilewise.core.tuning import table_for
from tilewise.kernels.recipes import recipe_of
from tilewise.planning.choose import make_plan

resource = pytest.importorskip("resource")  # what a process holds, which Windows reports elsewhere
H200 = replace(KNOWN_CARDS["h200"], arch="sm_90a", tuned=table_for("NVIDIA H200"))


def test_threads_get_the_plans_that_one_alone_gets():
    seed = next_seed() % 10**9
    print(f"seed {seed}")
    rng = random.Random(seed)
    problems = [drawn_problem(rng, rng.choice(tuple(KINDS)), 3000) for _ in range(120)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda problem: recipe_of(make_plan(problem, H200)), problems * 2))
    make_plan.__globals__["_plan"].cache_clear()
    recipe_of.cache_clear()
    for problem, recipe in zip(problems * 2, together, strict=True):
        assert recipe_of(make_plan(problem, H200)) == recipe, problem


def met(count, rng):
    """Seconds of this thread for so many shapes, none met before."""
    start = time.thread_time()
    for _ in range(count):
        m, k, n = (rng.randint(1, 4000) for _ in range(3))
        recipe_of(make_plan(problem_of_shape(m, k, n, "float64"), H200))
    return time.thread_time() - start


def kilobytes():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak


@pytest.mark.slow
def test_a_million_shapes_neither_leak_nor_slow_down():
    rng = random.Random(1)
    met(50_000, rng)  # every cache is full
    first, before = met(50_000, rng), kilobytes()
    for _ in range(18):
        last = met(50_000, rng)
    assert kilobytes() - before < 40_000, "memory grows"
    assert last < 1.6 * first, "planning slows down"
