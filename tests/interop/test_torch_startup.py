"""What a program that compiles nothing pays for importing tilewise.torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.interop

EAGER = """
import sys, torch
import tilewise.torch
M, N = torch.randn(4, 5, requires_grad=True), torch.randn(5, 6)
with tilewise.torch.accelerate("always") as done:
    (M @ N).sum().backward()
assert done.routed
tilewise.torch.Linear(5, 7)(M).sum().backward()
print(*sys.modules)
"""


def test_eager_products_do_not_import_torchs_compiler():
    loaded = subprocess.run([sys.executable, "-c", EAGER], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch._dynamo", "torch._inductor"} & set(loaded), "it takes as long to import as torch itself"


def test_every_name_is_there():
    import tilewise.torch

    assert set(tilewise.torch.__all__) <= set(dir(tilewise.torch))
    assert callable(tilewise.torch.linear_cross_entropy)
    with pytest.raises(AttributeError, match="no attribute 'linear_cross_entropies'"):
        _ = tilewise.torch.linear_cross_entropies
