"""`with accelerate():` a program's own products go through tilewise where a plan is faster.

While a block is open, our functions replace torch's linear, matmul, mm, addmm, bmm, baddbmm, einsum and cross_entropy;
other functions have no overhead. Gradients of our products are chosen in the same way. Threads without an open block
call torch's functions. The pass of `compiled.py` processes all products of functions that torch.compile compiles inside
the block; functions compiled before are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tilewise.torch.choice import Account
from tilewise.torch.compiled import ACTIVE, install_passes, when_in_trace
from tilewise.torch.preload import preload
from tilewise.torch.replacements import OPEN, REPLACED
from tilewise.torch.routed import PLAIN, choose_linear, is_compiling, routed_matmul, torch_keeps
from tilewise.torch.routed_einsum import routed_einsum
from tilewise.torch.routed_loss import count_loss, routed_loss


class Acceleration(Account):
    """The block, and afterwards a printable account of its choices."""

    def __enter__(self) -> Acceleration:
        install_passes()
        with REPLACED:
            if not ACTIVE:
                REPLACED.install(REPLACEMENTS)
            ACTIVE.append(self)
        OPEN.blocks.append(self)
        return self

    def __exit__(self, *raised: Any) -> None:
        OPEN.blocks.remove(self)
        with REPLACED:
            ACTIVE.remove(self)
            if not ACTIVE:
                REPLACED.restore()


def accelerate(when: str = "plan") -> Acceleration:
    """Route linear, matmul, mm, addmm, bmm and einsum (and their gradients) of the block through tilewise, and
    cross_entropy of many logits.

    when: "plan" routes where the plan's expected time is clearly below that of torch's own kernels; "always" routes all
    that tilewise takes; "never" only counts.

    >>> import torch
    >>> with tw.torch.accelerate("always") as done:
    ...     P = torch.randn(4, 5) @ torch.randn(5, 6)
    >>> done.routed, done.left
    (1, 0)
    """
    preload()
    return Acceleration(when)


def _plain(args: Any) -> bool:
    """Whether there are at least two tensors, and all are dense Tensors or Parameters, not of a subclass."""
    tensors = [x for x in args if isinstance(x, Tensor)]
    return len(tensors) >= 2 and all(x.__class__ in PLAIN and x.layout is torch.strided for x in tensors)


def _matmul(account: Account, M: Tensor, N: Tensor, **other: Any) -> Any:
    return None if other else routed_matmul(account, M, N, "mm" if M.dim() == 2 or N.dim() == 2 else "bmm")


def _with_sum(account: Account, bias: Tensor, M: Tensor, N: Tensor, **other: Any) -> Any:
    if "out" in other:  # as compiled code calls torch's addmm
        return None
    if other:
        account.count_left("addmm" if M.dim() == 2 else "baddbmm", M, N, "alpha or beta was given")
        return None
    if bias.dtype != M.dtype:
        return None
    return routed_matmul(account, M, N, "addmm" if M.dim() == 2 else "baddbmm", bias)


def _einsum(account: Account, equation: Any, *operands: Any) -> Any:
    return routed_einsum(account, equation, operands)


def _replacement(theirs: Any, route: Callable[..., Any]) -> Callable[..., Any]:
    """The function that replaces one of torch's."""

    @wraps(theirs)
    def product(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            when_in_trace()
            return theirs(*args, **kwargs)
        blocks = OPEN.blocks
        if OPEN.inside or not blocks or not _plain(args):
            return theirs(*args, **kwargs)
        OPEN.inside = True
        try:
            made = route(blocks[-1], *args, **kwargs)
        finally:
            OPEN.inside = False
        return theirs(*args, **kwargs) if made is None else made

    return product


def _linear_replacement(theirs: Any) -> Callable[..., Any]:
    """The replacement of linear, which first looks up the layers that torch keeps: most are."""
    product = _replacement(theirs, choose_linear)

    @wraps(theirs)
    def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
        if is_compiling():
            when_in_trace()
            return theirs(input, weight, bias)
        if input.__class__ in PLAIN and weight.__class__ in PLAIN:
            blocks = OPEN.blocks
            if blocks and torch_keeps(blocks[-1], input, weight):
                return theirs(input, weight, bias)
        return product(input, weight, bias)

    return linear


def _loss_replacement(theirs: Any) -> Callable[..., Any]:
    """The replacement of cross_entropy."""

    @wraps(theirs)
    def cross_entropy(input: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> Any:
        compiled = is_compiling()
        when = when_in_trace() if compiled else OPEN.blocks[-1].when if OPEN.blocks and not OPEN.inside else "never"
        takes = compiled or not (torch._C._are_functorch_transforms_active() or torch.jit.is_tracing())
        made = None
        if takes and (compiled or (input.__class__ in PLAIN and target.__class__ in PLAIN)):
            made = routed_loss(when, input, target, *args, **kwargs)
        if made is None:
            return theirs(input, target, *args, **kwargs)
        if not compiled:
            count_loss(OPEN.blocks[-1], input, False)
        return made

    return cross_entropy


def _compile(*args: Any, **kwargs: Any) -> Any:
    """torch.compile inside a block: our pass is installed first."""
    import torch._dynamo.trace_rules  # noqa: F401

    with REPLACED:  # its tables of torch's functions must not contain ours
        REPLACED.restore()
        REPLACED.install(REPLACEMENTS)
    install_passes()
    return theirs_compile(*args, **kwargs)


theirs_compile = torch.compile
# Replacing an attribute of Tensor invalidates Python's type caches, so there are few. Tensor.__rmatmul__ calls
# torch.matmul
ROUTES: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    *((torch, name, _matmul) for name in ("mm", "bmm", "matmul")),
    *((Tensor, name, _matmul) for name in ("mm", "bmm", "matmul", "__matmul__")),
    *((owner, name, _with_sum) for owner in (torch, Tensor) for name in ("addmm", "baddbmm")),
    (torch, "einsum", _einsum),
)
REPLACEMENTS: tuple[tuple[Any, str, Any], ...] = (
    *((owner, name, _replacement(getattr(owner, name), route)) for owner, name, route in ROUTES),
    (functional, "linear", _linear_replacement(functional.linear)),
    (functional, "cross_entropy", _loss_replacement(functional.cross_entropy)),
    (torch, "compile", _compile),
)
