"""The scan of integers before min_plus and max_plus agrees with NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seeds import next_seed
from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.no_edge import no_edge_of
from tilewise.backends.cpu.kernels.weights.run import weight_check
from tilewise.core.problem import Layout, problem_of_shape

KINDS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("semiring", ["min_plus", "max_plus"])
@pytest.mark.parametrize("dtype", KINDS)
def test_one_weight_too_far_is_seen_wherever_it_lies(semiring, dtype):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    edges = no_edge_of(SEMIRINGS[semiring].over(DTYPES[dtype]))
    if edges is None:
        assert semiring == "max_plus"
        return
    limits = np.iinfo(dtype)
    for count in (1, 7, 63, 64, 65, 200, 5000):
        M, N = (rng.integers(edges.min_weight, edges.max_weight, (1, count), dtype, endpoint=True) for _ in range(2))
        look = weight_check(edges, problem_of_shape(1, count, 1, dtype, semiring))
        assert look(M, N)
        for wrong in {limits.min, limits.max, edges.max_weight + 1, edges.min_weight - 1}:
            if not limits.min <= wrong <= limits.max or edges.min_weight <= wrong <= edges.max_weight:
                continue
            for X in (M, N):
                at = int(rng.integers(count))
                held, X[0, at] = X[0, at], wrong
                assert not look(M, N)
                assert not edges.within(X)
                X[0, at] = held
        assert look(M, N)


def test_narrower_operands_and_those_that_lie_apart():
    edges = no_edge_of(SEMIRINGS["min_plus"].over(DTYPES["int32"]))
    wide, narrow = np.zeros((4, 4), np.int32), np.full((4, 4), 127, np.int8)
    problem = problem_of_shape(4, 4, 4, "int32", "min_plus", dtype_n=DTYPES["int8"])
    look = weight_check(edges, problem)
    assert look(wide, narrow)
    wide[3, 3] = 2**31 - 1
    assert not look(wide, narrow)
    assert weight_check(edges, replace(problem, layout_m=Layout(8, 2))) is None
    assert weight_check(edges, replace(problem, layout_m=Layout(1, 4))) is not None
