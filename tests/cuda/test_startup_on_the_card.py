"""What a fresh process loads for its first product of torch's tensors."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.cuda

PRODUCT = """
import sys, torch, tilewise as tw
M, N = (torch.ones(33, 33, device="cuda", dtype=torch.bfloat16) for _ in range(2))
assert (tw.matmul(M, N) == 33).all()
print(*sys.modules)
"""


def test_kernels_that_are_built_need_no_cuda_core():
    for _ in range(2):  # the first builds what is not there
        loaded = subprocess.run([sys.executable, "-c", PRODUCT], capture_output=True, text=True, check=True).stdout
    assert "cuda.core" not in loaded.split(), "importing it takes as long as all else of a first product"
    assert "tilewise.backends.cpu.registry" not in loaded.split()
