"""`Linear`: torch's layer with our products, forward and backward; made for widths that are no multiple of 8."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise import api
from tilewise.arrays.torch_library import followed
from tilewise.interop.torch.function import product
from tilewise.interop.torch.operator import matmul


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, on_lines: bool = False) -> Tensor:
    """input · weightᵀ + bias, as `torch.nn.functional.linear`. The weight is read as it lies, never transposed.

    on_lines: let the rows of the result start on 128-byte lines; see `Linear`.
    """
    flat = input.flatten(0, -2) if _folds(input) else input
    if bias is not None and not on_lines and _fuses(flat, weight, bias):
        made = api.matmul(flat, weight.mT, bias=bias)
        return made.reshape(*input.shape[:-1], weight.shape[0])
    if on_lines and flat.dim() == 2:
        made = product(flat, weight.mT, "plus_times", "high", on_lines=True)
    else:
        made = matmul(flat, weight.mT)
    if bias is not None:
        made = made.add_(bias.to(made.dtype))  # in place: a sum of its own would not lie on lines
    return made.reshape(*input.shape[:-1], weight.shape[0])


def _fuses(input: Tensor, weight: Tensor, bias: Tensor) -> bool:
    """Whether the bias goes with the product: on a card, where torch need not follow what happens."""
    alone = input.is_cuda and not followed(input, weight, None, bias)
    return alone and input.dtype == weight.dtype == bias.dtype and input.is_floating_point()


def _folds(input: Tensor) -> bool:
    """Whether a stack of inputs is one tall matrix as it lies, so that one product serves it without a copy."""
    stack = range(input.dim() - 2)
    return input.dim() > 2 and all(input.stride(i) == input.stride(i + 1) * input.shape[i + 1] for i in stack)


class Linear(torch.nn.Linear):
    """`torch.nn.Linear` whose three products (forward, and both of backward) run through tilewise.

    Parameters, initialisation and state_dict are torch's own, so weights travel either way.

    on_lines: each row of the result starts on a 128-byte line: a view of a wider tensor, as padding by hand would make
    it, without the extra columns. It pays where the loss keeps that layout for its gradient; torch's cross_entropy
    copies it.

    >>> import torch
    >>> tw.torch.Linear(5, 7)(torch.ones(2, 3, 5)).shape
    torch.Size([2, 3, 7])
    >>> tw.torch.Linear(5, 7, on_lines=True)(torch.ones(2, 3, 5)).stride()
    (192, 64, 1)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        on_lines: bool = False,
    ) -> None:
        super().__init__(in_features, out_features, bias, device, dtype)
        self.on_lines = on_lines

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias, on_lines=self.on_lines)

    @classmethod
    def of(cls, layer: torch.nn.Linear, *, on_lines: bool = False) -> Linear:
        """A layer that shares the weight and bias of one that is there."""
        made = cls(layer.in_features, layer.out_features, layer.bias is not None, device="meta", on_lines=on_lines)
        made.weight, made.bias = layer.weight, layer.bias
        return made.train(layer.training)
