"""Half precision, thin: widened as it is read, added up in float32 and rounded once, never packed for one pass."""

from __future__ import annotations

import os
import random

import ml_dtypes
import numpy as np
import pytest
from poisoned import LAYOUTS, Case, check, check_sweep, here

import tilewise as tw
from seeds import next_seed, sample_size
from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cpu.kernels.few_rows.text import few_rows_module
from tilewise.backends.cpu.kernels.packed_n import model as packed_n
from tilewise.backends.cpu.kernels.shared.arithmetic import arithmetic
from tilewise.backends.cpu.runtime.target import executable, known_target
from tilewise.core.blocking import SKINNY

SEED = int(os.environ.get("TILEWISE_TEST_SEED", next_seed() % 2**31))
HALVES = ("float16", "bfloat16")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", executable())
def test_thin_products_of_half_precision_are_right(name: str, dtype: str) -> None:
    print(f"seed {SEED}")
    draw = random.Random(SEED)
    ring = draw.choice(("plus_times", "min_plus", "max_min"))
    for kernel in ("dots", "few_rows"):
        assert check_sweep(here(name), ring, dtype, kernel, SEED, share=0.05)
    for i in range(sample_size(15)):
        m, n = draw.choice((1, 2, 3, 4)), draw.randint(1, 200)
        shape = (m, draw.randint(1, 900), n) if draw.random() < 0.5 else (n, draw.randint(1, 900), m)
        configs = tuple(draw.choices(LAYOUTS, (5, 3, 1, 1), k=3))
        check(Case(shape, dtype, ring, None, configs, draw.random() < 0.3), here(name), SEED + i)


@pytest.mark.parametrize("name", ["neon", "avx2"])
def test_sums_of_few_rows_lie_behind_the_packed_ones(name: str) -> None:
    """NEON packs M repeated where nothing multiplies; sums had lain among it, and products were wrong."""
    number = DTYPES["float16"]
    a = arithmetic(find_semiring("min_plus").over(number), number, number, known_target(name))
    run = few_rows_module(a).split("@run(")[1]
    assert f"mul nsw i64 {SKINNY * a.packed_m_bytes}, " in run
    assert a.packed_m_bytes == (16 if name == "neon" else 4)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", executable())
def test_rows_that_are_widened_and_rounded_together_are_right(name: str) -> None:
    """M's rows are contiguous or padded; P is rounded a few panels at a time, or all of it."""
    print(f"seed {SEED}")
    draw = random.Random(SEED)
    for i in range(8):
        shape = draw.randint(17, 70), draw.choice((draw.randint(1, 60), 300)), draw.choice((9, 40, 320, 600))
        configs = ("apart" if i == 3 else "rows", "rows", "apart" if i == 5 else "rows")
        check(Case(shape, draw.choice(HALVES), "plus_times", None, configs, i % 3 == 1), here(name), SEED + i)


@pytest.mark.drawn(1)  # two seconds each
@pytest.mark.parametrize("name", executable())
def test_every_depth_that_is_packed_is_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of k, several strips of it, or one at a time; and a few columns, whose last k reach back."""
    print(f"seed {SEED}")
    draw = random.Random(SEED)
    for i, near in enumerate((packed_n.NEAR_N, 2**19, 2**12)):
        monkeypatch.setattr(packed_n, "NEAR_N", near)
        shape, dtype = (draw.randint(17, 50), draw.randint(340, 900), draw.randint(50, 130)), draw.choice(HALVES)
        check(Case(shape, dtype, "plus_times", "packed_n", accumulate=i == 2), here(name), SEED + i)
    vectors = name in ("avx512", "avx2")
    for i, k in enumerate((draw.randint(16, 40), draw.randint(1600, 2300))):
        shape, dtype = (draw.randint(17, 60), k, draw.randint(13, 16)), draw.choice(HALVES)
        kernel = check(Case(shape, dtype, "plus_times", accumulate=i == 1), here(name), SEED + i)
        assert (kernel == "few_columns") == vectors


@pytest.mark.drawn(3)
@pytest.mark.parametrize("shape", [(40, 70, 90), (40, 70, 12), (40, 700, 90)])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_what_is_no_number_stays_none_and_what_is_large_is_infinite(dtype: type, shape: tuple[int, int, int]) -> None:
    """bfloat16 is rounded by adding to its bits, which must not carry a NaN over into a number."""
    m, k, n = shape
    M, N = np.ones((m, k), dtype), np.ones((k, n), dtype)
    M.view("u2")[0, 3] = 0x7FFF  # every bit of a NaN
    M.view("u2")[1, 5] = 0xFFFF
    M[2, :2] = np.inf, -np.inf
    M[3, 1] = np.inf
    P = tw.matmul(M, N).astype(np.float32)
    assert np.isnan(P[:3]).all()
    assert (P[3] == np.inf).all()
    assert (P[4:] == k).all()


@pytest.mark.parametrize("shape", [(150, 900, 40), (150, 900, 330), (131, 1500, 13)])
def test_threads_change_no_bit_of_half_precision(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    draw = np.random.default_rng(SEED)
    M, N = draw.standard_normal((m, k)).astype(np.float16), draw.standard_normal((k, n)).astype(np.float16)
    before = tw.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            tw.set_num_threads(threads)
            found.append(tw.matmul(M, N))
    finally:
        tw.set_num_threads(before)
    assert all((x == found[0]).all() for x in found)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(2, 3000, 40), (40, 3000, 2)])
def test_a_sum_is_rounded_once(shape: tuple[int, int, int], dtype: type) -> None:
    """A thousand strips of k, each rounded to eight or eleven bits, would stand still long before the end."""
    m, k, n = shape
    M, N = np.ones((m, k), dtype), np.ones((k, n), dtype)
    assert tw.plan(M, N).kernel in ("few_rows", "axpy", "dots")
    assert set(tw.matmul(M, N).astype(np.float64).ravel()) == {float(np.array(3000).astype(dtype))}
