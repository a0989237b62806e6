"""tilewise for PyTorch: `matmul` with gradients over any semiring, `Linear`, `accelerate()`. It imports torch.

import tilewise as tw

head = tw.torch.Linear(4096, 50_257, bias=False)
with tw.torch.accelerate() as done:
    train_one_step()
print(done)

Modules: `operator` (torch.library, fake tensors, autograd), `function` and `gradients` (derivatives), `choice` (ours
or torch's, by a plan and by `vendor`, the cost model of torch's kernels), `routed` (that choice in eager torch) and
`compiled` (the same inside torch.compile); `newton_schulz` (iterations of a list of matrices) and `muon` on it.
"""

import tilewise.torch.grouped  # noqa: F401  registers its operators
from tilewise.torch.acceleration import Acceleration, accelerate
from tilewise.torch.cross_entropy import linear_cross_entropy
from tilewise.torch.differentiable_closure import closure
from tilewise.torch.linear_layer import Linear, choices, linear
from tilewise.torch.muon import Muon
from tilewise.torch.newton_schulz import newton_schulz
from tilewise.torch.operator import matmul
from tilewise.torch.patching import patch, unpatch

__all__ = [
    "Acceleration",
    "Linear",
    "Muon",
    "accelerate",
    "choices",
    "closure",
    "linear",
    "linear_cross_entropy",
    "matmul",
    "newton_schulz",
    "patch",
    "unpatch",
]
