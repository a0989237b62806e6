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
from tilewise.backends.cpu.runtime.systems import linux, system_of
from tilewise.backends.cpu.runtime.target import host_target, probed

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
