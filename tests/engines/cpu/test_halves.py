"""Half precision, thin: widened as it is read, added up in float32 and rounded once, never packed for one pass."""

from __future__ import annotations

import os
import random
import time

import ml_dtypes
import numpy as np
import pytest
from poisoned import LAYOUTS, Case, check, check_sweep, here

import tilewise as tw
from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.blocking import FEW
from tilewise.engines.cpu.kernels.few_rows.text import few_rows_module
from tilewise.engines.cpu.kernels.shared.arithmetic import arithmetic
from tilewise.engines.cpu.runtime.target import executable, known_target

SEED = int(os.environ.get("TILEWISE_TEST_SEED", time.time_ns() % 2**31))
HALVES = ("float16", "bfloat16")


@pytest.mark.drawn(3)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", executable())
def test_thin_products_of_half_precision_are_right(name: str, dtype: str) -> None:
    print(f"seed {SEED}")
    draw = random.Random(SEED)
    ring = draw.choice(("plus_times", "min_plus", "max_min"))
    for kernel in ("dots", "few_rows"):
        assert check_sweep(here(name), ring, dtype, kernel, SEED, share=0.05)
    for i in range(25):
        m, n = draw.choice((1, 2, 3, 4)), draw.randint(1, 200)
        shape = (m, draw.randint(1, 900), n) if draw.random() < 0.5 else (n, draw.randint(1, 900), m)
        ways = tuple(draw.choices(LAYOUTS, (5, 3, 1, 1), k=3))
        check(Case(shape, dtype, ring, None, ways, draw.random() < 0.3), here(name), SEED + i)


@pytest.mark.parametrize("name", ["neon", "avx2"])
def test_sums_of_few_rows_lie_behind_the_packed_ones(name: str) -> None:
    """NEON packs M repeated where nothing multiplies; sums had lain among it, and products were wrong."""
    number = DTYPES["float16"]
    a = arithmetic(find_semiring("min_plus").over(number), number, number, known_target(name))
    run = few_rows_module(a).split("@run(")[1]
    assert f"mul nsw i64 {FEW * a.packed_m_bytes}, " in run
    assert a.packed_m_bytes == (16 if name == "neon" else 4)


@pytest.mark.parametrize("name", executable())
def test_rows_that_are_widened_and_rounded_together_are_right(name: str) -> None:
    """M's lie side by side with nothing between them, or not; P's are rounded a few panels at a time, or whole."""
    print(f"seed {SEED}")
    draw = random.Random(SEED)
    for i in range(8):
        shape = draw.randint(17, 70), draw.choice((draw.randint(1, 60), 300)), draw.choice((9, 40, 320, 600))
        ways = ("apart" if i == 3 else "rows", "rows", "apart" if i == 5 else "rows")
        check(Case(shape, draw.choice(HALVES), "plus_times", None, ways, i % 3 == 1), here(name), SEED + i)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(2, 3000, 40), (40, 3000, 2)])
def test_a_sum_is_rounded_once(shape: tuple[int, int, int], dtype: type) -> None:
    """A thousand strips of k, each rounded to eight or eleven bits, would stand still long before the end."""
    m, k, n = shape
    M, N = np.ones((m, k), dtype), np.ones((k, n), dtype)
    assert tw.plan(M, N).kernel in ("few_rows", "dots")
    assert set(tw.matmul(M, N).astype(np.float64).ravel()) == {float(np.array(3000).astype(dtype))}
