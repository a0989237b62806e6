"""A semiring's mul on tensors that broadcast, by torch's own operations, so that gradients follow."""

from __future__ import annotations

import torch
from torch import Tensor

from tilewise.algebra.semiring import Semiring
from tilewise.interop.torch.slopes import slopes


def elementwise(semiring: Semiring, x: Tensor, y: Tensor) -> Tensor:
    """mul(x, y), cell by cell."""
    if semiring.boolean:
        x, y = x != 0, y != 0
    dtype = torch.promote_types(x.dtype, y.dtype)
    shape = torch.broadcast_shapes(x.shape, y.shape)
    return slopes(semiring.mul, x.to(dtype), y.to(dtype)).value.to(dtype).expand(shape)
