"""`Linear`: torch's layer with our products if they are faster, forward and backward, as for widths that are not
multiples of 8."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.torch.choice import ACCOUNTS, Account
from tilewise.torch.function import product, records_operators
from tilewise.torch.reproducible import checked_level, reproducible_linear
from tilewise.torch.routed import choose_linear, flattens_without_copy, is_compiling, routed_linear, theirs, torch_keeps
from tilewise.torch.routed_operator import traced_linear


def linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    on_lines: bool = False,
    when: str = "plan",
    reproducible: str | None = None,
) -> Tensor:
    """input · weightᵀ + bias, as `torch.nn.functional.linear`. The weight is read in place, never transposed.

    on_lines, when, reproducible: see `Linear`.
    """
    if checked_level(reproducible, on_lines) is not None:
        return reproducible_linear(input, weight, bias, str(reproducible))
    if not on_lines:
        return routed_linear(account_of(when), input, weight, bias)
    flat = input.flatten(0, -2) if input.dim() > 2 and flattens_without_copy(input) else input
    made = product(flat, weight.mT, "plus_times", "high", aligned_rows=flat.dim() == 2)
    if bias is not None:
        made = made.add_(bias.to(made.dtype))  # in place: a new tensor would have dense rows
    return made.reshape(*input.shape[:-1], weight.shape[0])


def account_of(when: str) -> Account:
    """The account of layers with this `when`; an unknown value is refused."""
    return ACCOUNTS.get(when) or Account(when)


def choices(when: str = "plan") -> Account:
    """What `Linear` and patched layers chose, and why: print it."""
    return account_of(when)


class Linear(torch.nn.Linear):
    """`torch.nn.Linear` whose three products (forward, and both of backward) run through tilewise where that wins.

    Parameters, initialisation and state_dict are torch's own, so weights travel either way.

    when: "plan" keeps torch's kernel for shapes where ours is not expected to be clearly faster (`tw.torch.choices()`
    prints what was chosen and why); "always" takes all; "never" only counts.

    on_lines: each row of the result starts on a 128-byte line: a view of a wider tensor, as padding by hand would make
    it, without the extra columns. It pays where the loss keeps that layout for its gradient; torch's cross_entropy
    copies it.

    reproducible: "batch" or "everywhere", as in `tw.matmul`: all products, forward and backward, with that level. The
    gradient of the weight sums over the batch, so its bits are those of one batch.

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
        when: str = "plan",
        reproducible: str | None = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device, dtype)
        account_of(when)
        self.on_lines, self.when, self.reproducible = on_lines, when, checked_level(reproducible, on_lines)

    def forward(self, input: Tensor) -> Tensor:
        if torch.jit.is_scripting():  # TorchScript compiles this branch only, and cannot call ours
            return torch.nn.functional.linear(input, self.weight, self.bias)
        level = self.__dict__.get("reproducible")
        if level is not None:
            return reproducible_linear(input, self.weight, self.bias, level)
        return self._routed(input)

    def _routed(self, input: Tensor) -> Tensor:
        if is_compiling() or self.on_lines:
            return self._recorded(input)
        account, weight = ACCOUNTS[self.when], self.weight
        if torch_keeps(account, input, weight):
            return theirs(input, weight, self.bias)
        return choose_linear(account, input, weight, self.bias)

    def _recorded(self, input: Tensor) -> Tensor:
        if self.on_lines:
            return linear(input, self.weight, self.bias, on_lines=True, when=self.when)
        if records_operators() and input.dim() > 1:  # in few operations, which need few guards
            return traced_linear(input, self.weight, self.bias, self.when)
        return routed_linear(ACCOUNTS[self.when], input, self.weight, self.bias)

    @classmethod
    def of(
        cls, layer: torch.nn.Linear, *, on_lines: bool = False, when: str = "plan", reproducible: str | None = None
    ) -> Linear:
        """A layer that shares the weight and bias of another."""
        how: dict[str, Any] = {"on_lines": on_lines, "when": when, "reproducible": reproducible}
        made = cls(layer.in_features, layer.out_features, layer.bias is not None, "meta", **how)
        made.weight, made.bias = layer.weight, layer.bias
        return made.train(layer.training)
