"""An `autograd.Function` inside torch.func: one level of vmap, grad or jvp, then the function again below it.

`Function.apply` does the same, but inspects the signature of `forward`, makes a class and flattens trees of arguments
at every call of every level: ten times as long as the product of small matrices.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import (
    TransformType,
    _add_batch_dim,
    _unwrap_batched,
    _unwrap_for_grad,
    _wrap_for_grad,
    unwrap_if_dead,
)
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter
from torch._functorch.utils import enable_single_level_autograd_function, unwrap_dead_wrappers
from torch.autograd import forward_ad
from torch.autograd.forward_ad import _set_fwd_grad_enabled
from torch.autograd.function import _SingleLevelFunction


def apply(kind: Any, *args: Any) -> Any:
    """`kind.apply` of tensors and plain values, for a `kind` whose results are never its operands."""
    if not torch._C._are_functorch_transforms_active():
        args = unwrap_dead_wrappers(args)
        if not _recorded(args):
            return kind.forward(*args)
        return super(torch.autograd.Function, kind).apply(*args)
    level = retrieve_current_functorch_interpreter()
    args = tuple(unwrap_if_dead(x) if isinstance(x, Tensor) else x for x in args)
    if level.key() == TransformType.Vmap:
        return _batched(kind, level, args)
    if level.key() in (TransformType.Grad, TransformType.Jvp):
        args = tuple(level._cptr.lift(x) if isinstance(x, Tensor) else x for x in args)
        with enable_single_level_autograd_function():
            return _single_level(kind).apply(*args, level)
    return kind.apply(*args)  # functionalize, which torch refuses with its own words


def _recorded(args: tuple[Any, ...]) -> bool:
    """Whether torch computes a derivative of a function of these, outside torch.func."""
    if forward_ad._current_level >= 0:
        return True
    return torch.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in args)


def _batched(kind: Any, level: Any, args: tuple[Any, ...]) -> Any:
    """The function's own rule for vmap, at the level below."""
    number = level.level()
    below = tuple(_unwrap_batched(x, number) if isinstance(x, Tensor) else (x, None) for x in args)
    axes = tuple(axis for _, axis in below)
    with level.lower():
        if all(axis is None for axis in axes):
            return apply(kind, *args)
        made, made_axes = kind.vmap(None, axes, *(x for x, _ in below))
    if isinstance(made, tuple):
        return tuple(_add_batch_dim(x, axis, number) for x, axis in zip(made, made_axes, strict=True))
    return _add_batch_dim(made, made_axes, number)


@lru_cache(maxsize=64)
def _single_level(kind: Any) -> Any:
    """`kind` with derivatives at one level, which is the last argument."""

    class SingleLevel(_SingleLevelFunction):
        @staticmethod
        def forward(*args: Any) -> Any:
            *operands, level = args
            number = level.level()
            below = (_unwrap_for_grad(x, number) if isinstance(x, Tensor) else x for x in operands)
            with torch.enable_grad(), _set_fwd_grad_enabled(True), level.lower():
                made = apply(kind, *below)
            if isinstance(made, tuple):
                return tuple(_wrap_for_grad(x, number) for x in made)
            return _wrap_for_grad(made, number)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            kind.setup_context(ctx, inputs[:-1], output)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return (*kind.backward(ctx, *gradients), None)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            return kind.jvp(ctx, *tangents[:-1])

    SingleLevel.__name__ = SingleLevel.__qualname__ = kind.__name__
    return SingleLevel
