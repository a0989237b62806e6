"""`device="simt"`: the ladder as a backend of matmul without a GPU, compared with the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import tilewise as tw
from operands import CARD_DTYPES, SEMIRINGS, values, weighs, works
from oracle import assert_product
from strategies import cases
from tilewise.errors import DtypeError, ShapeError, UsageError
from tilewise.kernels.ladder.model import LADDER

ALL = [(s, d) for s in SEMIRINGS for d in CARD_DTYPES if works(s, d)]


def multiply(kernel, semiring, dtype, shape, tile, seed=0):
    if kernel == "tiled":  # takes whole tiles only
        shape = tuple(-(-x // tile) * tile for x in shape)
    m, k, n = shape
    M, N = (values(shape, dtype, seed + i, True, weighs(semiring)) for i, shape in enumerate(((m, k), (k, n))))
    assert_product(tw.matmul(M, N, semiring=semiring, device="simt", kernel=kernel, tile=tile), M, N, semiring)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("kernel", LADDER)
@pytest.mark.parametrize(
    ("semiring", "dtype"),
    [
        ("plus_times", "float32"), ("plus_times", "bool"), ("plus_times", "complex64"), ("plus_times", "uint8"),
        ("min_plus", "int64"), ("max_plus", "float16"), ("max_times", "bfloat16"), ("min_max", "uint32"),
        ("lor_land", "float64"), ("logaddexp_plus", "float64"),
    ],
)  # fmt: skip
def test_a_rung_gives_the_product(kernel, semiring, dtype):
    multiply(kernel, semiring, dtype, (7, 5, 9), 2)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", LADDER)
@pytest.mark.parametrize(("semiring", "dtype"), ALL)
def test_every_rung_in_every_dtype_and_semiring(kernel, semiring, dtype):
    for number, (shape, tile) in enumerate([((7, 5, 9), 3), ((17, 33, 20), 8), ((5, 0, 4), 2)]):
        multiply(kernel, semiring, dtype, shape, tile, number)


@settings(max_examples=2)
@given(cases(dtypes=CARD_DTYPES, size=20, tiles=(None, 1, 2, 3, 8)))
def test_strides_and_mixed_dtypes(case):
    M, N = case.view_m.of(case.memory_m), case.view_n.of(case.memory_n)
    for kernel in ("tiled_edges", "register_tiled"):
        P = tw.matmul(M, N, semiring=case.semiring, device="simt", kernel=kernel, tile=case.tile)
        assert_product(P, M, N, case.semiring)


def test_stacks_vectors_out_and_accumulate():
    rng = np.random.default_rng(0)
    M, N = rng.standard_normal((2, 1, 4, 5)), rng.standard_normal((3, 5, 6))
    np.testing.assert_allclose(tw.matmul(M, N, device="simt", tile=2), M @ N)
    np.testing.assert_allclose(tw.matmul(M[0, 0], N[0, :, 0], device="simt", tile=2), M[0, 0] @ N[0, :, 0])
    out = np.ones((3, 4, 6)).transpose(0, 2, 1).copy().transpose(0, 2, 1)
    assert tw.matmul(M[0], N, device="simt", out=out, accumulate=True, tile=3) is out
    np.testing.assert_allclose(out, 1 + M[0] @ N)


def test_it_is_a_backend_with_a_plan():
    M = np.ones((4, 4), np.float32)
    plan = tw.plan(M, M, device="simt", kernel="coarsened", tile=2)
    assert (plan.engine, plan.kernel, plan.tile) == ("simt", "coarsened", 2)
    assert tw.plan(M, M, device="simt").kernel == "tiled_edges"
    assert "interpreted" in plan.why


def test_refusals():
    M = np.ones((3, 3), np.float32)
    with pytest.raises(ShapeError, match="whole tiles"):
        tw.matmul(M, M, device="simt", kernel="tiled", tile=2)
    with pytest.raises(UsageError, match="is not known"):
        tw.matmul(M, M, device="simt", kernel="other")
    with pytest.raises(DtypeError, match=r"longdouble|float128"):
        tw.matmul(M.astype(np.longdouble), M, device="simt")
