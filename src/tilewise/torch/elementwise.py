"""A semiring's mul on tensors that broadcast, in torch operations, which have gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from tilewise.algebra.semiring import Semiring
from tilewise.torch.partials import partials


def elementwise(semiring: Semiring, x: Tensor, y: Tensor) -> Tensor:
    """mul(x, y), cell by cell."""
    if semiring.boolean:
        x, y = x != 0, y != 0
    dtype = torch.promote_types(x.dtype, y.dtype)
    shape = torch.broadcast_shapes(x.shape, y.shape)
    return partials(semiring.mul, x.to(dtype), y.to(dtype)).value.to(dtype).expand(shape)
