"""Complex products by real ones, with no card: every layout and both forms, behind the C++ compiler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import run_recipe
from seeds import next_seed
from tilewise.algebra.dtypes import DTYPES, dtype_of
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Layout, Problem, problem_of_shape
from tilewise.kernels.choosing import _plan_by_reals, ranked_plans
from tilewise.kernels.kernel_set import kernel_set
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.transforms.as_reals import form_of, has_real_form, real_form
from tilewise.planning.choose import make_plan

A100 = KNOWN_CARDS["a100"]
DTYPE = {"complex64": "ieee", "complex128": "high"}


def lying(rng, shape, dtype):
    """Whole numbers in row-major, column-major or strided memory, backwards too; NaN around them."""
    *stack, rows, cols = shape
    kind = rng.integers(5)
    if kind == 0:
        around = np.full((*stack, rows, cols), np.nan, dtype)
        x = around
    elif kind == 1:
        around = np.full((*stack, rows + 2, cols + 3), np.nan, dtype)
        x = around[..., 1 : rows + 1, 1 : cols + 1]
    elif kind == 2:
        around = np.full((*stack, cols + 2, rows + 3), np.nan, dtype)
        x = around[..., 1 : cols + 1, 1 : rows + 1].swapaxes(-1, -2)
    else:
        around = np.full((*stack, 2 * rows, 3 * cols), np.nan, dtype)
        x = around[..., ::2, ::3] if kind == 3 else around[..., ::-2, : 3 * cols : 3]
    x[...] = rng.integers(-4, 5, shape) + 1j * rng.integers(-4, 5, shape)
    return x, around


def problem_at(M, N, P, precision, **how):
    layouts = [stacked_layout(x) for x in (M, N, P)]
    kind = dtype_of(M.dtype)
    m, k, n = M.shape[-2], M.shape[-1], N.shape[-1]
    return Problem(m, k, n, P.shape[:-2], kind, kind, tw.semirings["plus_times"], *layouts, precision=precision, **how)


def stacked_layout(x):
    strides = [stride // x.itemsize for stride in x.strides]
    return Layout(strides[-2], strides[-1], tuple(strides[:-2]), x.ctypes.data % 16)


@pytest.mark.drawn(1)  # g++ compiles five kernels for each
@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_random_products_by_real_ones(tmp_path_factory, dtype):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    seen = set()
    for number in range(8):
        m, k, n = (int(x) for x in (rng.integers(1, 9), rng.integers(1, 50), rng.integers(1, 50)))
        if number % 2:
            m, n = n, m
        stack = (3,) if number % 4 == 3 else ()
        (M, _), (N, _), (P, around) = (lying(rng, (*stack, *s), dtype) for s in ((m, k), (k, n), (m, n)))
        if stack and number % 8 == 3:
            N = np.broadcast_to(N[0], N.shape)
        before, onto = P.copy(), bool(number % 3 == 0)
        whole = around.copy()
        problem = problem_at(M, N, P, DTYPE[dtype], accumulate=onto)
        assert has_real_form(problem)
        seen.add(form_of(problem)[1:])
        real = make_plan(real_form(problem), A100, "naive")
        plan = real.but(problem=problem, real=real)
        run_recipe(recipe_of(plan), folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
        case = f"seed {seed}: {stack}{m}x{k}x{n} {M.strides} {N.strides} {P.strides} {plan.notes} {plan.kernel}"
        np.testing.assert_array_equal(P, M @ N + (before if onto else 0), err_msg=case)
        P[...] = before
        np.testing.assert_array_equal(around, whole, err_msg=f"written beside P, {case}")
    assert len(seen) >= 3, "of four forms"


def test_a_real_form_has_the_flops_of_four_real_products():
    for shape in ((64, 32, 100), (2, 4096, 4096), (4096, 4096, 2), (500, 3, 500)):
        problem = problem_of_shape(*shape, "complex128")
        assert real_form(problem).steps == 4 * problem.steps


def test_what_moves_fewest_bytes_is_taken():
    by_rows, transposed = problem_of_shape(4, 1000, 1000, "complex64"), problem_of_shape(1000, 1000, 4, "complex64")
    assert form_of(by_rows)[1:] == (False, True), "a small P: M is split, N read where it lies"
    assert form_of(transposed)[1:] == (False, False), "a small N is expanded, M read where it lies"
    by_columns = replace(by_rows, layout_n=Layout(1, 1000))
    assert form_of(by_columns)[1:] == (True, False), "N transposed is read where it lies, and a small M expanded"
    tall = replace(transposed, layout_m=Layout(1, 1000))
    assert form_of(tall)[1:] == (True, True), "M transposed is read where it lies, and a small N split"


def test_large_complex_products_run_as_real_ones_and_the_plan_notes_it():
    card = replace(KNOWN_CARDS["h200"], arch="sm_90a")
    for dtype, real in (("complex64", "float32"), ("complex128", "float64")):
        plan = make_plan(problem_of_shape(2048, 2048, 2048, dtype), card)
        assert plan.real is not None
        assert plan.kernel == plan.real.kernel == make_plan(real_form(plan.problem), card).kernel
        assert any(real in note for note in plan.notes)
        assert plan.phases * plan.geometry.depth >= 4096
        assert plan in ranked_plans(plan.problem, card)


def test_every_text_is_in_the_dtypes_set():
    card = replace(KNOWN_CARDS["h200"], arch="sm_90a")
    for dtype in ("complex64", "complex128"):
        table = set(kernel_set(problem_of_shape(8, 8, 8, dtype), card))
        for shape in ((2048, 2048, 2048), (3, 4000, 4001), (4001, 400, 3), (777, 60, 555)):
            plan = _plan_by_reals(problem_of_shape(*shape, dtype), card)
            assert set(recipe_of(plan).sources) <= table, shape


@pytest.mark.parametrize("change", [{"return_arg": True}, {"semiring": tw.semirings["max_times"]}, {"k": 0}])
def test_what_has_no_real_form(change):
    problem = replace(problem_of_shape(8, 8, 8, "complex64"), **{k: v for k, v in change.items() if k != "semiring"})
    if "semiring" in change:
        problem = replace(problem_of_shape(8, 8, 8, "float32"), semiring=change["semiring"])
    assert not has_real_form(problem)
    assert not has_real_form(replace(problem_of_shape(8, 8, 8, "complex64"), dtype_n=DTYPES["float32"]))
