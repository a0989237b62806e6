"""`patch(model)`: every `torch.nn.Linear` of a model becomes ours in place, and `unpatch(model)` reverts it.

Only the class of a layer changes. A layer whose products torch keeps for every input (`vendor.keeps_layers`) has
torch's own forward, so a model with such widths alone costs what it did. Parameters, buffers, hooks, names and shared
weights stay the same objects, so a state_dict, an optimiser or DDP around the model do not change.
"""

from __future__ import annotations

from typing import TypeVar

import torch
from torch.nn import Module

from tilewise.errors import UsageError
from tilewise.torch.ahead import prepare
from tilewise.torch.linear_layer import Linear, account_of
from tilewise.torch.vendor import keeps_layers

Model = TypeVar("Model", bound=Module)


class PatchedLinear(Linear):
    """A layer that was `torch.nn.Linear` and will be again."""


class KeptLinear(PatchedLinear):
    """One that torch keeps for every input."""

    forward = torch.nn.Linear.forward


LAYERS = (torch.nn.Linear, PatchedLinear, KeptLinear)


def patch(model: Model, when: str = "plan") -> Model:
    """Let the linear layers of a model use our products where they are faster; returns the model itself.

    when: as for `Linear`. `print(tw.torch.choices())` shows afterwards which products were ours, which not, and why; a
    layer that torch keeps for every input counts once, here.

    >>> import torch
    >>> model = tw.torch.patch(torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU()))
    >>> model(torch.ones(2, 5)).shape, type(tw.torch.unpatch(model)[0]) is torch.nn.Linear
    (torch.Size([2, 7]), True)
    """
    _check(model)
    account = account_of(when)
    prepare()
    for layer in model.modules():
        if type(layer) in LAYERS:
            kept = when == "plan" and keeps_layers(layer.in_features, layer.out_features)
            if kept and type(layer) is not KeptLinear:
                account.kept_layer(torch.Size((layer.out_features, layer.in_features)), layer.weight.dtype).calls += 1
            layer.__class__ = KeptLinear if kept else PatchedLinear
            layer.__dict__.update(on_lines=False, when=when)
    return model


def unpatch(model: Model) -> Model:
    """A model as it was before `patch`; layers that were made as `tw.torch.Linear` stay."""
    _check(model)
    for layer in model.modules():
        if type(layer) in (PatchedLinear, KeptLinear):
            layer.__class__ = torch.nn.Linear
            for name in ("on_lines", "when"):
                layer.__dict__.pop(name, None)
    return model


def _check(model: Module) -> None:
    if not isinstance(model, Module):
        raise UsageError(f"patch takes a torch.nn.Module, got {type(model).__name__}: pass the model itself")
