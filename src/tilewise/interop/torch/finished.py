"""The epilogue where torch follows the product (for a gradient, torch.compile): torch's own operations after it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.semiring import Semiring
from tilewise.core.epilogue import check_fits, epilogue_of

ACTIVATIONS = {
    "relu": torch.nn.functional.relu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "silu": torch.nn.functional.silu,
}


def finished(product: Tensor, semiring: Semiring, alpha: float, bias: Tensor | None, activation: str | None) -> Any:
    """activation(alpha · product + bias)."""
    kind = None if bias is None else DTYPES.get(str(bias.dtype).removeprefix("torch."))
    epilogue = epilogue_of(alpha, kind, activation)
    check_fits(epilogue, semiring, is_plus_times(semiring), DTYPES[str(product.dtype).removeprefix("torch.")])
    made = product if alpha == 1 else product * alpha
    made = made if bias is None else made + bias.to(made.dtype)
    return ACTIVATIONS[activation](made) if activation else made
