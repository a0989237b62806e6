"""tilewise for PyTorch: `matmul` with gradients over any semiring, `Linear`, `accelerate()`. It imports torch.

import tilewise as tw

head = tw.torch.Linear(4096, 50_257, bias=False)
with tw.torch.accelerate() as done:
    train_one_step()
print(done)
"""

from typing import TYPE_CHECKING, Any

from tilewise.interop.torch.accelerate import Acceleration, accelerate
from tilewise.interop.torch.closure import closure
from tilewise.interop.torch.elementwise import elementwise
from tilewise.interop.torch.followed import followed_matmul
from tilewise.interop.torch.grouped import grouped_matmul as followed_grouped_matmul
from tilewise.interop.torch.grouped import scatter_rows as followed_scatter_rows
from tilewise.interop.torch.linear import Linear, choices, linear
from tilewise.interop.torch.operator import matmul, traced_matmul
from tilewise.interop.torch.patch import patch, unpatch

if TYPE_CHECKING:
    from tilewise.interop.torch.cross_entropy import linear_cross_entropy

__all__ = [
    "Acceleration",
    "Linear",
    "accelerate",
    "choices",
    "closure",
    "elementwise",
    "followed_grouped_matmul",
    "followed_matmul",
    "followed_scatter_rows",
    "linear",
    "linear_cross_entropy",
    "matmul",
    "patch",
    "traced_matmul",
    "unpatch",
]


def __getattr__(name: str) -> Any:
    """`linear_cross_entropy` on its first use: torch.compile is told to leave it alone, which imports the compiler."""
    if name != "linear_cross_entropy":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tilewise.interop.torch.cross_entropy import linear_cross_entropy

    globals()[name] = linear_cross_entropy
    return linear_cross_entropy


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
