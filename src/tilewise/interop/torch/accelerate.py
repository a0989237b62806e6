"""`with accelerate():` a program's own products go through tilewise where a plan says that it wins.

In eager torch it stands where Python calls torch: linear, matmul, mm, addmm, bmm, baddbmm and einsum, and so what
modules are made of; the gradients of what it took come with it. Other functions pay one look-up. Functions that
torch.compile compiles inside the block have all their products looked at, by the pass of `compiled.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from tilewise.interop.torch.choice import Account
from tilewise.interop.torch.compiled import ACTIVE, arranged
from tilewise.interop.torch.routed import routed_linear, routed_matmul
from tilewise.interop.torch.routed_einsum import routed_einsum

PLAIN = (Tensor, torch.nn.Parameter)


class Acceleration(Account, TorchFunctionMode):
    """The mode itself, and afterwards the account of what it did: print it."""

    def __init__(self, when: str = "plan") -> None:
        Account.__init__(self, when)
        TorchFunctionMode.__init__(self)

    def __enter__(self) -> Acceleration:
        ACTIVE.append(self)
        super().__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        ACTIVE.remove(self)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.compiler.is_compiling():
            arranged()
            return func(*args, **(kwargs or {}))
        route = ROUTES.get(func)
        if route is None:
            return func(*args, **(kwargs or {}))
        made = route(self, *args, **(kwargs or {})) if _plain(args) else None
        return func(*args, **(kwargs or {})) if made is None else made


def accelerate(when: str = "plan") -> Acceleration:
    """Route linear, matmul, mm, addmm, bmm and einsum (and their gradients) of the block through tilewise.

    when: "plan" routes where the plan's expected time is clearly below that of torch's own kernels; "always" routes all
    that tilewise takes; "never" only counts.

    >>> import torch
    >>> with tw.torch.accelerate("always") as done:
    ...     P = torch.randn(4, 5) @ torch.randn(5, 6)
    >>> done.routed, done.left
    (1, 0)
    """
    return Acceleration(when)


def _plain(args: Any) -> bool:
    """Whether all the tensors given are torch's own, and at least two are matrices."""
    tensors = [x for x in args if isinstance(x, Tensor)]
    return len(tensors) >= 2 and all(x.__class__ in PLAIN and x.layout is torch.strided for x in tensors)


def _linear(account: Account, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    return routed_linear(account, input, weight, bias)


def _matmul(account: Account, M: Tensor, N: Tensor, **other: Any) -> Any:
    return None if other else routed_matmul(account, M, N, "mm" if M.dim() == 2 or N.dim() == 2 else "bmm")


def _turned(account: Account, N: Tensor, M: Tensor) -> Any:
    return _matmul(account, M, N)


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


ROUTES: dict[Any, Callable[..., Any]] = {
    functional.linear: _linear,
    torch.mm: _matmul,
    torch.bmm: _matmul,
    torch.matmul: _matmul,
    Tensor.mm: _matmul,
    Tensor.bmm: _matmul,
    Tensor.matmul: _matmul,
    Tensor.__matmul__: _matmul,
    Tensor.__rmatmul__: _turned,
    torch.addmm: _with_sum,
    torch.baddbmm: _with_sum,
    Tensor.addmm: _with_sum,
    Tensor.baddbmm: _with_sum,
    torch.einsum: _einsum,
}
