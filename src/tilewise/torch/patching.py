"""`patch(model)` replaces the linear layers of a model (`torch.nn.Linear`, `Conv1D` of transformers' GPT-2) by ours, in
place; `unpatch(model)` reverts it.

Only the class of a layer changes. A layer that torch computes for every input (`vendor.keeps_layers`) has torch's own
forward, without overhead. Parameters, buffers, hooks, names and shared weights stay the same objects, so a state_dict,
an optimiser or DDP around the model do not change. torch.fx treats a patched layer as a leaf, torch.jit.script as
torch's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar, overload

import torch
from torch import Tensor
from torch.nn import Module

from tilewise.errors import UsageError
from tilewise.torch.choice import ACCOUNTS
from tilewise.torch.linear_layer import Linear, account_of
from tilewise.torch.preload import preload
from tilewise.torch.reproducible import checked_level, reproducible_linear
from tilewise.torch.routed import routed_linear
from tilewise.torch.vendor import keeps_layers

Model = TypeVar("Model", bound=Module)


class Reversible(Module):
    """A patched layer of any kind."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "qconfig":  # torch.ao.quantization finds layers by class, and would skip this one
            raise UsageError("a patched layer is not quantised: quantise tw.torch.unpatch(model)")
        super().__setattr__(name, value)


class PatchedLinear(Reversible, Linear):
    """A patched `torch.nn.Linear`."""


class KeptLinear(PatchedLinear):
    """A patched layer that torch computes for every input."""

    forward = torch.nn.Linear.forward


class PatchedConv1D(Reversible):
    """input · weight + bias: a linear layer whose weight is stored transposed, inputs × outputs."""

    def forward(self, x: Tensor) -> Tensor:
        if torch.jit.is_scripting():
            return torch.nn.functional.linear(x, self.weight.t(), self.bias)
        level = self.__dict__.get("reproducible")
        if level is not None:
            return reproducible_linear(x, self.weight.mT, self.bias, level)
        return routed_linear(ACCOUNTS[self.when], x, self.weight.mT, self.bias)


@cache
def _patched_conv1d(theirs: Any) -> type[Module]:
    """The patched class of a Conv1D class."""
    return type(theirs.__name__, (PatchedConv1D, theirs), {"__module__": theirs.__module__})


@dataclass(frozen=True)
class PatchedLayer:
    """A layer in the report: whether its products may be ours (`taken`), and why."""

    name: str
    kind: str
    taken: bool
    why: str


@dataclass(frozen=True)
class PatchReport:
    """Every layer of a model that has a weight matrix."""

    layers: tuple[PatchedLayer, ...]

    @property
    def taken(self) -> list[str]:
        return [layer.name for layer in self.layers if layer.taken]

    @property
    def left(self) -> list[str]:
        return [layer.name for layer in self.layers if not layer.taken]

    def __str__(self) -> str:
        rows = [f"{x.name or '(the model)'} ({x.kind}): {'ours' if x.taken else 'left'}, {x.why}" for x in self.layers]
        return "\n".join([f"{len(self.taken)} layers taken, {len(self.left)} left", *rows])


@overload
def patch(
    model: Model, when: str = "plan", *, reproducible: str | None = None, report: Literal[False] = False
) -> Model: ...
@overload
def patch(
    model: Module, when: str = "plan", *, reproducible: str | None = None, report: Literal[True]
) -> PatchReport: ...
def patch(model: Any, when: str = "plan", *, reproducible: str | None = None, report: bool = False) -> Any:
    """Let the linear layers of a model use our products where they are faster; returns the model itself.

    when: as for `Linear`. `print(tw.torch.choices())` shows afterwards which products were ours, which not, and why; a
    layer that torch keeps for every input counts once, here.
    reproducible: "batch" or "everywhere", as for `Linear`: every linear layer then is ours, whatever `when` is.
    report: returns what was taken, what not and why, instead of the model.

    >>> import torch
    >>> model = tw.torch.patch(torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Conv2d(1, 1, 3)))
    >>> print(tw.torch.patch(model, report=True))
    1 layers taken, 1 left
    0 (Linear): ours, where the plan expects it to be faster
    1 (Conv2d): left, no linear layer
    """
    _check(model)
    account, level = account_of(when), checked_level(reproducible)
    preload()
    found = []
    for name, layer in model.named_modules():
        kind = type(layer)
        weight = getattr(layer, "weight", None)
        if kind in (torch.nn.Linear, PatchedLinear, KeptLinear):
            sizes = layer.out_features, layer.in_features
        elif _is_conv1d(layer):
            sizes = tuple(reversed(layer.weight.shape))
        else:
            if isinstance(weight, Tensor) and weight.dim() > 1:
                found.append(PatchedLayer(name, kind.__name__, False, _why_not(layer)))
            continue
        kept = when == "plan" and level is None and keeps_layers(*sizes)
        if kept and not layer.__dict__.get("kept"):
            account.kept_layer(torch.Size(sizes), layer.weight.dtype).calls += 1
        shown = "Linear" if isinstance(layer, torch.nn.Linear) else kind.__name__
        why = "torch's kernels keep its products: both widths are multiples of 8" if kept else _WHY[when]
        why = why if level is None else f"reproducible={level!r}"
        found.append(PatchedLayer(name, shown, level is not None or not (kept or when == "never"), why))
        _replace(layer, kept, when, level)
    return PatchReport(tuple(found)) if report else model


_WHY = {
    "plan": "where the plan expects it to be faster",
    "always": "when='always'",
    "never": "when='never' only counts",
}
_OWN = ("on_lines", "when", "kept", "reproducible", "__module__")  # attributes that patching adds


def _replace(layer: Any, kept: bool, when: str, reproducible: str | None) -> None:
    if isinstance(layer, torch.nn.Linear):
        layer.__class__ = KeptLinear if kept else PatchedLinear
    elif not kept and not isinstance(layer, PatchedConv1D):
        theirs: Any = type(layer)
        layer.__class__ = _patched_conv1d(theirs)
    elif kept and isinstance(layer, PatchedConv1D):
        layer.__class__ = type(layer).__bases__[1]
    # torch.fx traces into a layer unless its module is one of torch.nn
    own = {"on_lines": False, "when": when, "kept": kept, "reproducible": reproducible}
    layer.__dict__.update(own, __module__="torch.nn.modules.linear")


def _is_conv1d(layer: Module) -> bool:
    """Whether it is transformers' Conv1D, by name and structure: transformers need not be installed."""
    weight, bias = getattr(layer, "weight", None), getattr(layer, "bias", None)
    if type(layer).__name__ != "Conv1D" or not isinstance(weight, Tensor) or not isinstance(bias, Tensor):
        return False
    return weight.dim() == 2 and tuple(bias.shape) == (getattr(layer, "nf", None),) == tuple(weight.shape[1:])


def _why_not(layer: Module) -> str:
    if isinstance(layer, torch.nn.Linear):
        return f"{type(layer).__name__} is a class of its own, whose forward may be another"
    return "a table of rows, no product" if isinstance(layer, torch.nn.Embedding) else "no linear layer"


def unpatch(model: Model) -> Model:
    """A model as it was before `patch`; layers that were made as `tw.torch.Linear` stay."""
    _check(model)
    for layer in model.modules():
        if type(layer) in (PatchedLinear, KeptLinear):
            layer.__class__ = torch.nn.Linear
        elif isinstance(layer, PatchedConv1D):
            layer.__class__ = type(layer).__bases__[1]
        elif "kept" not in layer.__dict__:
            continue
        for name in _OWN:
            layer.__dict__.pop(name, None)
    return model


def _check(model: Module) -> None:
    if not isinstance(model, Module):
        raise UsageError(f"patch takes a torch.nn.Module, got {type(model).__name__}: pass the model itself")
