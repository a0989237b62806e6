"""tilewise for PyTorch: `matmul` with gradients over any semiring, `Linear`, `accelerate()`. It imports torch.

import tilewise as tw

head = tw.torch.Linear(4096, 50_257, bias=False)
with tw.torch.accelerate() as done:
    train_one_step()
print(done)
"""

from typing import TYPE_CHECKING, Any

import tilewise.interop.torch.grouped  # noqa: F401  registers its operators
from tilewise.interop.torch.accelerate import Acceleration, accelerate
from tilewise.interop.torch.closure import closure
from tilewise.interop.torch.linear import Linear, choices, linear
from tilewise.interop.torch.operator import matmul
from tilewise.interop.torch.patch import patch, unpatch

if TYPE_CHECKING:
    from tilewise.interop.torch.cross_entropy import linear_cross_entropy

__all__ = [
    "Acceleration",
    "Linear",
    "accelerate",
    "choices",
    "closure",
    "linear",
    "linear_cross_entropy",
    "matmul",
    "patch",
    "unpatch",
]


def __getattr__(name: str) -> Any:
    """`linear_cross_entropy` on its first use: torch.compiler.disable, which decorates it, imports the compiler."""
    if name != "linear_cross_entropy":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tilewise.interop.torch.cross_entropy import linear_cross_entropy

    globals()[name] = linear_cross_entropy
    return linear_cross_entropy


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
