"""Products by AMX: integers exact, bfloat16 with the bits of the order that the instruction defines, on both paths."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from poisoned import targets_on

import tilewise as tw
from seeds import next_seed, sample_size
from tilewise.backends.cpu import limits
from tilewise.backends.cpu.kernels.interleaved import model
from tilewise.backends.cpu.runtime.systems import linux, system_of
from tilewise.backends.cpu.runtime.target import host_target, probed
from tilewise.scale import pieces

BFLOAT16 = ml_dtypes.bfloat16
here = pytest.mark.skipif(
    not (host_target().amx and system_of().permits_amx()), reason="this CPU, its setting or the system has no AMX"
)


def in_order(M: np.ndarray, N: np.ndarray) -> np.ndarray:
    """The sums as TDPBF16PS orders them: for each 32 k a chain over the even k, one over the odd k, and their sum.

    A product is exact in float32, so that adding it rounds once, as a fused multiply-add does; or so small that the sum
    is exact in float64."""
    P = np.zeros((M.shape[0], N.shape[1]), np.float32)
    M, N = M.astype(np.float64), N.astype(np.float64)
    with np.errstate(all="ignore"):
        for first in range(0, M.shape[1], 32):
            chains = []
            for odd in range(2):
                chain = np.zeros_like(P)
                for k in range(first + odd, min(first + 32, M.shape[1]), 2):
                    product = M[:, k : k + 1] * N[k]
                    single = product.astype(np.float32)
                    fused = (chain.astype(np.float64) + product).astype(np.float32)
                    chain = np.where((single != product) & np.isfinite(single), fused, chain + single)
                chains.append(chain)
            P = P + (chains[0] + chains[1])
        return P.astype(BFLOAT16)


def laid(x: np.ndarray, layout: str) -> np.ndarray:
    if layout == "apart":
        wide = np.zeros((x.shape[0], 2 * x.shape[1]), x.dtype)
        wide[:, ::2] = x
        return wide[:, ::2]
    return np.asfortranarray(x) if layout == "columns" else x


def bits(x: np.ndarray) -> np.ndarray:
    """NaN apart from its payload."""
    return np.where(np.isnan(x), np.uint16(0x7FC0), x.view(np.uint16))


@here
@pytest.mark.parametrize("values", ["plain", "wide", "subnormal", "tiny", "special"])
def test_bfloat16_has_the_bits_of_the_order_that_the_instruction_defines(values: str) -> None:
    rng = np.random.default_rng(next_seed())
    layouts = itertools.cycle(itertools.product(("rows", "columns", "apart"), repeat=2))
    for m, k, n in [(33, 70, 40), (64, 200, 96), (45, 1111, 31), (70, 2500, 50), (12, 64, 300)]:
        M, N = rng.standard_normal((m, k)), rng.standard_normal((k, n))
        if values == "wide":
            M, N = M * 2.0 ** rng.integers(-40, 40, M.shape), N * 2.0 ** rng.integers(-40, 40, N.shape)
        if values == "tiny":
            M, N = M * 2.0**-66, N * 2.0**-66
        M, N = M.astype(BFLOAT16), N.astype(BFLOAT16)
        if values == "subnormal":  # of one panel; the others go by AMX
            M[5, 3], N[3, 7], N[4] = 1e-39, 3e38, 1
        if values == "special":
            M[1, 2], M[2, 3], N[5, 6], N[6, 7] = np.inf, -np.inf, np.nan, np.inf
        lies = next(layouts)
        P = tw.matmul(laid(M, lies[0]), laid(N, lies[1]))
        plan = tw.plan(laid(M, lies[0]), laid(N, lies[1]))
        assert plan.blocking is not None
        assert plan.blocking.amx
        assert (bits(P) == bits(in_order(M, N))).all(), (m, k, n, lies)


@here
def test_out_and_accumulate_and_stacks_of_bfloat16_are_right() -> None:
    rng = np.random.default_rng(next_seed())
    M, N = rng.standard_normal((3, 50, 90)).astype(BFLOAT16), rng.standard_normal((3, 90, 70)).astype(BFLOAT16)
    each = np.stack([in_order(a, b) for a, b in zip(M, N, strict=True)])
    assert (tw.matmul(M, N) == each).all()
    out = np.asfortranarray(np.zeros((50, 70), BFLOAT16))
    assert (tw.matmul(M[0], N[0], out=out) == each[0]).all()
    begun = rng.standard_normal((50, 70)).astype(BFLOAT16)
    out = begun.copy()
    tw.matmul(M[0], N[0], out=out, accumulate=True)
    exact = begun.astype(float) + M[0].astype(float) @ N[0].astype(float)
    assert (np.abs(out.astype(float) - exact) <= 2.0**-7 * np.abs(exact) + 1e-3).all()


@here
def test_bits_of_bfloat16_do_not_depend_on_the_number_of_threads() -> None:
    rng = np.random.default_rng(next_seed())
    for m, k, n in [(300, 500, 700), (1025, 64, 33), (40, 5000, 90)]:
        M, N = rng.standard_normal((m, k)).astype(BFLOAT16), rng.standard_normal((k, n)).astype(BFLOAT16)
        made = []
        for threads in (1, 2, 3):
            tw.set_num_threads(threads)
            try:
                made.append(tw.matmul(M, N).view(np.uint16))
            finally:
                tw.set_num_threads(None)
        assert (made[0] == made[1]).all()
        assert (made[0] == made[2]).all()


@here
def test_bytes_are_exact_whatever_their_signs_and_strides() -> None:
    rng = np.random.default_rng(next_seed())
    kinds = [("int8", "uint8", None), ("uint8", "uint8", None), ("int8", "int8", "int32"), ("uint8", "int8", "int32")]
    for i in range(sample_size(40)):
        m, k, n = (int(x) for x in rng.choice([12, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 200, 1500], 3))
        *dtypes, wanted = kinds[i % 4]
        M, N = (
            rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
            for dtype, shape in zip(dtypes, ((m, k), (k, n)), strict=True)
        )
        lies = rng.choice(("rows", "columns", "apart"), 2)
        P = tw.matmul(laid(M, lies[0]), laid(N, lies[1]), dtype=wanted)
        assert ((M.astype(np.int64) @ N.astype(np.int64)).astype(P.dtype) == P).all(), (m, k, n, dtypes, wanted, lies)


def test_without_permission_vectors_are_used_and_the_plan_has_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    target = targets_on(probed()).get("avx512, AMX")
    if target is None:
        pytest.skip("this CPU has no AMX")
    monkeypatch.setattr(limits, "system_of", lambda: Refusing())
    limits.with_instructions.cache_clear()
    monkeypatch.setattr(limits, "host_target", lambda: target)
    try:
        plan = tw.plan(np.ones((64, 64), BFLOAT16), np.ones((64, 64), BFLOAT16))
    finally:
        limits.with_instructions.cache_clear()
    assert plan.blocking is not None
    assert not plan.blocking.amx
    assert any("AMX is not used" in note for note in plan.notes)


class Refusing(linux.Linux):
    def permits_amx(self) -> bool:
        return False


@pytest.fixture
def small_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Float32 is split from sizes on that take less time than those for which it pays."""
    monkeypatch.setitem(model.AMX_LEAST, 4, (160, 64, 2**24))


def split(m: int, k: int, n: int) -> bool:
    plan = tw.plan(np.zeros((m, k), np.float32), np.zeros((k, n), np.float32))
    return plan.blocking is not None and plan.blocking.amx


SPLIT_SHAPES = [(250, 700, 260), (161, 1300, 165), (200, 65, 2000), (333, 769, 171)]
VALUES = {
    "plain": lambda x, rng: x,
    "positive": lambda x, rng: np.abs(x),
    "wide": lambda x, rng: x * 2.0 ** rng.integers(-60, 60, x.shape),
    "rows apart": lambda x, rng: x * 2.0 ** -rng.integers(0, 100, (len(x), 1)),
    "wider than a panel": lambda x, rng: x * 2.0 ** rng.integers(-140, 120, x.shape),
    "subnormal": lambda x, rng: x * 2.0**-130,
    "huge": lambda x, rng: x * 2.0**125,
    "sparse": lambda x, rng: x * (rng.random(x.shape) < 0.03),
}


@here
@pytest.mark.usefixtures("small_split")
@pytest.mark.parametrize("values", VALUES)
def test_float32_as_three_bfloat16_has_sgemms_error(values: str) -> None:
    """Beside the sum of magnitudes: of each cell within the bound of a chain of roundings, and in the mean no larger
    than by fused multiply-adds."""
    rng = np.random.default_rng(next_seed())
    layouts = itertools.cycle(itertools.product(("rows", "columns", "apart"), repeat=2))
    for m, k, n in SPLIT_SHAPES:
        assert split(m, k, n)
        M = VALUES[values](rng.standard_normal((m, k)), rng).astype(np.float32)
        N = rng.standard_normal((k, n)) * (2.0**-100 if values == "huge" else 1)
        N, lies = N.astype(np.float32), next(layouts)
        exact = M.astype(np.float64) @ N.astype(np.float64)
        scale = np.abs(M).astype(np.float64) @ np.abs(N).astype(np.float64) * 2.0**-24 + 2.0**-146
        if np.abs(exact).max() > 1e38:
            continue
        made = [tw.matmul(laid(M, lies[0]), laid(N, lies[1]), precision=p) for p in ("high", "ieee")]
        errors = [np.abs(P - exact) / scale for P in made]
        assert errors[0].max() <= 4 + k**0.5, (m, k, n)
        assert errors[0].mean() <= 1.05 * errors[1].mean() + 0.02, (m, k, n)


@here
@pytest.mark.usefixtures("small_split")
def test_float32_with_inf_and_nan_is_as_precision_ieee_has_it() -> None:
    rng = np.random.default_rng(next_seed())
    for m, k, n in SPLIT_SHAPES:
        M, N = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
        M[3, 5], M[m - 1, k - 1], N[7, 9], N[k - 1, 0], M[40, 2], N[2, 50] = (
            np.inf,
            -np.inf,
            np.nan,
            np.inf,
            3e30,
            1e-44,
        )
        high, ieee = (tw.matmul(M, N, precision=p) for p in ("high", "ieee"))
        assert (np.isnan(high) == np.isnan(ieee)).all()
        assert (high[np.isinf(ieee)] == ieee[np.isinf(ieee)]).all()
        finite = np.isfinite(ieee)
        scale = np.abs(np.nan_to_num(M, posinf=0, neginf=0)) @ np.abs(np.nan_to_num(N, posinf=0))
        assert (np.abs(high[finite] - ieee[finite]) <= 1e-6 * k**0.5 * scale[finite]).all()


@here
def test_pieces_of_float32_have_the_kernel_of_the_whole_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece alone would be too small."""
    monkeypatch.setitem(model.AMX_LEAST, 4, (160, 64, 2**28))
    monkeypatch.setattr(pieces, "SECONDS", 0.001)
    rng = np.random.default_rng(next_seed())
    M, N = rng.random((511, 1503)).astype(np.float32), rng.random((1503, 510)).astype(np.float32)
    exact = M.astype(np.float64) @ N.astype(np.float64)
    high, ieee = (np.abs(tw.matmul(M, N, precision=p) - exact).mean() for p in ("high", "ieee"))
    assert split(511, 1503, 510)
    assert 0 < high < ieee / 2


@here
@pytest.mark.usefixtures("small_split")
def test_float32_onto_P_symmetric_and_by_any_number_of_threads() -> None:
    rng = np.random.default_rng(next_seed())
    M, N = rng.standard_normal((301, 903)).astype(np.float32), rng.standard_normal((903, 402)).astype(np.float32)
    begun = rng.standard_normal((301, 402)).astype(np.float32)
    out, product = begun.copy(), tw.matmul(M, N)
    tw.matmul(M, N, out=out, accumulate=True)
    assert np.allclose(out, begun + product, rtol=1e-6, atol=1e-5)
    gram = tw.matmul(M, M.T)
    assert (gram == gram.T).all()
    assert np.allclose(gram, M.astype(float) @ M.T.astype(float), rtol=1e-6, atol=1e-4)
    for threads in (1, 2, 3):
        tw.set_num_threads(threads)
        try:
            assert (tw.matmul(M, N) == product).all()
        finally:
            tw.set_num_threads(None)


@here
@pytest.mark.usefixtures("small_split")
def test_float32_by_precision_ieee_or_in_a_stated_order_is_not_split() -> None:
    M, N = np.ones((509, 509), np.float32), np.ones((509, 509), np.float32)
    assert "three bfloat16" in str(tw.plan(M, N))
    for keywords in (
        {"precision": "ieee"},
        {"precision": "tf32"},
        {"reproducible": "everywhere"},
        {"dtype": "float64"},
    ):
        assert "three bfloat16" not in str(tw.plan(M, N, **keywords)), keywords
    assert "three bfloat16" not in str(tw.plan(M, M.T, reproducible="everywhere"))
