"""Thin products of float32 with no card: any strides of all three, stacks, behind the C++ compiler."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from tilewise.algebra.dtypes import dtype_of
from tilewise.engines.cuda.compile import compile_source
from tilewise.errors import UsageError
from tilewise.kernels.detours import recipe_of
from tilewise.kernels.thin.family import Thin
from tilewise.kernels.thin.model import CELLS, ThinWay, geometry, piece, ways
from tilewise.kernels.thin.text import render_thin
from tilewise.machine import KNOWN_CARDS
from tilewise.planning import make_plan
from tilewise.problem import Problem, problem_of_shape

A100, H200 = KNOWN_CARDS["a100"], KNOWN_CARDS["h200"]


def lying(rng, shape):
    """Small whole numbers in rows or in columns of wider memory, backwards too; and that memory."""
    *stack, rows, cols = shape
    turned = rng.random() < 0.5
    lines, length = (cols, rows) if turned else (rows, cols)
    around = rng.integers(-2, 3, (*stack, lines + 1, length + 3)).astype(np.float32)
    view = around[..., 1:, 1 : length + 1]
    view = view[..., ::-1, :] if rng.random() < 0.2 else view
    return (view.swapaxes(-1, -2) if turned else view), around


@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
def test_random_thin_products(tmp_path_factory):
    seed, folder = time.time_ns() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    most = int(rng.choice(CELLS))
    for _ in range(5):
        short = int(rng.integers(max(9, most - 7), most + 1))
        long, k = int(rng.integers(short, 300)), int(rng.integers(1, 400))
        m, n = (long, short) if rng.random() < 0.5 else (short, long)
        stack = (2,) if rng.random() < 0.3 else ()
        (M, _), (N, _), (P, around) = (lying(rng, (*stack, *s)) for s in ((m, k), (k, n), (m, n)))
        P[...] = 7
        before, kind = around.copy(), dtype_of(M.dtype)
        problem = Problem(
            m, k, n, stack, kind, kind, tw.semirings["plus_times"], layout_of(M), layout_of(N), layout_of(P), False,
            "ieee",
        )  # fmt: skip
        way = ThinWay(int(rng.choice((1, 2, 4))), 1)
        recipe = recipe_of(Thin().pinned(problem, A100, way))
        run_recipe(recipe, folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
        said = f"seed {seed}: {stack} {m}x{k}x{n} {way.words()} {M.strides} {N.strides} {P.strides}"
        np.testing.assert_array_equal(P, M @ N, err_msg=said)
        P[...] = 7
        np.testing.assert_array_equal(around, before, err_msg=f"written beside P, {said}")


def test_the_blocks_of_a_cluster_cover_k_and_all_have_some():
    for k in (1, 7, 33, 100, 489, 4097):
        problem = problem_of_shape(900, k, 20)
        for way in ways(problem, H200):
            each = piece(problem, way)
            assert each * way.cluster >= k > each * (way.cluster - 1)
            assert geometry(problem, way).shared_bytes <= 76 * 1024, "three blocks share a multiprocessor"
    assert {way.cluster for way in ways(problem_of_shape(900, 4097, 20), A100)} == {1}


@pytest.mark.parametrize("arch", ["sm_90a", "sm_80"])
def test_it_compiles(arch):
    assert compile_source(render_thin(CELLS[0]), arch)[:4] == b"\x7fELF"


def test_a_tall_product_of_few_columns_is_one_launch():
    plan = make_plan(problem_of_shape(3637, 3035, 34), H200, "thin")
    (launch,) = recipe_of(plan).steps
    assert launch.overlap


def test_what_it_does_not_multiply_is_refused():
    thin = problem_of_shape(900, 900, 20)
    wide, few = problem_of_shape(900, 900, 65), problem_of_shape(900, 900, 8)
    rounded = problem_of_shape(900, 900, 20, precision="tf32")
    for problem in (wide, few, rounded, replace(thin, accumulate=True), problem_of_shape(900, 900, 20, "float64")):
        with pytest.raises(UsageError, match="thin"):
            make_plan(problem, H200, "thin")
