"""The right kernel is right at every size, and quick."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simt_support import KERNELS, course

from tilewise.teaching.page.views import trace
from tilewise.teaching.trace import check

EDGES = course("tiled_edges")


@settings(max_examples=12, deadline=None)
@given(n=st.integers(1, 40), tile=st.integers(1, 8))
def test_tiled_edges_has_no_fault(n, tile):
    assert check(EDGES, shape=(n, n, n), tile=tile).ok


@settings(max_examples=7, deadline=None)
@given(shape=st.tuples(*[st.integers(1, 40)] * 3), tile=st.integers(1, 8))
def test_the_struct_kernel_has_no_fault(shape, tile):
    assert check(KERNELS / "matrix_struct.cu", shape=shape, tile=tile).ok


@pytest.mark.slow
@pytest.mark.parametrize("tile", range(1, 9))
def test_tiled_edges_has_no_fault_anywhere(tile):
    report = check(EDGES, shape=[(n, n, n) for n in range(1, 41)], tile=tile)
    assert report.ok, [(r.shape, str(f)) for r in report.runs for f in r.faults]


@settings(max_examples=5, deadline=None)
@given(n=st.integers(1, 20), tile=st.integers(2, 5), which=st.integers(0, 1))
def test_a_missing_barrier_is_found_wherever_it_matters(n, tile, which):
    lines = EDGES.splitlines()
    barriers = [i for i, line in enumerate(lines) if "__syncthreads" in line]
    lines[barriers[which]] = ""
    report = check("\n".join(lines), shape=(n, n, n), tile=tile, adversarial=False)
    races = [f for f in report.seen if f.kind == "race"]
    phases = -(-n // tile)
    assert bool(races) == (which == 0 or phases > 1)


def fastest(function, tries=3):
    times = []
    for _ in range(tries):
        start = time.process_time()  # others may have the processor meanwhile
        function()
        times.append(time.process_time() - start)
    return min(times)


def test_64_is_quick():
    """The bar is 0.088 s, a hundredth of a simulator with one OS thread a CUDA thread; three times that here, since
    machines that run tests are busy. The comparison itself belongs in a benchmark."""
    assert fastest(lambda: check(EDGES, shape=(64, 64, 64), tile=16)) < 0.088 * 3  # slack for busy machines


def test_256_takes_less_than_five_seconds():
    start = time.process_time()
    report = check(EDGES, shape=(256, 256, 256), tile=16)
    assert time.process_time() - start < 5
    run = report.runs[0]
    assert report.ok
    assert np.array_equal(run.arrays["P"], run.arrays["M"] @ run.arrays["N"])


def test_a_small_trace_is_quick():
    assert fastest(lambda: trace(EDGES, shape=(4, 4, 4), tile=2).text()) < 0.15
