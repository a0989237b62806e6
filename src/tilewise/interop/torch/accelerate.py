"""`with accelerate():` a program's own products go through tilewise where a plan says that it wins.

While such a block is open, other functions stand in the places where Python looks up torch's linear, matmul, mm, addmm,
bmm, baddbmm and einsum, so everything else costs what it did; the gradients of what was taken come with it. Threads
that opened no block get torch's own. Functions that torch.compile compiles inside the block have all their products
looked at, by the pass of `compiled.py`; what was compiled before and looks none of these up anew stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tilewise.interop.torch.ahead import get_ready
from tilewise.interop.torch.choice import Account
from tilewise.interop.torch.compiled import ACTIVE, arrange, arranged, hang_in_inductor
from tilewise.interop.torch.constants import constant_in_traces
from tilewise.interop.torch.places import OPEN, PLACES
from tilewise.interop.torch.routed import decided_linear, is_compiling, routed_matmul, stays
from tilewise.interop.torch.routed_einsum import routed_einsum
from tilewise.interop.torch.routed_loss import count_loss, routed_loss

PLAIN = (Tensor, torch.nn.Parameter)


class Acceleration(Account):
    """The block itself, and afterwards the account of what it did: print it."""

    def __enter__(self) -> Acceleration:
        hang_in_inductor()
        with PLACES:
            if not ACTIVE:
                PLACES.take(STANDING)
            ACTIVE.append(self)
        OPEN.blocks.append(self)
        return self

    def __exit__(self, *raised: Any) -> None:
        OPEN.blocks.remove(self)
        with PLACES:
            ACTIVE.remove(self)
            if not ACTIVE:
                PLACES.give_back()


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
    get_ready()
    return Acceleration(when)


def _plain(args: Any) -> bool:
    """Whether all the tensors given are torch's own, and at least two are matrices."""
    tensors = [x for x in args if isinstance(x, Tensor)]
    return len(tensors) >= 2 and all(x.__class__ in PLAIN and x.layout is torch.strided for x in tensors)


def _linear(account: Account, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    return decided_linear(account, input, weight, bias)


def _matmul(account: Account, M: Tensor, N: Tensor, **other: Any) -> Any:
    return None if other else routed_matmul(account, M, N, "mm" if M.dim() == 2 or N.dim() == 2 else "bmm")


def _with_sum(account: Account, bias: Tensor, M: Tensor, N: Tensor, **other: Any) -> Any:
    if "out" in other:  # as compiled code calls torch's own
        return None
    if other:
        account.leave("addmm" if M.dim() == 2 else "baddbmm", M, N, "alpha or beta was given")
        return None
    if bias.dtype != M.dtype:
        return None
    return routed_matmul(account, M, N, "addmm" if M.dim() == 2 else "baddbmm", bias)


def _einsum(account: Account, equation: Any, *operands: Any) -> Any:
    return routed_einsum(account, equation, operands)


def _standing_for(theirs: Any, route: Callable[..., Any]) -> Callable[..., Any]:
    """What is called in the place of a function of torch's."""

    @wraps(theirs)
    def product(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            arranged()
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


def _standing_for_linear(theirs: Any) -> Callable[..., Any]:
    """The same for layers, most of which stay with torch in most models: those are known before all else is asked."""
    product = _standing_for(theirs, _linear)

    @wraps(theirs)
    def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
        if is_compiling():
            arranged()
            return theirs(input, weight, bias)
        if input.__class__ in PLAIN and weight.__class__ in PLAIN:
            blocks = OPEN.blocks
            if blocks and stays(blocks[-1], input, weight):
                return theirs(input, weight, bias)
        return product(input, weight, bias)

    return linear


def _standing_for_loss(theirs: Any) -> Callable[..., Any]:
    """The same for cross_entropy."""

    @wraps(theirs)
    def cross_entropy(input: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> Any:
        compiled = is_compiling()
        when = told() if compiled else OPEN.blocks[-1].when if OPEN.blocks and not OPEN.inside else "never"
        followed = compiled or not (torch._C._are_functorch_transforms_active() or torch.jit.is_tracing())
        made = None
        if followed and (compiled or (input.__class__ in PLAIN and target.__class__ in PLAIN)):
            made = routed_loss(when, input, target, *args, **kwargs)
        if made is None:
            return theirs(input, target, *args, **kwargs)
        if not compiled:
            count_loss(OPEN.blocks[-1], input, False)
        return made

    return cross_entropy


@constant_in_traces
def told() -> str:
    """What the innermost open block was told, while a function in it is traced; the passes are in their places."""
    import torch._inductor  # noqa: F401

    arrange()
    return ACTIVE[-1].when if ACTIVE else "never"


def _compile(*args: Any, **kwargs: Any) -> Any:
    """torch.compile inside a block: what it compiles is looked at by our pass."""
    import torch._dynamo.trace_rules  # noqa: F401

    with PLACES:  # what it knows of torch's functions must not be made of ours
        PLACES.give_back()
        PLACES.take(STANDING)
    hang_in_inductor()
    return theirs_compile(*args, **kwargs)


theirs_compile = torch.compile
# each attribute of Tensor costs every block: Python forgets what it knew of the class, and of all that inherit from it;
# Tensor.__rmatmul__ looks torch.matmul up
ROUTES: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    *((torch, name, _matmul) for name in ("mm", "bmm", "matmul")),
    *((Tensor, name, _matmul) for name in ("mm", "bmm", "matmul", "__matmul__")),
    *((owner, name, _with_sum) for owner in (torch, Tensor) for name in ("addmm", "baddbmm")),
    (torch, "einsum", _einsum),
)
STANDING: tuple[tuple[Any, str, Any], ...] = (
    *((owner, name, _standing_for(getattr(owner, name), route)) for owner, name, route in ROUTES),
    (functional, "linear", _standing_for_linear(functional.linear)),
    (functional, "cross_entropy", _standing_for_loss(functional.cross_entropy)),
    (torch, "compile", _compile),
)
