"""A short k from registers, with no card: random stacks behind the C++ compiler, among poison."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from seeds import next_seed
from tilewise.algebra.dtypes import dtype_of
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Problem, problem_of_shape
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.simt_gemm.streamed import THREADS, RankK, strips_of, threads_of, wide_of
from tilewise.planning.choose import make_plan

A100, H200 = KNOWN_CARDS["a100"], KNOWN_CARDS["h200"]


def lying(rng, shape, dtype, transposed):
    """A stack of two, with poison around every line of every member."""
    rows, cols = shape[::-1] if transposed else shape
    around = np.full((2, rows + 2, cols + 3), 2**30, dtype)
    x = around[:, 1 : rows + 1, 1 : cols + 1]
    x[...] = rng.integers(-4, 5, x.shape)
    return x.transpose(0, 2, 1) if transposed else x


def rank_k(rng):
    """A depth and columns of a thread: one text for all products of a test."""
    deepest, columns = int(rng.choice([4, 8, 16, 32, 64])), int(rng.choice([1, 2, 4]))
    for _ in range(3):
        m, n = (int(np.exp(rng.uniform(0, np.log(700)))) for _ in range(2))
        k = int(rng.integers(deepest // 2 if deepest > 4 else 0, deepest)) + 1
        yield (m, k, n), rng.random(2) < 0.5, lambda config: config.columns == columns


@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.drawn(2)
@pytest.mark.parametrize(("name", "dtype"), [("plus_times", "float32"), ("max_plus", "int32")])
def test_random_stacks_by_random_configs(tmp_path_factory, name, dtype):
    family, seed, folder = RankK(), next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    onto = bool(rng.random() < 0.3)
    for (m, k, n), transposed, wanted in rank_k(rng):
        M, N = (lying(rng, s, dtype, t) for s, t in zip(((m, k), (k, n)), transposed, strict=True))
        P = lying(rng, (m, n), dtype, False)
        before, around, kind = P.copy(), P.base.copy(), dtype_of(M.dtype)
        layouts = layout_of(M), layout_of(N), layout_of(P)
        problem = Problem(m, k, n, (2,), kind, kind, tw.semirings[name], *layouts, onto, "ieee")
        options = family.configurations(problem, A100)
        options = [config for config in options if wanted(config)] or options[:1]
        plan = family.pinned(problem, A100, options[int(rng.integers(len(options)))])
        run_recipe(recipe_of(plan), folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
        expected = tw.matmul(M, N, semiring=name, out=before.copy() if onto else None, accumulate=onto)
        case = f"seed {seed}: {m}x{k}x{n} {plan.config.spec()}"
        np.testing.assert_array_equal(P, expected, err_msg=case)
        P[...] = before
        np.testing.assert_array_equal(P.base, around, err_msg=f"{case}: written beside P")


def test_every_column_has_a_thread():
    for n in (1, 2, 31, 33, 127, 128, 129, 255, 257, 600, 1024, 1025, 2048):
        for config in RankK().configurations(problem_of_shape(50, 9, n), A100):
            wide = wide_of(n, config.columns)
            assert strips_of(n, config.columns) * wide * config.columns >= n
            assert wide <= threads_of(wide) <= THREADS


@pytest.mark.parametrize(
    ("kernel", "shape", "dtype", "why"),
    [
        ("rank_k", (64, 65, 64), "float32", "a k of 1 to 64"),
        ("rank_k", (64, 6, 64), "float64", "4 bytes"),
    ],
)
def test_what_a_kernel_does_not_take_is_refused(kernel, shape, dtype, why):
    with pytest.raises(tw.TilewiseError, match=why):
        make_plan(problem_of_shape(*shape, dtype), H200, kernel)
