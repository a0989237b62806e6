"""Dot products of two vectors, and products of few cells and a long k: which kernel, right to the last element, the
same bits by any number of threads, and no less exact than packed panels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilewise as tw
from operands import values, weighs
from oracle import assert_product
from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cpu import registry
from tilewise.backends.cpu.kernels.shared import tasks
from tilewise.backends.cpu.limits import NOMINAL, with_instructions
from tilewise.backends.cpu.runtime.target import known_target
from tilewise.core.problem import Layout, Problem, row_major

NOT_PACKED = ("axpy", "dots", "unpacked", "few_rows")
TARGETS = ("avx512", "avx2", "neon", "generic")
DTYPE_NAMES = ("float32", "float64", "complex64", "complex128", "int8", "int16", "int32", "int64", "uint8", "float16",
               "bfloat16", "bool")  # fmt: skip


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    yield
    tw.set_num_threads(None)


def chosen(target: str, shape: tuple[int, int, int], m: str, n: str = "", ring: str = "plus_times", **more: Any) -> str:
    """The kernel for such a product; `lay_m` and `lay_n` give the operands' layouts."""
    rows, k, columns = shape
    lay_m, lay_n = more.pop("lay_m", row_major(rows, k)), more.pop("lay_n", row_major(k, columns))
    types = DTYPES[m], DTYPES[n or m]
    lays = lay_m, lay_n, row_major(rows, columns)
    problem = Problem(rows, k, columns, more.pop("stack", ()), *types, find_semiring(ring), *lays, **more)
    machine = with_instructions(NOMINAL, 1, known_target(target))
    return registry.choose(problem, machine).kernel


@pytest.mark.parametrize("target", TARGETS)
def test_a_dot_is_made_by_dots_whatever_its_length_dtype_and_strides(target: str) -> None:
    """`packed` took 20 to 50 times as long as NumPy from 10^5 elements on, and complex numbers of any length did."""
    for k in (2049, 10_000, 100_000, 150_000, 10**6, 10**7):
        assert {chosen(target, (1, k, 1), dtype) for dtype in DTYPE_NAMES} == {"dots"}
        for step in (2, -1):
            apart = Layout(step * k, step), Layout(step, step)
            assert {chosen(target, (1, k, 1), d, lay_m=apart[0], lay_n=apart[1]) for d in DTYPE_NAMES} == {"dots"}
        rings = ("min_plus", "max_plus", "max_min", "max_times", "logaddexp_plus")
        assert {chosen(target, (1, k, 1), "float32", ring=ring) for ring in rings} == {"dots"}
        assert chosen(target, (1, k, 1), "float32", "float64") == "dots"
        assert chosen(target, (1, k, 1), "int8", requested=DTYPES["int32"]) == "dots"
        assert chosen(target, (1, k, 1), "float64", stack=(10,)) == "dots"


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("target", TARGETS)
def test_few_cells_of_a_long_k_are_not_packed(target: str, dtype: str) -> None:
    along = {"lay_n": Layout(1, 10**6)}
    for m, n in ((1, 2), (1, 3), (2, 1), (3, 1), (2, 2), (3, 3), (1, 8), (4, 4), (16, 4), (8, 16)):
        for more in ({}, along, {"lay_m": Layout(1, m)}):
            assert chosen(target, (m, 10**6, n), dtype, **more) in NOT_PACKED, (m, n, more)
        for ring in ("min_plus", "max_times"):
            assert chosen(target, (m, 10**6, n), dtype, ring=ring) in NOT_PACKED, (m, n, ring)


CASES = [
    # k before, at and behind the ends of vectors, blocks and split_k
    ("plus_times", "int32", k) for k in (1, 15, 16, 17, 4095, 4097, 16_384, 32_769, 100_003)
] + [
    (ring, dtype, 40_009)
    for ring, dtype in (
        ("plus_times", "float64"), ("plus_times", "complex64"), ("plus_times", "complex128"), ("plus_times", "int64"),
        ("plus_times", "int8"), ("plus_times", "uint16"), ("plus_times", "float16"), ("plus_times", "bfloat16"),
        ("min_plus", "float32"), ("max_times", "float64"), ("max_min", "float32"), ("min_plus", "int32"),
        ("lor_land", "bool"), ("logaddexp_plus", "float32"),
    )
]  # fmt: skip


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("ring", "dtype", "k"), CASES)
def test_dots_are_right_however_the_vectors_lie(ring: str, dtype: str, k: int) -> None:
    x, y = (values((1, 2 * k), dtype, seed, weights=weighs(ring))[0] for seed in (1, 2))
    for M, N in ((x[:k], y[:k]), (x[::2], y[:k]), (x[:k], y[k - 1 :: -1]), (x[::-2], y[::2])):
        expected = np.atleast_2d(tw.matmul(M, N, semiring=ring))
        assert_product(expected, M[None], np.ascontiguousarray(N)[:, None], ring)
        made = [np.asarray(tw.matmul(M[None], N[:, None], semiring=ring))]
        for threads in (2, 3, 7):
            tw.set_num_threads(threads)
            made.append(np.atleast_2d(tw.matmul(M, N, semiring=ring)))
        tw.set_num_threads(1)
        made.append(np.atleast_2d(tw.matmul(M, N, semiring=ring)))
        assert {x.tobytes() for x in made} == {expected.tobytes()}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32", "float16", "int8"])
@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (3, 3), (5, 12), (1, 8), (16, 4), (9, 40)])
def test_few_cells_of_a_long_k_are_right(shape: tuple[int, int], dtype: str) -> None:
    """With numbers whose sums are exact, for any layouts of the operands and P, and added to P."""
    (m, n), k, rng = shape, 20_011, np.random.default_rng(5)
    M, N = ((rng.integers(-3, 4, s) * (rng.random(s) < 0.05)).astype(dtype) for s in ((m, k), (k, n)))
    expected = (M.astype(np.complex128) @ N.astype(np.complex128)).real.astype(np.int64).astype(dtype)
    for x in (M, np.asfortranarray(M)):
        for y in (N, np.asfortranarray(N)):
            for threads in (1, 4):
                tw.set_num_threads(threads)
                np.testing.assert_array_equal(tw.matmul(x, y), expected)
                onto = np.full((n, m), 3, dtype).T
                tw.matmul(x, y, out=onto, accumulate=True)
                np.testing.assert_array_equal(onto, expected + np.asarray(3, dtype))


def test_stacks_of_dots_and_dots_into_given_memory_are_right() -> None:
    rng = np.random.default_rng(7)
    M, N = (rng.integers(-9, 9, s).astype(np.float64) for s in ((3, 2, 1, 50_001), (2, 50_001, 1)))
    np.testing.assert_array_equal(tw.matmul(M, N), M @ N)
    np.testing.assert_array_equal(tw.matmul(M.astype(np.complex64), N), M @ N)
    np.testing.assert_array_equal(tw.matmul(M[..., ::2], N[:, ::2]), M[..., ::2] @ N[:, ::2])
    out = np.empty((3, 2, 1, 1))
    assert tw.matmul(M, N, out=out) is out
    np.testing.assert_array_equal(out, M @ N)
    x, y = M[0, 0, 0], N[0, :, 0]
    assert tw.matmul(x.astype(np.float32), y) == x @ y
    assert tw.matmul(x.astype(np.int8), y.astype(np.int8), dtype="int32") == x @ y
    found, k = tw.matmul(x, y, semiring="min_plus", return_arg=True)
    assert (found, k) == ((x + y).min(), (x + y).argmin())


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_long_dot_is_no_less_exact_than_packed_panels(dtype: str) -> None:
    """Of positive numbers, whose sum loses the most: chains of 256 additions and the totals of blocks, against strips
    of 384. A product of two float32 is exact in float64."""
    errors: dict[str | None, list[float]] = {None: [], "packed": []}
    for seed in range(5):
        M, N = (np.random.default_rng(seed + 10 * i).random(200_001).astype(dtype) for i in range(2))
        exact = math.fsum(M.real.astype(np.float64) * N.real.astype(np.float64))
        for kernel, found in errors.items():
            found.append(abs(float(tw.matmul(M, N, kernel=kernel).real) / exact - 1))
    assert np.mean(errors[None]) <= max(np.mean(errors["packed"]), np.finfo(dtype).eps), errors


def test_stretches_are_cut_by_shape_alone() -> None:
    """A power of two, as many as a stretch of 64 KB allows, 64 at the most; what the first caches hold is not cut."""

    def cut(k: int, threads: int) -> tuple[int, int]:
        return tasks.split_k_contiguous(tasks.Extents(1, k, 1, 1, True, True, threads), 8)

    for k, count in ((1000, 1), (16_000, 1), (100_000, 8), (10**6, 64), (10**7, 64)):
        assert {cut(k, threads) for threads in (1, 2, 16)} == {cut(k, 1)}
        assert cut(k, 1)[0] == count
        found, each = cut(k, 16)
        assert (found - 1) * each < k <= found * each
