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
    torch.nn.functional.linear(M, N.T)
assert done.routed > 1
tilewise.torch.Linear(5, 7)(M).sum().backward()
print(*sys.modules)
"""


AHEAD = """
import sys, torch
import tilewise.torch
from tilewise.torch import preload
tilewise.torch.patch(torch.nn.Linear(3, 5))
assert not preload._threads, "no card is used"
torch.cuda.is_initialized = lambda: True
tilewise.torch.CALL
for thread in preload._threads:
    thread.join()
tilewise.torch.patch(torch.nn.Linear(3, 5))
print(len(preload._threads), *sys.modules)
"""


@pytest.mark.drawn(1)
@pytest.mark.parametrize("call", ["patch(torch.nn.Linear(3, 5))", "accelerate()"])
def test_with_cuda_initialised_threads_preload_the_first_product(call):
    program = AHEAD.replace("CALL", call)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    threads, *loaded = done.stdout.split()
    assert threads == "2"
    ours = {"tilewise.kernels.registry", "tilewise.backends.cuda.launcher", "tilewise.planning.precompile"}
    assert ours <= set(loaded)
    assert not {"torch._dynamo", "torch._inductor"} & set(loaded)
    assert not done.stderr


FIRST_COMPILED = """
import torch, warnings
import tilewise.torch
from torch.nn import functional
seen = []
def backend(graph, inputs):
    seen.extend(str(node.target) for node in graph.graph.nodes)
    return graph.forward
x, y = torch.randn(9, 65), torch.randint(65, (9,))
loss = lambda x: functional.cross_entropy(x, y)
warnings.simplefilter("ignore")
BEFORE
with tilewise.torch.accelerate("always"):
    INSIDE
    made(x)
print(*seen)
"""


@pytest.mark.drawn(1)
@pytest.mark.parametrize("where", ["BEFORE", "INSIDE"])
def test_the_first_thing_that_a_process_compiles_is_taken(where):
    program = FIRST_COMPILED.replace(where, "made = torch.compile(loss, backend=backend, fullgraph=True)")
    program = program.replace("BEFORE\n", "").replace("    INSIDE\n", "")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "tilewise.row_losses" in done.stdout


def test_eager_products_do_not_import_torchs_compiler():
    loaded = subprocess.run([sys.executable, "-c", EAGER], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch._dynamo", "torch._inductor"} & set(loaded), "it takes as long to import as torch itself"


def test_every_name_is_there():
    import tilewise.torch

    assert set(tilewise.torch.__all__) <= set(dir(tilewise.torch))
    assert callable(tilewise.torch.linear_cross_entropy)
    with pytest.raises(AttributeError, match="no attribute 'linear_cross_entropies'"):
        _ = tilewise.torch.linear_cross_entropies
