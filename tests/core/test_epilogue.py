"""alpha, bias and activation: the same on every engine with no card, composable, and refused in one sentence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewise as tw
from operands import numpy_dtype
from oracle import EPS, oracle
from tilewise.core.epilogue import ACTIVATIONS, Epilogue
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import problem_of_shape
from tilewise.planning.choose import make_plan

erf = np.vectorize(math.erf, otypes=[float])
EXACT = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: x / (1 + np.exp(-x)),
}
STEEPEST = 1.13  # slope of gelu, so much can an error of the product grow


@given(
    m=st.integers(1, 20), k=st.integers(0, 20), n=st.integers(1, 20),
    name=st.sampled_from(("float16", "bfloat16", "float32", "float64")),
    activation=st.sampled_from((None, *ACTIVATIONS)), alpha=st.sampled_from((1.0, 0.5, -3.0, 0.0)),
    biased=st.booleans(), accumulate=st.booleans(), strided=st.booleans(),
    engine=st.sampled_from(("cpu", "reference")), seed=st.integers(0, 99),
)  # fmt: skip
def test_every_combination_on_the_host(
    m, k, n, name, activation, alpha, biased, accumulate, strided, engine, seed
):  # fmt: skip
    rng, dtype = np.random.default_rng(seed), numpy_dtype(name)
    M, N = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    bias = rng.standard_normal(2 * n).astype(dtype)[::2] if biased else None
    out = (
        rng.standard_normal((m, 2 * n)).astype(dtype)[:, ::2] if strided else rng.standard_normal((m, n)).astype(dtype)
    )
    before = out.astype(np.float64)
    _, error = oracle(M, N, "plus_times")
    exact = alpha * (M.astype(np.float64) @ N.astype(np.float64)) + (0 if bias is None else bias.astype(np.float64))
    exact = EXACT[activation](exact + before if accumulate else exact)
    P = tw.matmul(
        M, N, alpha=alpha, bias=bias, activation=activation, out=out, accumulate=accumulate,
        kernel="reference" if engine == "reference" else None,
    )  # fmt: skip
    assert P is out
    room = STEEPEST * abs(alpha) * error + (abs(exact) + 1) * 8 * EPS["float32" if name != "float64" else name]
    assert (abs(P.astype(np.float64) - exact) <= room + abs(exact) * EPS[name]).all()
    if out.size and not strided:
        fresh = tw.matmul(M, N, alpha=alpha, bias=bias, activation=activation)
        assert fresh.dtype == dtype


def test_sums_are_not_rounded_before_the_bias():
    """float16 cannot hold 4096 + 1, but the sum that meets the bias can."""
    M, N = np.full((1, 2), 2048.5, np.float16), np.ones((2, 1), np.float16)
    assert tw.matmul(M, N, bias=np.array([-4096.0], np.float16)) == np.float16(0)
    assert tw.matmul(np.array([[4096.0, 1.0]], np.float16), N, bias=np.array([-4096.0], np.float16)) == np.float16(1)


def test_stacks_vectors_and_the_interpreter():
    rng = np.random.default_rng(0)
    M, N, bias = rng.standard_normal((3, 2, 4, 5)), rng.standard_normal((2, 5, 6)), rng.standard_normal(6)
    np.testing.assert_allclose(tw.matmul(M, N, bias=bias, activation="relu"), np.maximum(M @ N + bias, 0))
    np.testing.assert_allclose(tw.matmul(M[0, 0, 0], N[0], bias=bias), M[0, 0, 0] @ N[0] + bias)
    np.testing.assert_allclose(tw.matmul(M[0, 0], N[0, :, 0], alpha=2), 2 * (M[0, 0] @ N[0, :, 0]))
    got = tw.matmul(M[0, 0], N[0], bias=bias, activation="silu", device="simt")
    np.testing.assert_allclose(got, EXACT["silu"](M[0, 0] @ N[0] + bias))


def test_nan_and_inf_pass_through():
    M = np.array([[np.nan], [np.inf], [-np.inf]], np.float32)
    for activation in (None, *ACTIVATIONS):
        P = tw.matmul(M, np.ones((1, 1), np.float32), activation=activation)
        assert np.isnan(P[0, 0])
        assert P[1, 0] == np.inf
    assert tw.matmul(M, np.ones((1, 1), np.float32), activation="relu")[2, 0] == 0


WITHOUT_CANCELLATION = {
    "gelu": lambda v: v * math.erfc(-v / math.sqrt(2)) / 2,
    "gelu_tanh": lambda v: v / (1 + math.exp(-math.sqrt(8 / math.pi) * (v + 0.044715 * v**3))),
    "silu": lambda v: v / (1 + math.exp(-v)),
}


@pytest.mark.parametrize("activation", WITHOUT_CANCELLATION)
@pytest.mark.parametrize(("dtype", "near", "tail"), [("float32", 2e-7, 4e-6), ("float64", 4e-16, 2e-14)])
def test_activations_are_accurate_in_the_tails_too(activation, dtype, near, tail):
    x = np.concatenate([np.linspace(-6, 30, 3001), np.logspace(-30, 1, 99), -np.logspace(-30, 0, 99)]).astype(dtype)
    P = tw.matmul(x[:, None], np.ones((1, 1), dtype), activation=activation)[:, 0].astype(np.float64)
    exact = np.array([WITHOUT_CANCELLATION[activation](v) for v in x.tolist()])
    assert (abs(P - exact) <= near * (1 + abs(x))).all()
    assert (abs(P - exact) <= tail * abs(exact)).all()


@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_cell_does_not_depend_on_its_place(activation, dtype):
    """Vectors, the columns that are left over, few cells and many, by any number of threads: the same values."""
    rng = np.random.default_rng(5)
    M, N, bias = (rng.standard_normal(shape).astype(dtype) for shape in ((203, 1), (1, 131), (131,)))
    whole = tw.matmul(M, N, alpha=1.5, bias=bias, activation=activation)
    for i, j in ((0, 0), (17, 3), (202, 130), (100, 128), (5, 16)):
        one = tw.matmul(M[i : i + 1], N[:, j : j + 1], alpha=1.5, bias=bias[j : j + 1], activation=activation)
        assert one.tobytes() == whole[i, j].tobytes()
    before = tw.get_num_threads()
    tw.set_num_threads(3)
    try:
        again = tw.matmul(M, N, alpha=1.5, bias=bias, activation=activation)
    finally:
        tw.set_num_threads(before)
    assert again.tobytes() == whole.tobytes()


@pytest.mark.parametrize(
    ("error", "how", "message"),
    [
        (
            tw.UsageError,
            {"activation": "tanh"},
            "activation='tanh' is not known; known are relu, gelu, gelu_tanh, silu",
        ),
        (tw.UsageError, {"alpha": "2"}, "alpha='2' must be a real number"),
        (tw.UsageError, {"alpha": 1j}, "must be a real number"),
        (tw.ShapeError, {"bias": np.ones(3)}, "bias is 3, and P has 5 columns"),
        (tw.ShapeError, {"bias": np.ones((1, 5))}, "bias is 1×5, and P has 5 columns"),
        (tw.DtypeError, {"bias": np.ones(5, int)}, "bias has dtype int64"),
        (
            tw.UsageError,
            {"activation": "relu", "semiring": "min_plus"},
            "need plus_times, and the semiring is min_plus",
        ),
        (tw.UsageError, {"alpha": 2, "memory": "1GB"}, "alpha= needs operands that lie in memory whole"),
    ],
)
def test_invalid_arguments_raise_one_sentence(error, how, message):
    with pytest.raises(error, match=message) as raised:
        tw.matmul(np.ones((4, 2)), np.ones((2, 5)), **how)
    assert "\n" not in str(raised.value)


def test_integers_and_complex_numbers_take_none():
    for dtype in (np.int32, np.complex64, np.bool_):
        with pytest.raises(tw.DtypeError, match="need a product of float16"):
            tw.matmul(np.ones((2, 2), dtype), np.ones((2, 2), dtype), alpha=2)


def test_a_plan_names_it():
    plan = tw.plan(np.ones((4, 2)), np.ones((2, 5)), alpha=0.5, bias=np.ones(5), activation="gelu")
    assert "P is gelu(0.5 · M·N + bias), in a pass over the product" in plan.notes
    assert plan.to_json()["problem"]["epilogue"] == {"alpha": 0.5, "bias": "float64", "activation": "gelu"}
    assert tw.plan(np.ones((4, 2)), np.ones((2, 5))).to_json()["problem"]["epilogue"] is None


@pytest.mark.parametrize(
    ("card", "dtype", "kernel", "how"),
    [
        ("h200", "bfloat16", "wgmma_half", "made before it is stored"),
        ("a100", "bfloat16", "mma_sync", "made before it is stored"),
        ("h200", "float64", "mma_sync", "made before it is stored"),
        ("h200", "float32", "bf16x6", "in a pass over the product"),
        ("a100", "float32", "plain", "in a pass over the product"),
    ],
)
def test_cards_fuse_it_where_their_kernel_can(card, dtype, kernel, how):
    from dataclasses import replace

    problem = replace(problem_of_shape(4097, 4096, 4099, dtype), epilogue=Epilogue(1.0, None, "gelu"))
    plan = make_plan(problem, KNOWN_CARDS[card])
    assert plan.kernel == kernel
    assert f"P is gelu(M·N), {how}" in plan.notes
    thin = plan.family == "mma_sync" and (plan.config.edge_rows or plan.config.edge_cols)
    assert not thin  # the kernels for few rows apply none
