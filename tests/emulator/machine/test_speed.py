"""Speed beside Numba's CUDA simulator, in one run on one machine: tiled kernel, TILE 16, all checks on."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import pytest
from simt_support import KERNELS

from tilewise.teaching.trace import check

SIMULATOR = Path(__file__).with_name("numba_simulator.py")


def fastest(function, tries):
    times = []
    for _ in range(tries):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="Numba is not installed")
def test_64_is_a_hundred_times_as_fast_as_numbas_simulator():
    done = subprocess.run([sys.executable, SIMULATOR, "64", "2"], capture_output=True, text=True, check=True)
    theirs = float(done.stdout)
    ours = fastest(lambda: check(KERNELS / "tiled_edges.cu", shape=(64, 64, 64), tile=16), 10)
    print(f"n = 64, TILE 16: Numba's simulator {theirs:.2f} s, simt {ours:.4f} s: {theirs / ours:.0f} times")
    assert theirs / ours >= 100
