"""Tables of decisions: native code answers as the function itself does, and runs it once for each path."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed, sample_size
from tilewise.dispatch import decisions, product
from tilewise.dispatch.decisions import Decisions


def numbers_of(table, count, *inputs):
    """The value of a call, and the numbers that native code wrote."""
    written = bytes(8 * count)
    return table(written, *inputs), struct.unpack(f"{count}q", written)


def plan(m, k, step):
    """Every operation that a table has."""
    parts = max(1, round(k / 384))
    each = -(-m // (4 * parts))
    reach = abs(step) * (k - 1) + each % 7 - step
    if m * k > 100 and step in (1, -3, 8):
        return (reach, step % 5, step // 4, {0: 7, 1: 9}.get(m % 2)), f"{m} rows"[-4:]
    if not step or k != 2 * m:
        return (min(m, k, step), parts, each, 10 if k <= m else m), "plain"
    return None


@pytest.fixture
def every_path(monkeypatch):
    monkeypatch.setattr(decisions, "FREE", 10**9)


def test_a_table_answers_as_its_function_does(every_path):
    seed = next_seed()
    print("seed", seed)
    rng, calls = random.Random(seed), []

    def counted(*inputs):
        calls.append(inputs)
        return plan(*inputs)

    table = Decisions(counted, 3)
    for _ in range(sample_size(1000)):
        m, k, step = rng.randint(1, 60), rng.randint(1, 2000), rng.randint(-9, 9)
        if rng.random() < 0.1:
            k = 2 * m
        expected = plan(m, k, step)
        value, numbers = numbers_of(table, 4, m, k, step)
        if expected is None:
            assert value is None
        else:
            assert numbers == expected[0], (m, k, step)
            assert value.endswith("rows") or value == expected[1]
    assert len(calls) < 250  # a path each, most of them for a rounded quotient


def test_paths_that_are_never_taken_again_are_not_recorded():
    calls = []
    table = Decisions(lambda x: ((x,), (calls.append(x), range(10**6)[x])[1]), 1)
    answers = [table(bytes(8), x) for x in range(1000)]
    assert answers[:10] == list(range(10))
    assert len(calls) < 100
    assert answers.count(None) > 900


def test_calls_of_another_kind_have_a_path_after_some() -> None:
    """Paths that no call takes again leave none for those that follow, if only calls that find theirs count."""
    table = Decisions(lambda x: ((x,), [0, *range(10**6)][x] if x else "many"), 1)
    for x in range(1, 1000):
        table(bytes(8), x)
    answers = [table(bytes(8), 0) for _ in range(2 * decisions.MISSES)]
    assert answers[-1] == "many"


def test_a_function_that_needs_a_number_itself_has_a_path_for_each():
    names = ["none", "one", "two"]
    table = Decisions(lambda x: ((x,), names[x]), 1)
    assert [table(bytes(8), x) for x in (2, 0, 1, 2)] == ["two", "none", "one", "two"]


@pytest.mark.parametrize("function", [lambda x: ((x * 0.5,), 1), lambda x: ((sum(x * i for i in range(400)),), 1)])
def test_what_no_table_holds_has_no_answer(function):
    table = Decisions(function, 1)
    assert [table(bytes(8), x) for x in (3, 3, 4)] == [None] * 3


@pytest.mark.drawn(6)
@pytest.mark.drawn(5)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("dtype", "semiring"),
    [("float32", "plus_times"), ("float64", "plus_times"), ("float16", "plus_times"), ("complex64", "plus_times"),
     ("int8", "plus_times"), ("int64", "plus_times"), ("float32", "min_plus"), ("bool", "lor_land")],
)  # fmt: skip
def test_the_jobs_of_a_table_are_those_that_are_filled_without_it(dtype, semiring, threads, every_path):
    tw.set_num_threads(threads)
    try:
        tw.matmul(np.ones((3, 4), dtype), np.ones((4, 5), dtype), semiring=semiring)
        (kind,) = [kind for kind in product.KINDS.values() if kind.problem.dtype_m.name == dtype]
        seed = next_seed()
        print("seed", seed)
        rng = random.Random(seed)
        answered = 0
        for _ in range(sample_size(300)):
            m, k, n = (round(10 ** rng.uniform(0, rng.choice((1, 2, 3)))) for _ in range(3))
            strides = [(cols + rng.choice((0, 0, 3)), 1) for cols in (k, n, n)]
            for at, (low, high) in enumerate(((m, k), (k, n), (m, n))):
                strides[at] = rng.choice((strides[at], (1, low), (-high, -1), (3, 5 * low)))
            inputs = m, k, n, *(step for pair in strides for step in pair)
            expected = kind._decided(*inputs)
            if expected is None:
                assert numbers_of(kind.decisions, 50, *inputs)[0] is None
                continue
            value, numbers = numbers_of(kind.decisions, len(expected[0]), *inputs)
            if value is not None:  # else the table is full
                (kernel, *how), (other, *expected_how) = value, expected[1]
                assert (numbers, kernel.functions, how) == (expected[0], other.functions, expected_how), inputs
                answered += 1
        assert answered > 50
        assert kind.decisions._open
    finally:
        tw.set_num_threads(None)
