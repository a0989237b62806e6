"""An `autograd.Function` inside torch.func: one level of vmap, grad or jvp, then the function again below it.

`Function.apply` does the same, but inspects the signature of `forward`, makes a class and flattens trees of arguments
at every call of every level: ten times as long as the product of small matrices.
"""

from __future__ import annotations

from functools import lru_cache, partial
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

_unpack_dual = torch._VF._unpack_dual  # `forward_ad.unpack_dual` without its named tuple


def apply(kind: Any, *args: Any) -> Any:
    """`kind.apply` of tensors and plain values, for a `kind` whose results are never its operands."""
    if not torch._C._are_functorch_transforms_active():
        args = unwrap_dead_wrappers(args)
        if not _recorded(args):
            with _set_fwd_grad_enabled(False):  # as inside a Function
                return kind.forward(*args)
        return super(torch.autograd.Function, kind).apply(*args)
    level = retrieve_current_functorch_interpreter()
    args = tuple(unwrap_if_dead(x) if isinstance(x, Tensor) else x for x in args)
    if level.key() == TransformType.Vmap:
        return _batched(kind, level, args)
    if level.key() == TransformType.Jvp:
        return _dual(kind, level, tuple(level._cptr.lift(x) if isinstance(x, Tensor) else x for x in args))
    if level.key() == TransformType.Grad:
        args = tuple(level._cptr.lift(x) if isinstance(x, Tensor) else x for x in args)
        with enable_single_level_autograd_function():
            return _single_level(kind).apply(*args, level)
    return kind.apply(*args)  # functionalize, which torch refuses with its own message


def _recorded(args: tuple[Any, ...]) -> bool:
    """Whether torch computes a derivative of a function of these, outside torch.func."""
    tensors = [x for x in args if isinstance(x, Tensor)]
    level = forward_ad._current_level
    if level >= 0 and any(_unpack_dual(x, level=level)[1] is not None for x in tensors):
        return True
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


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


def _below(level: Any, compute: Any, args: tuple[Any, ...]) -> Any:
    """A function at the level below grad or jvp."""
    number = level.level()
    below = (_unwrap_for_grad(x, number) if isinstance(x, Tensor) else x for x in args)
    with torch.enable_grad(), _set_fwd_grad_enabled(True), level.lower():
        made = compute(*below)
    if isinstance(made, tuple):
        return tuple(_wrap_for_grad(x, number) if isinstance(x, Tensor) else x for x in made)
    return _wrap_for_grad(made, number)


def _dual(kind: Any, level: Any, args: tuple[Any, ...]) -> Any:
    """The function and its tangent, both at the level below: forward mode needs no node of a graph, which takes as long
    as the products."""
    current = forward_ad._current_level
    pairs = [_unpack_dual(x, level=current) if isinstance(x, Tensor) else (x, None) for x in args]
    primals, tangents = tuple(x for x, _ in pairs), tuple(t for _, t in pairs)
    if all(t is None for t in tangents):
        return _below(level, partial(apply, kind), primals)

    def both(*below: Any) -> tuple[Any, ...]:
        primals, tangents = below[: len(args)], below[len(args) :]
        made, ctx = apply(kind, *primals), Saved()
        kind.setup_context(ctx, primals, made)
        tangent = kind.jvp(ctx, *tangents)
        return (*made, *tangent) if isinstance(made, tuple) else (made, tangent)

    made = _below(level, both, (*primals, *tangents))
    half = len(made) // 2
    duals = (x if t is None else forward_ad.make_dual(x, t) for x, t in zip(made[:half], made[half:], strict=True))
    return next(duals) if half == 1 else tuple(duals)


class Saved:
    """The context of a function that is not a node of a graph."""

    def save_for_forward(self, *saved: Any) -> None:
        self.saved_tensors = saved

    def save_for_backward(self, *saved: Any) -> None:
        """There is no backward."""

    mark_non_differentiable = set_materialize_grads = save_for_backward


@lru_cache(maxsize=64)
def _single_level(kind: Any) -> Any:
    """`kind` with gradients at one level, which is the last argument."""

    class SingleLevel(_SingleLevelFunction):
        @staticmethod
        def forward(*args: Any) -> Any:
            *operands, level = args
            return _below(level, partial(apply, kind), tuple(operands))

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            kind.setup_context(ctx, inputs[:-1], output)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return (*kind.backward(ctx, *gradients), None)

    SingleLevel.__name__ = SingleLevel.__qualname__ = kind.__name__
    return SingleLevel
