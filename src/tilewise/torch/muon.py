"""`Muon`: momentum, and the direction of each matrix by Newton–Schulz iterations of all matrices together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from tilewise.errors import ShapeError, UsageError
from tilewise.torch.newton_schulz import QUINTIC, Coefficients, checked_schedule, newton_schulz

ADJUSTMENTS = ("original", "match_rms_adamw")


class Muon(torch.optim.Optimizer):
    """`torch.optim.Muon` whose matrices are iterated together, by `tw.torch.newton_schulz`; for parameters of two
    dimensions. Its arguments, update rule and state are torch's, so a state_dict travels either way.

    ns_coefficients: (a, b, c), or one such triple for each of `ns_steps` steps.
    adjust_lr_fn: "original" (the default) or "match_rms_adamw".
    dtype: of the iterations; torch's are in bfloat16.

    >>> import torch
    >>> weight = torch.nn.Parameter(torch.eye(3))
    >>> optimizer = tw.torch.Muon([weight], lr=0.1, weight_decay=0.0)
    >>> weight.sum().backward(); optimizer.step()
    >>> bool((weight.diagonal() < 1).all())
    True
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: Coefficients = QUINTIC,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
        *,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        for name, value in (("lr", lr), ("weight_decay", weight_decay), ("momentum", momentum)):
            if not value >= 0:
                raise UsageError(f"{name}={value!r} must be 0 or more")
        if adjust_lr_fn is not None and adjust_lr_fn not in ADJUSTMENTS:
            raise UsageError(f"adjust_lr_fn={adjust_lr_fn!r} is not known; known are {', '.join(ADJUSTMENTS)}")
        checked_schedule(ns_steps, ns_coefficients)
        super().__init__(
            params,
            {
                "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
                "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
            },
        )  # fmt: skip
        self._dtype = dtype
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ShapeError(f"a parameter is {tuple(p.shape)}: Muon is for matrices, use another for the rest")

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._update([p for p in group["params"] if p.grad is not None], group)
        return loss

    def _update(self, params: Sequence[Tensor], group: dict[str, Any]) -> None:
        if not params:
            return
        for p in params:
            if "momentum_buffer" not in self.state[p]:
                self.state[p]["momentum_buffer"] = torch.zeros_like(p.grad, memory_format=torch.preserve_format)
        buffers, grads = [self.state[p]["momentum_buffer"] for p in params], [p.grad for p in params]
        torch._foreach_lerp_(buffers, grads, 1 - group["momentum"])
        update = torch._foreach_lerp(grads, buffers, group["momentum"]) if group["nesterov"] else buffers
        steps = newton_schulz(update, group["ns_steps"], group["ns_coefficients"], eps=group["eps"], dtype=self._dtype)
        lr = float(group["lr"])
        torch._foreach_mul_(params, 1 - lr * group["weight_decay"])
        for p, step in zip(params, steps, strict=True):
            p.add_(step, alpha=-lr * adjusted(group["adjust_lr_fn"], p.shape))


def adjusted(how: str | None, shape: Sequence[int]) -> float:
    """The factor of the learning rate for a matrix of this shape, as `torch.optim.Muon` has it."""
    rows, cols = shape
    if how == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, cols))
    return math.sqrt(max(1, rows / cols)) if cols else 1.0
