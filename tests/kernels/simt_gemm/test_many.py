"""Unrelated products in one launch, with no card: the kernel behind the C++ compiler, and which pairs it takes."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import run_recipe
from seeds import next_seed
from tilewise.algebra.dtypes import DTYPES, dtype_of
from tilewise.backends.cuda.compile import compile_source
from tilewise.kernels.simt_gemm.grouped import JOBS, Job, many_recipe, render_many
from tilewise.system.cache import DiskCache


def lying(rng, shape, dtype):
    """Numbers by rows, by columns, or backwards, inside of more memory."""
    around = rng.integers(0, 9, (shape[0] + 2, shape[1] + 3)).astype(dtype)
    around = np.asfortranarray(around) if rng.random() < 0.5 else around
    x = around[1 : shape[0] + 1, 1 : shape[1] + 1]
    return x[::-1] if rng.random() < 0.2 else x


@pytest.mark.drawn(1)
@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize(("name", "dtype"), [("plus_times", "float32"), ("min_plus", "int32")])
def test_random_lists(tmp_path_factory, name, dtype):
    seed = next_seed() % 2**32
    rng, jobs, wanted, made, kept = np.random.default_rng(seed), [], [], [], []
    for number in range(JOBS + 3):
        most = 100 if number % 9 == 0 else 20
        m, k, n = (int(x) for x in rng.integers(0, most, 3))
        M, N, P = (lying(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        strides = [step // x.itemsize for x in (M, N, P) for step in x.strides]
        jobs.append(Job(*(x.ctypes.data for x in (M, N, P)), *strides, m, k, n))
        wanted.append(tw.matmul(M, N, semiring=name))
        made.append(P)
        kept += [M, N]
    recipe = many_recipe(tw.semirings[name].over(dtype_of(np.dtype(dtype))), jobs)
    assert len(recipe.steps) == -(-sum(job.m > 0 < job.n for job in jobs) // JOBS)
    run_recipe(recipe, tmp_path_factory.getbasetemp())
    for number, (P, right) in enumerate(zip(made, wanted, strict=True)):
        np.testing.assert_array_equal(P, right, err_msg=f"seed {seed}, pair {number}")


def test_its_parameters_fit_a_launch(tmp_path):
    import ctypes

    assert ctypes.sizeof(Job) * JOBS + 8 <= 4096
    for dtype in ("bfloat16", "float64"):
        text = render_many(tw.semirings["plus_times"].over(DTYPES[dtype]), JOBS)
        assert compile_source(text, "sm_80", DiskCache("cubin", tmp_path))[:4] == b"\x7fELF"
