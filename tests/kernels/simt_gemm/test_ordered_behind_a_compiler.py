"""`reproducible="everywhere"` with no card: the kernels' texts behind the C++ compiler give the defined bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import multiplied
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import problem_of_shape
from tilewise.errors import UsageError
from tilewise.kernels.keys import text_of
from tilewise.kernels.recipes import recipe_of
from tilewise.planning.choose import make_plan

H200 = KNOWN_CARDS["h200"]
SMALL = replace(H200, units=2)  # so that small products fill it
CASES = [
    ("plus_times", "float32", (70, 1100, 68), False),
    ("plus_times", "float32", (33, 700, 70), True),
    ("plus_times", "bfloat16", (40, 1030, 36), True),
    ("plus_times", "float16", (66, 513, 33), False),
    ("plus_times", "float64", (36, 600, 40), False),
    ("plus_times", "complex64", (20, 520, 33), False),
    ("plus_times", "float32", (33, 0, 70), True),
    ("plus_times", "complex64", (13, 0, 4), True),
    ("max_times", "float32", (40, 45, 33), True),
    ("min_plus", "float16", (45, 0, 2), True),
    ("min_plus", "float16", (40, 45, 33), False),
]


def numbers(rng, shape, dtype):
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-8, 8, shape)
    x[rng.random(shape) < 0.1] = -0.0
    if shape[0]:
        x[rng.integers(shape[0])] = rng.choice([np.nan, 1.0, -np.inf])
    if dtype == "bfloat16":
        import ml_dtypes

        return x.astype(ml_dtypes.bfloat16)
    if dtype == "complex64":
        with np.errstate(invalid="ignore"):
            return (x + 1j * x[::-1]).astype(dtype)
    return x.astype(dtype)


@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.drawn(3)  # g++ compiles a kernel or two for each
@pytest.mark.parametrize(("name", "dtype", "shape", "accumulate"), CASES)
def test_a_card_computes_the_defined_bits(tmp_path_factory, name, dtype, shape, accumulate):
    rng, (m, k, n) = np.random.default_rng(6), shape
    M, N, P = (numbers(rng, s, dtype) for s in ((m, k), (k, n), (m, n)))
    M = np.asfortranarray(M) if m % 2 else M
    how = {"semiring": name, "reproducible": "everywhere", "accumulate": accumulate}
    want = tw.matmul(M, N, kernel="reference", **how, out=P.copy())
    host = tmp_path_factory.getbasetemp()
    plan = multiplied(M, N, tw.semirings[name], SMALL, P, host, accumulate=accumulate, reproducible="everywhere")
    assert plan.kernel == "plain"
    assert P.tobytes() == want.tobytes()


@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
def test_members_of_a_stack_keep_their_sums_apart(tmp_path_factory):
    import ml_dtypes

    rng = np.random.default_rng(7)
    M, N = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((3, 10, 1030), (3, 1030, 12)))
    P = np.zeros((3, 10, 12), M.dtype)
    multiplied(M, N, tw.semirings["plus_times"], SMALL, P, tmp_path_factory.getbasetemp(), reproducible="everywhere")
    assert P.tobytes() == tw.matmul(M, N, reproducible="everywhere").tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
def test_k_is_not_split_and_texts_name_the_rounding(dtype):
    problem = problem_of_shape(64, 50_000, 64, dtype, reproducible="everywhere")
    plan = make_plan(problem, H200)
    assert (plan.kernel, plan.config.pieces, plan.config.tail) == ("plain", 1, None)
    text = "".join(text_of(step.source) for step in recipe_of(plan).steps)
    assert "#define CHAIN 512" in text
    assert ("__fma" in text) or dtype == "complex64"
    usual = replace(problem, reproducible=None)
    assert "CHAIN" not in "".join(text_of(x.source) for x in recipe_of(make_plan(usual, H200, "plain")).steps)


def test_other_kernels_refuse_it():
    problem = problem_of_shape(512, 512, 512, "bfloat16", reproducible="everywhere")
    with pytest.raises(UsageError, match="an order of its own"):
        make_plan(problem, H200, "wgmma_half")
