"""A family of CPU kernels is a folder and a line in the registry: what each takes, and which is tried first."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import tilewise as tw
from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cpu import registry
from tilewise.backends.cpu.family import CpuFamily
from tilewise.backends.cpu.kernels.shared.arithmetic import arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents
from tilewise.backends.cpu.limits import NOMINAL, with_instructions
from tilewise.backends.cpu.registry import FAMILIES, TIERS
from tilewise.backends.cpu.runtime.target import known_target
from tilewise.core.problem import Layout, Problem, row_major
from tilewise.errors import UsageError
from tilewise.planning.choose import _plan


def chosen(name: str, dtype: str, ring: str, shape: tuple[int, int, int]) -> str:
    """The kernel of such a product of rows side by side, on that instruction set."""
    m, k, n = shape
    target, number = known_target(name), DTYPES[dtype]
    layouts = row_major(m, k), row_major(k, n), row_major(m, n)
    problem = Problem(m, k, n, (), number, number, find_semiring(ring), *layouts)
    return registry.choose(problem, with_instructions(NOMINAL, 1, target)).kernel


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> CpuFamily:
    """`tiny` under another name, for squares of 5 only, entered as its line in the registry would."""
    family = replace(
        FAMILIES["tiny"],
        name="toy",
        idea="squares of five",
        takes=lambda problem, view, tile: view.m == view.k == view.n == 5,
        suits=lambda problem, view, tile: "five is its number",
    )
    monkeypatch.setattr(registry, "TIERS", ((family,), *TIERS))
    monkeypatch.setitem(FAMILIES, "toy", family)
    _plan.cache_clear()
    yield family
    _plan.cache_clear()


def test_a_new_family_is_planned_printed_and_run(toy: CpuFamily) -> None:
    M = np.random.default_rng(0).random((5, 5))
    plan = tw.plan(M, M)
    assert (plan.kernel, plan.why) == ("toy", "five is its number")
    assert "toy: squares of five" in str(plan)
    np.testing.assert_allclose(tw.matmul(M, M, kernel="toy"), M @ M)
    with pytest.raises(UsageError, match=r"kernel='toy' does not fit 6x6x6 float64: 'tiny' would run"):
        tw.plan(np.ones((6, 6)), np.ones((6, 6)), kernel="toy")


def test_any_kernel_that_takes_a_product_can_be_requested() -> None:
    rng = np.random.default_rng(1)
    M, N = rng.integers(-9, 9, (14, 40)).astype(np.float64), rng.integers(-9, 9, (40, 3)).astype(np.float64)
    for kernel in ("tiny", "dots", "unpacked", "few_rows", "few_columns", "packed_n", "packed"):
        assert tw.plan(M, N, kernel=kernel).kernel == kernel
        np.testing.assert_array_equal(tw.matmul(M, N, kernel=kernel), M @ N)
    with pytest.raises(UsageError, match=r"kernel='bits' does not fit 14x40x3 float64: '\w+' would run"):
        tw.plan(M, N, kernel="bits")


@pytest.mark.parametrize("kernel", ["unpacked", "packed_n", "packed", "axpy"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_every_family_of_complex_numbers_sums_the_same(kernel: str, dtype: str) -> None:
    """Whole numbers, whose sums are exact: edges of rows and columns, strips of k, any layout, onto P."""
    rng = np.random.default_rng(2)
    for m, k, n in ((13, 5, 1), (4, 9, 12), (37, 30, 70), (9, 1100, 31), (70, 3, 300)):
        M, N, P = ((rng.integers(-9, 9, (*shape, 2)) @ (1, 1j)).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
        rights = [N]
        if kernel.startswith("packed"):  # contiguous along k, backwards along k, and every second column
            rights += [np.asfortranarray(N), np.asfortranarray(N[::-1])[::-1], np.repeat(N, 2, axis=1)[:, ::2]]
        for left, right in product((M, np.asfortranarray(M)), rights):
            out = P.copy()
            tw.matmul(left, right, out=out, accumulate=True, kernel=kernel)
            np.testing.assert_array_equal(out, P + M @ N)
            np.testing.assert_array_equal(tw.matmul(left, right, kernel=kernel), M @ N)


def test_a_kernel_with_another_order_of_sums_is_refused() -> None:
    M = np.ones((30, 30))
    for kernel, dtype in (("axpy", "float64"), ("dots", "float64"), ("unpacked", "complex128")):
        with pytest.raises(UsageError, match=f"kernel='{kernel}' does not fit"):
            tw.matmul(M.astype(dtype), M.astype(dtype), kernel=kernel, reproducible="everywhere")


LONG_ROWS = [  # instruction set, dtype, semiring, shape, and whether dot products are chosen
    ("avx512", "float32", "plus_times", (900, 400, 12), True),
    ("avx512", "float32", "plus_times", (900, 320, 16), True),
    ("avx512", "float64", "plus_times", (900, 200, 6), True),
    ("avx2", "float32", "plus_times", (900, 800, 6), True),
    ("avx512", "float32", "plus_times", (60, 400, 12), False),  # M lies near
    ("avx512", "float32", "plus_times", (900, 1008, 12), False),  # N does not
    ("avx512", "float32", "plus_times", (900, 96, 12), False),  # lanes are added up too often
    ("avx512", "float32", "plus_times", (900, 284, 12), False),  # not of whole vectors
    ("avx512", "float32", "min_plus", (900, 400, 12), False),
    ("avx512", "int32", "plus_times", (900, 400, 12), False),
    ("neon", "float32", "plus_times", (900, 400, 12), False),
]


@pytest.mark.parametrize(("name", "dtype", "ring", "shape", "dots"), LONG_ROWS, ids=str)
def test_many_long_rows_and_a_few_columns_are_dot_products(
    name: str, dtype: str, ring: str, shape: tuple[int, int, int], dots: bool
) -> None:
    assert (chosen(name, dtype, ring, shape) == "dots") == dots


@pytest.mark.parametrize(
    ("name", "shape", "kernel"),
    [
        ("avx512", (12, 4096, 16), "interleaved"),  # copying 16 columns costs more than packing
        ("avx512", (40, 4096, 16), "short_dots"),  # beside so many rows it does not
        ("avx512", (351, 34, 21), "interleaved"),  # lanes are added up too often
        ("avx512", (12, 100, 10), "short_dots"),  # so little is not packed
        ("avx2", (12, 4096, 10), "short_dots"),
        ("avx2", (12, 4096, 12), "interleaved"),
    ],
)
def test_columns_of_short_integers_are_copied_where_packing_costs_more(name, shape, kernel) -> None:
    assert chosen(name, "int16", "plus_times", shape) == kernel


@pytest.mark.parametrize(
    ("dtype", "shape", "kernel"),
    [
        ("float32", (600, 500, 9), "dots"),  # a tile of twelve columns would leave three empty
        ("float32", (600, 500, 12), "few_columns"),
        ("float32", (600, 100, 9), "unpacked"),  # lanes are added up too often
        ("float32", (100, 3000, 9), "few_columns"),  # the first cache does not hold N
        ("float64", (200, 700, 7), "dots"),
        ("float32", (2000, 2000, 4), "dots"),  # M comes from afar
        ("float32", (200, 200, 4), "unpacked"),
        ("float64", (4096, 4096, 16), "dots"),  # M's rows collide
        ("float64", (4000, 4000, 16), "packed_n"),
        ("float64", (1500, 2048, 32), "packed_n"),
        ("float64", (600, 500, 10), "packed_n"),
        ("float64", (600, 300, 10), "unpacked"),
        ("int32", (600, 500, 9), "few_columns"),
        ("float32", (155, 10, 1243), "packed_n"),  # P is the cost, and large
        ("float64", (1951, 13, 2529), "packed_n"),
        ("float32", (500, 4, 60), "packed_n"),  # or k is as short as can be
        ("float32", (500, 8, 60), "unpacked"),
        ("float32", (40, 4, 60), "unpacked"),
        ("float32", (3000, 4, 12), "unpacked"),
        ("float32", (1200, 40, 1200), "packed"),
        ("float32", (1200, 30, 1200), "packed_n"),
    ],
)
def test_neon_reads_m_in_few_streams_and_writes_p_along_its_rows(
    dtype: str, shape: tuple[int, int, int], kernel: str
) -> None:
    assert chosen("neon", dtype, "plus_times", shape) == kernel


@pytest.mark.parametrize(
    ("dtype", "orders", "shape", "kernel"),
    [
        ("float32", "FC", (431, 1688, 6), "unpacked, transposed"),  # M is read along its columns, whatever its size
        ("float32", "FF", (481, 1386, 6), "unpacked, transposed"),
        ("float64", "FC", (692, 1016, 14), "unpacked, transposed"),
        ("float64", "FC", (3137, 127, 13), "packed"),  # k is too short to sum P apart
        ("float32", "FC", (3354, 287, 23), "packed, transposed"),  # M is packed along its columns
        ("float32", "FC", (3354, 287, 43), "packed"),
        ("float64", "FF", (1998, 27, 14), "few_columns"),
        ("float32", "FC", (25139, 39, 21), "packed"),  # columns of M come from memory
        ("float32", "CF", (9, 514, 109), "dots, transposed"),  # both contiguous along k
        ("float64", "CF", (14, 37, 6), "dots"),
        ("float32", "CF", (24, 18, 15), "few_columns"),  # k is shorter than two vectors
        ("float32", "CF", (34, 9720, 11), "dots, transposed"),  # L2 does not hold 11 columns, so k is cut
        ("float64", "CF", (419, 3464, 12), "few_columns"),  # too many rows for that
        ("float64", "CC", (20075, 15, 12), "few_columns"),
        ("float64", "CC", (206, 8375, 17), "few_columns"),
        ("float64", "CC", (5, 5193, 70), "unpacked"),  # rows of N are short
        ("float32", "CC", (8, 3257, 493), "few_rows"),
        ("float64", "CC", (1, 1, 1923), "axpy"),  # a vector at a time
        ("float64", "CF", (20, 2, 29769), "dots, transposed"),
    ],
)
def test_avx512_takes_the_family_that_reads_what_is_contiguous(
    dtype: str, orders: str, shape: tuple[int, int, int], kernel: str
) -> None:
    """Each of them took 1.5 to 6 times as long by another family."""
    m, k, n = shape
    M, N = (
        Layout(cols, 1) if order == "C" else Layout(1, rows)
        for (rows, cols), order in zip(((m, k), (k, n)), orders, strict=True)
    )
    number = DTYPES[dtype]
    problem = Problem(m, k, n, (), number, number, find_semiring("plus_times"), M, N, row_major(m, n))
    cut = registry.choose(problem, with_instructions(NOMINAL, 1, known_target("avx512")))
    assert cut.kernel + ", transposed" * cut.swapped == kernel


@pytest.mark.parametrize(("rows", "panels"), [(35, 3), (256, 3), (257, 12)])
def test_avx512_packs_few_columns_at_a_time_beside_few_rows(rows: int, panels: int) -> None:
    problem = Problem(
        rows, 1425, 1617, (), DTYPES["float32"], DTYPES["float32"], find_semiring("plus_times"),
        row_major(rows, 1425), row_major(1425, 1617), row_major(rows, 1617),
    )  # fmt: skip
    for name, group in (("avx512", panels), ("avx2", 12)):
        target = known_target(name)
        cut = registry.choose(problem, with_instructions(NOMINAL, 1, target))
        assert (cut.kernel, cut.group) == ("packed_n", group * cut.NR), name


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_of_a_short_k_are_written_along_rows_of_p(dtype: str) -> None:
    for shape in ((20000, 2, 20), (3000, 4, 100), (3000, 8, 100)):
        for name in ("avx512", "avx2"):
            assert chosen(name, dtype, "plus_times", shape) == "unpacked"
        assert chosen("neon", dtype, "plus_times", shape) == "packed"


def test_two_threads_share_the_rows_of_what_is_written_more_than_read() -> None:
    """Columns would be written in pieces between those of the other thread."""
    target, number = known_target("neon"), DTYPES["float32"]
    problem = Problem(
        155, 10, 1243, (), number, number, find_semiring("plus_times"),
        row_major(155, 10), row_major(10, 1243), row_major(155, 1243),
    )  # fmt: skip
    cut = registry.choose(problem, with_instructions(NOMINAL, 1, target))
    a = arithmetic(problem.algebra, number, number, target)
    made = FAMILIES["packed_n"].tasks(a, cut, Extents(155, 10, 1243, 1, True, False, 2))
    assert (made.tasks_n, made.task_n) == (1, 1243)
    assert made.tasks_m > 1
    assert made.each >= min(cut.group, 1248) * 10 * 4


def test_many_threads_have_two_pieces_each() -> None:
    """Some are lent less of a machine than others: who is done takes the next piece."""
    target, number = known_target("avx512"), DTYPES["float64"]
    problem = Problem(
        248, 483, 882, (), number, number, find_semiring("plus_times"),
        row_major(248, 483), row_major(483, 882), row_major(248, 882),
    )  # fmt: skip
    cut = registry.choose(problem, with_instructions(NOMINAL, 1, target))
    a = arithmetic(problem.algebra, number, number, target)
    counts = {
        threads: FAMILIES["packed_n"].tasks(a, cut, Extents(248, 483, 882, 1, True, False, threads)).count
        for threads in (1, 2, 4, 16)
    }
    assert counts == {1: 1, 2: 2, 4: 4, 16: 32}


@pytest.mark.parametrize(
    ("ring", "shape", "kernel"),
    [
        ("min_plus", (200, 300, 20), "dots"),
        ("max_min", (200, 300, 6), "dots"),
        ("max_times", (200, 300, 20), "dots"),
        ("min_plus", (100, 100, 100), "packed"),
        ("max_min", (300, 30, 40), "packed"),
        ("max_times", (300, 300, 300), "packed_n"),
        ("min_plus", (12, 100, 500), "axpy"),
        ("min_plus", (1, 300, 300), "axpy"),
        ("min_plus", (26, 100, 500), "axpy"),
        ("min_plus", (60, 60, 60), "axpy"),
        ("min_plus", (70, 100, 500), "packed"),
        ("min_plus", (12, 500, 12), "unpacked"),
        ("min_plus", (900, 2, 900), "axpy"),
        ("max_min", (900, 20, 900), "packed"),
        ("max_times", (900, 5, 900), "axpy"),
        ("max_times", (20, 100, 500), "unpacked"),
        ("min_plus", (32, 32, 32), "unpacked"),
        ("plus_times", (100, 100, 100), "unpacked"),
    ],
)
def test_neon_keeps_elements_in_every_lane_off_its_ports(ring: str, shape: tuple[int, int, int], kernel: str) -> None:
    """Only what multiplies takes one lane of a vector; other steps go along k, or read an M that is packed repeated."""
    assert chosen("neon", "float32", ring, shape) == kernel


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_neon_widens_halves_of_a_few_rows_along_rows_of_n(dtype: str) -> None:
    assert chosen("neon", dtype, "plus_times", (1, 500, 500)) == "axpy"
    assert chosen("neon", dtype, "plus_times", (4, 500, 100)) == "axpy"
    assert chosen("neon", dtype, "plus_times", (5, 500, 500)) == "packed_n"
    assert chosen("neon", dtype, "plus_times", (4, 500, 12)) != "axpy"


@pytest.mark.parametrize(
    ("name", "ring", "shape", "kernel"),
    [
        ("neon", "plus_times", (16, 1024, 1024), "packed_n"),
        ("neon", "plus_times", (3, 2048, 2048), "packed_n"),
        ("neon", "plus_times", (32, 80, 1024), "packed_n"),
        ("neon", "min_plus", (16, 1024, 1024), "axpy"),
        ("neon", "plus_times", (16, 1000, 1000), "few_rows"),
        ("neon", "plus_times", (2, 2048, 2048), "few_rows"),
        ("avx512", "plus_times", (16, 1024, 1024), "few_rows"),
    ],
)
def test_rows_that_collide_in_the_first_cache_are_packed(
    name: str, ring: str, shape: tuple[int, int, int], kernel: str
) -> None:
    """On a Neoverse-N1 16x1024x1024 reached 18.7 GFLOP/s with N in place, 27.4 packed; 16x4000x4000 27.0 and 25.9."""
    assert chosen(name, "float32", ring, shape) == kernel


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "kernel"),
    [
        ("avx512", "float64", (48, 512, 512), "packed_n"),
        ("avx512", "float64", (24, 256, 1024), "packed_n"),
        ("avx512", "float32", (32, 512, 1024), "packed_n"),
        ("avx512", "float64", (48, 496, 528), "unpacked"),  # as much of N, and its rows are not whole pages apart
        ("avx512", "float64", (48, 256, 512), "unpacked"),
        ("avx2", "float64", (36, 512, 512), "unpacked"),  # not timed
    ],
)
def test_rows_that_are_whole_pages_apart_are_packed_on_avx512(
    name: str, dtype: str, shape: tuple[int, int, int], kernel: str
) -> None:
    """A Xeon with AMX: 48x512x512 float64 reached 23 GFLOP/s with N in place, 48 packed; 48x528x528 56 and 49."""
    assert chosen(name, dtype, "plus_times", shape) == kernel


@pytest.mark.parametrize(
    ("name", "shape", "kernel"),
    [
        ("neon", (66, 444, 72), "packed_n"),
        ("neon", (512, 512, 512), "packed_n"),
        ("neon", (2000, 500, 8), "packed_n"),
        ("neon", (2000, 500, 5), "dots"),
        ("avx512", (2000, 500, 8), "dots"),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_neon_widens_halves_a_few_rows_at_a_time(
    name: str, shape: tuple[int, int, int], kernel: str, dtype: str
) -> None:
    """By `packed`, which makes a block of sums and rounds it, drawn shapes took 1.15 to 1.25 times as long."""
    assert chosen(name, dtype, "plus_times", shape) == kernel
