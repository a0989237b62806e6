"""Products of a short k on tensor cores with no card: configs over random layouts, stacks and offsets, behind the C++
compiler."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from seeds import next_seed
from tilewise.algebra.dtypes import DTYPES, dtype_of
from tilewise.backends.cuda.compile import compile_source
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Problem, problem_of_shape
from tilewise.errors import UsageError
from tilewise.kernels.mma_gemm.family import ShortK
from tilewise.kernels.mma_gemm.short_k import model
from tilewise.kernels.mma_gemm.text import render_short_k
from tilewise.kernels.recipes import recipe_of
from tilewise.planning.choose import make_plan

pytestmark = pytest.mark.drawn(3)  # g++ compiles a kernel or two for each, 0.5 to 3 s; on a card all of them run

H200 = replace(KNOWN_CARDS["h200"], arch="sm_90a")
NUMBERS = {"bfloat16": ml_dtypes.bfloat16}
KINDS = [("bfloat16", "high"), ("float16", "high"), ("float32", "tf32")]


def lying(rng, shape, dtype, columns=True):
    """Small whole numbers among NaN, in rows or in columns, in memory that is wider and starts anywhere."""
    *stack, rows, cols = shape
    transposed = columns and rng.random() < 0.5
    lines = (cols, rows) if transposed else (rows, cols)
    around = np.full((*stack, lines[0] + 2, lines[1] + int(rng.choice((4, 6, 8, 11, 13)))), np.nan, dtype)
    at = int(rng.choice((0, 0, 1, 2, 4)))
    view = around[..., 1 : lines[0] + 1, at : at + lines[1]]
    view[...] = rng.integers(-2, 3, (*stack, *lines))
    return (view.swapaxes(-1, -2) if transposed else view), around


@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.drawn(1)
@pytest.mark.parametrize(("dtype", "precision"), KINDS)
def test_random_products_by_random_configs(tmp_path_factory, dtype, precision):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng, number = np.random.default_rng(seed), NUMBERS.get(dtype, dtype)
    for _ in range(6):
        m, n = (int(x) for x in rng.integers(1, 200, 2))
        k = int(rng.integers(1, 48))
        if rng.random() < 0.3:
            m, k, n = (-(-x // 8) * 8 for x in (m, k, n))
        stack = (2,) if rng.random() < 0.3 else ()
        M, _ = lying(rng, (*stack, m, k), number)
        N, _ = lying(rng, (*stack, k, n), number)
        P, around = lying(rng, (*stack, m, n), number, columns=False)
        kind = dtype_of(M.dtype)
        problem = Problem(
            m, k, n, stack, kind, kind, tw.semirings["plus_times"], layout_of(M), layout_of(N), layout_of(P), False,
            precision,
        )  # fmt: skip
        card = replace(H200, units=int(rng.choice((1, 3, 132))))
        found = ShortK().configurations(problem, card)
        config = found[int(rng.integers(len(found)))]
        recipe = recipe_of(ShortK().pinned(problem, card, config))
        run_recipe(recipe, folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
        case = f"seed {seed}: {stack} {m}x{k}x{n} {config.spec()} {M.strides} {N.strides} {P.strides}"
        exact = (M.astype(np.float64) @ N.astype(np.float64)).astype(number)
        np.testing.assert_array_equal(P.astype(np.float64), exact.astype(np.float64), err_msg=case)
        P[...] = np.nan
        assert np.isnan(around.astype(np.float64)).all(), f"written beside P, {case}"


def test_rows_of_a_class_start_equally_far_behind_a_boundary():
    for n, classes in ((64, 1), (2295, 16), (908, 4), (34, 8), (40, 2)):
        problem = problem_of_shape(500, 20, n, "bfloat16")
        assert model.classes_of(problem) == classes
        assert all(row * n * 2 % 32 == (row + classes) * n * 2 % 32 for row in range(classes))


@pytest.mark.parametrize(("dtype", "precision"), KINDS)
def test_warps_of_a_strip_have_rows_of_every_class(dtype, precision):
    rng = np.random.default_rng(seed := next_seed() % 2**32)
    for _ in range(60):
        m, n = (int(np.exp(rng.uniform(0, 9.5))) for _ in range(2))
        problem = problem_of_shape(m, int(rng.integers(1, 49)), n, dtype, precision=precision)
        found = ShortK().configurations(problem, H200)
        assert found, f"seed {seed}: {problem.shape}"
        for config in found:
            classes, warps = model.classes_of(problem), model.row_warps(problem, config, 132)
            assert warps % classes == 0, f"seed {seed}: {problem.shape} {config}"
            rows = -(-m // classes)
            assert warps // classes <= -(-rows // model.ROWS), f"seed {seed}: warps of {config} have no rows"


def test_a_stride_decides_how_much_is_read_at_once():
    even, odd = problem_of_shape(64, 24, 64, "bfloat16"), problem_of_shape(64, 23, 66, "bfloat16")
    assert model.widths_of(even) == {"M": 8, "N": 2}
    assert model.widths_of(odd) == {"M": 2, "N": 2}
    assert model.widths_of(problem_of_shape(64, 22, 64, "bfloat16"))["M"] == 4
    assert {config.transposed for config in ShortK().configurations(even, H200)} == {"", "N"}


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("arch", "dtype"), [("sm_90a", "bfloat16"), ("sm_80", "float16"), ("sm_120", "float32")])
def test_it_compiles(arch, dtype):
    held = model.HELD[DTYPES[dtype].itemsize][0]
    assert compile_source(render_short_k(DTYPES[dtype], held), arch)[:4] == b"\x7fELF"


def test_a_plan_prints_what_is_transposed_first():
    plan = make_plan(problem_of_shape(5256, 17, 13083, "float16"), H200)
    assert [step.name for step in recipe_of(plan).steps] == ["transpose", "short_k"]
    assert [note[:1] for note in plan.notes if "transposed first" in note] == ["M", "N"]


def test_what_it_does_not_multiply_is_refused():
    deep = problem_of_shape(9, model.DEEPEST[2] + 1, 9, "bfloat16")
    onto = replace(problem_of_shape(9, 9, 9, "bfloat16"), accumulate=True)
    empty = [problem_of_shape(*shape, "bfloat16") for shape in ((0, 9, 9), (9, 9, 0), (9, 0, 9))]  # 0 warps, of 0 rows
    others = problem_of_shape(9, 9, 9, "float32"), problem_of_shape(9, 9, 9, semiring="min_plus")
    for problem in (deep, onto, *empty, *others):
        with pytest.raises(UsageError, match="short_k"):
            make_plan(problem, H200, "short_k")
