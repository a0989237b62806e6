"""Stacks in one launch, with no card: runs of members, and products of random stacks behind the C++ compiler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, multiplied
from seeds import next_seed
from tilewise.algebra.dtypes import DTYPES
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Layout, problem_of_shape
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.shared.stacked import GRID_LIMIT, Runs
from tilewise.kernels.simt_gemm import streamed
from tilewise.planning.choose import make_plan

pytestmark = pytest.mark.drawn(8)  # g++ compiles a kernel or two for each, 0.5 to 3 s; on a card all of them run

H200 = KNOWN_CARDS["h200"]


def visited(stack, strides):
    """Every member's offset for each operand, as the launches of the runs visit them."""
    runs, found = Runs(stack, strides), []
    for starts, count in runs.starts():
        found += [
            tuple(start + member * step for start, step in zip(starts, runs.steps, strict=True))
            for member in range(count)
        ]
    return found


def test_runs_visit_every_member_once_in_order():
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    for _ in range(300):
        stack = tuple(int(x) for x in rng.integers(1, 5, rng.integers(0, 4)))
        strides = []
        for _ in range(3):
            full = np.empty((*(1 if rng.random() < 0.3 else e for e in stack), 3, 4))
            full = full[tuple(slice(None, None, -1 if rng.random() < 0.1 else 1) for _ in stack)]
            shown = np.broadcast_to(full, (*stack, 3, 4))
            strides.append(tuple(s // 8 for s in shown.strides[:-2]))
        wanted = [
            tuple(sum(i * s for i, s in zip(index, x, strict=True)) for x in strides) for index in np.ndindex(*stack)
        ]
        assert visited(stack, strides) == wanted, f"seed {seed}: {stack} {strides}"


def test_more_members_than_a_grid_has():
    assert len(visited((3 * GRID_LIMIT + 5,), [(7,), (0,), (1,)])) == 3 * GRID_LIMIT + 5
    assert len(list(Runs((3 * GRID_LIMIT + 5,), [(7,), (0,), (1,)]).starts())) == 4


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "int32"])
@pytest.mark.parametrize("shape", [(4096, 8, 8, 8), (1024, 32, 32, 32), (1000, 17, 129, 33), (500, 1, 300, 70)])
def test_thousands_of_small_products_are_a_few_launches(dtype, shape):
    members, m, k, n = shape
    one = problem_of_shape(m, k, n, dtype)
    stack = {
        f"layout_{name}": Layout(cols, 1, (rows * cols,))
        for name, rows, cols in (("m", m, k), ("n", k, n), ("p", m, n))
    }
    plan = make_plan(replace(one, stack=(members,), **stack), H200)
    assert len(recipe_of(plan).steps) <= 4, plan


CASES = [("plus_times", "float32"), ("min_plus", "int32"), ("max_plus", "float64"), ("lor_land", "bool")]


@pytest.mark.drawn(1)
@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_random_stacks_give_the_right_products(tmp_path_factory, name, dtype):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    for kernel in (None, "plain", "cells"):
        stack = tuple(int(x) for x in rng.integers(1, 4, rng.integers(1, 4)))
        m, k, n = (int(x) for x in rng.integers(1, 40, 3))
        M, N = (
            np.broadcast_to(
                rng.integers(0, 2 if dtype == "bool" else 9, (*(1 if rng.random() < 0.3 else e for e in stack), *shape))
                .astype(DTYPES[dtype].numpy),
                (*stack, *shape),
            )
            for shape in ((m, k), (k, n))
        )  # fmt: skip
        wide = np.full((*stack, m, n + 3), 77).astype(DTYPES[dtype].numpy)
        P = wide[..., 1 : n + 1]
        multiplied(M, N, tw.semirings[name], H200, P, folder, kernel=kernel)
        np.testing.assert_array_equal(P, tw.matmul(M, N, semiring=name), err_msg=f"seed {seed} {kernel}")
        wide[..., 1 : n + 1] = wide[..., :1]
        assert (wide == wide.flat[0]).all(), f"seed {seed}: something was written beside P"


@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize(("m", "n"), [(2, 7), (3, 1), (9, 2), (13, 6)])
@pytest.mark.parametrize("transposed", [False, True])
def test_threads_of_several_cells(tmp_path, monkeypatch, m, n, transposed):
    """Down columns and along rows, for a P whose rows and one whose columns lie side by side."""
    monkeypatch.setattr(streamed, "MANY_CELLS", 1)
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    M, N = (rng.integers(-9, 9, (3, *sides)).astype(np.float32) for sides in ((m, 5), (5, n)))
    wide = np.full((3, n + 1, m) if transposed else (3, m + 1, n), 77, np.float32)
    P = wide[:, :-1].swapaxes(1, 2) if transposed else wide[:, :-1]
    multiplied(M, N, tw.semirings["plus_times"], H200, P, tmp_path, kernel="cells")
    np.testing.assert_array_equal(P, M @ N, err_msg=f"seed {seed}")
    assert (wide[:, -1] == 77).all()


def test_the_k_that_won_in_a_stack(tmp_path):
    if not COMPILER:
        pytest.skip("needs a C++ compiler")
    rng = np.random.default_rng(3)
    M, N = rng.integers(0, 9, (4, 3, 20, 30)).astype(np.float32), rng.integers(0, 9, (3, 30, 25)).astype(np.float32)
    wide = np.broadcast_to(N, (4, 3, 30, 25))
    P, where = np.zeros((4, 3, 20, 25), np.float32), np.full((4, 3, 20, 25), -7)
    multiplied(M, wide, tw.semirings["min_plus"], H200, P, tmp_path, where=where)
    expected, won = tw.matmul(M, N, semiring="min_plus", return_arg=True)
    np.testing.assert_array_equal(P, expected)
    np.testing.assert_array_equal(where, won)
    assert layout_of(wide).stack[0] == 0
