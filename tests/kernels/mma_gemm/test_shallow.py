"""Products of a short k with no card: every width over random layouts, stacks and offsets, behind the C++ compiler."""

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
from tilewise.kernels.detours import recipe_of
from tilewise.kernels.mma_gemm.family import Shallow
from tilewise.kernels.mma_gemm.shallow.model import COLUMNS, DEEPEST, MOST_SHARED, ShallowConfig, geometry
from tilewise.kernels.mma_gemm.text import render_shallow
from tilewise.planning.choose import make_plan

pytestmark = pytest.mark.drawn(4)  # g++ compiles a kernel or two for each, 0.5 to 3 s; on a card all of them run

A100, H200 = KNOWN_CARDS["a100"], KNOWN_CARDS["h200"]
NUMBERS = {"bfloat16": ml_dtypes.bfloat16}
KINDS = [("bfloat16", "high"), ("float16", "high"), ("float32", "tf32"), ("float32", "ieee"), ("float64", "high")]


def lying(rng, shape, dtype, columns=True):
    """Small whole numbers, in rows or in columns, in memory that is wider and starts anywhere."""
    *stack, rows, cols = shape
    transposed = columns and rng.random() < 0.5
    lines = (cols, rows) if transposed else (rows, cols)
    around = rng.integers(-2, 3, (*stack, lines[0] + 2, lines[1] + int(rng.integers(3, 9)))).astype(dtype)
    at = int(rng.integers(0, 3))
    view = around[..., 1 : lines[0] + 1, at : at + lines[1]]
    return (view.swapaxes(-1, -2) if transposed else view), around


@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.drawn(1)
@pytest.mark.parametrize(("dtype", "precision"), KINDS)
def test_random_products_of_a_short_k(tmp_path_factory, dtype, precision):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng, number = np.random.default_rng(seed), NUMBERS.get(dtype, dtype)
    cols = int(rng.choice(COLUMNS[np.dtype(number).itemsize]))
    for _ in range(4):
        m, n = (int(x) for x in rng.integers(1, 200, 2))
        k = int(rng.integers(1, 60))
        stack = (2,) if rng.random() < 0.3 else ()
        M, _ = lying(rng, (*stack, m, k), number)
        N, _ = lying(rng, (*stack, k, n), number)
        P, around = lying(rng, (*stack, m, n), number, columns=False)
        before, kind = around.copy(), dtype_of(M.dtype)
        problem = Problem(
            m, k, n, stack, kind, kind, tw.semirings["plus_times"], layout_of(M), layout_of(N), layout_of(P), False,
            precision,
        )  # fmt: skip
        config = ShallowConfig(cols, int(rng.integers(1, 5)), int(rng.integers(1, 4)))
        recipe = recipe_of(Shallow().pinned(problem, A100, config))
        run_recipe(recipe, folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
        case = f"seed {seed}: {stack} {m}x{k}x{n} {config.words()} {M.strides} {N.strides} {P.strides}"
        exact = (M.astype(np.float64) @ N.astype(np.float64)).astype(number)
        np.testing.assert_array_equal(P.astype(np.float64), exact.astype(np.float64), err_msg=case)
        inside = np.zeros(around.shape, bool)
        row, at = divmod((P.ctypes.data - around.ctypes.data) // around.itemsize, around.shape[-1])
        inside[..., row : row + m, at : at + n] = True
        np.testing.assert_array_equal(around[~inside], before[~inside], err_msg=f"written beside P, {case}")


@pytest.mark.parametrize(("dtype", "precision"), KINDS)
def test_blocks_cover_every_row_and_two_of_them_fit(dtype, precision):
    rng = np.random.default_rng(seed := next_seed() % 2**32)
    for _ in range(200):
        m, n = (int(np.exp(rng.uniform(0, 10))) for _ in range(2))
        problem = problem_of_shape(m, int(rng.integers(1, 65)), n, dtype, precision=precision)
        found = list(Shallow().configurations(problem, H200))
        assert found, f"seed {seed}: {problem.shape}"
        for config in found:
            assert geometry(problem, config).shared_bytes <= MOST_SHARED
            rounds = -(-m // (16 * config.warps * config.blocks))
            assert 16 * config.warps * (config.blocks - 1) * rounds < m, f"seed {seed}: a block of {config} has no rows"


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("arch", "dtype", "tensor"),
    [
        ("sm_90a", "bfloat16", True),
        ("sm_80", "float64", True),
        ("sm_120", "float32", True),
        ("sm_90a", "float32", False),
    ],
)
def test_it_compiles(arch, dtype, tensor):
    number = min(90, int(arch[3:].rstrip("a")))
    cols = COLUMNS[DTYPES[dtype].itemsize][0]
    assert compile_source(render_shallow(DTYPES[dtype], tensor, cols, number), arch)[:4] == b"\x7fELF"


def test_a_wide_product_of_a_short_odd_k_is_one_launch():
    plan = make_plan(problem_of_shape(4671, 19, 9325, "bfloat16"), H200, "shallow")
    (launch,) = recipe_of(plan).steps
    assert launch.overlap


def test_what_it_does_not_multiply_is_refused():
    deep = problem_of_shape(9, DEEPEST + 1, 9, "bfloat16")
    onto = replace(problem_of_shape(9, 9, 9, "bfloat16"), accumulate=True)
    for problem in (deep, onto, problem_of_shape(9, 9, 9, "int8"), problem_of_shape(9, 9, 9, semiring="min_plus")):
        with pytest.raises(UsageError, match="shallow"):
            make_plan(problem, H200, "shallow")
