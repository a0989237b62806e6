"""`with accelerate():` a program's own products go through tilewise where a plan says that it wins.

It stands where torch dispatches operators: mm, addmm, bmm and baddbmm, to which linear, matmul, einsum and their
backward passes come down. What is not routed runs as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tilewise import api
from tilewise.errors import TilewiseError, UsageError
from tilewise.interop.torch.vendor import vendor_seconds
from tilewise.quantities import seconds

aten = torch.ops.aten

MARGIN = 1.1  # both sides are models, so a win must be clear
WHEN = ("plan", "always", "never")


@dataclass
class Choice:
    """What happens to the products of one shape, dtype and layout, and how often it did."""

    operator: str
    shape: str
    dtype: str
    ours: float  # seconds, by the plan
    theirs: float  # seconds, by the model of torch's own
    routed: bool
    calls: int = 0

    @property
    def saved(self) -> float:
        """Seconds that are expected to be gained in all its calls."""
        return (self.theirs - self.ours) * self.calls if self.routed else 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "shape": self.shape,
            "dtype": self.dtype,
            "routed": self.routed,
            "calls": self.calls,
            "predicted_seconds": self.ours,
            "vendor_seconds": self.theirs,
        }


class Acceleration(TorchDispatchMode):
    """The mode itself, and afterwards the account of what it did: print it."""

    def __init__(self, when: str = "plan") -> None:
        super().__init__()
        if when not in WHEN:
            raise UsageError(f"when={when!r} is not known; known are {', '.join(WHEN)}")
        self.when = when
        self._choices: dict[tuple[Any, ...], Choice] = {}

    @property
    def choices(self) -> list[Choice]:
        """Every kind of product that was met, the ones with the largest gain first."""
        return sorted(self._choices.values(), key=lambda c: -c.saved)

    @property
    def routed(self) -> int:
        """Calls that tilewise took."""
        return sum(c.calls for c in self._choices.values() if c.routed)

    @property
    def left(self) -> int:
        """Products that torch kept."""
        return sum(c.calls for c in self._choices.values() if not c.routed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        work = ROUTES.get(func)
        if work is None:
            return func(*args, **kwargs)
        M, N = args[-2:]
        choice = self._choice(func, M, N, args, kwargs)
        choice.calls += 1
        return work(*args) if choice.routed else func(*args, **kwargs)

    def _choice(self, func: Any, M: Tensor, N: Tensor, args: Any, kwargs: Any) -> Choice:
        edge = (M.data_ptr() | N.data_ptr()) & 15 if M.is_cuda else 0
        key = (func, M.shape, N.shape, M.stride(), N.stride(), M.dtype, M.device, edge, bool(kwargs), args[0].dtype)
        known = self._choices.get(key)
        if known is None:
            known = self._choices[key] = self._decide(func, M, N, args, kwargs)
        return known

    def _decide(self, func: Any, M: Tensor, N: Tensor, args: Any, kwargs: Any) -> Choice:
        name = str(func.overloadpacket).removeprefix("aten.")
        *stack, rows, inner = M.shape
        shape = "x".join(map(str, (rows, inner, N.shape[-1])))
        shape = "x".join(map(str, stack)) + "·" + shape if stack else shape
        dtype = str(M.dtype).removeprefix("torch.")
        try:
            plan = api.plan(M.detach(), N.detach())
        except TilewiseError:
            return Choice(name, shape, dtype, 0.0, 0.0, routed=False)
        extra = 0.0
        if len(args) > 2:  # our sum with the bias is a pass of its own
            p = plan.problem
            extra = 2 * p.members * p.m * p.n * p.result.itemsize / plan.machine.bandwidth
        ours, theirs = plan.predicted + extra, vendor_seconds(plan.problem, plan.machine)
        wins = ours * MARGIN < theirs
        scaled = bool(kwargs)  # alpha and beta other than 1 stay with torch
        same = all(x.dtype == M.dtype for x in args)
        routed = same and not scaled and (self.when == "always" or (self.when == "plan" and wins))
        return Choice(name, shape, dtype, ours, theirs, routed)

    def to_json(self) -> dict[str, Any]:
        return {"routed": self.routed, "left": self.left, "choices": [c.to_json() for c in self.choices]}

    def __str__(self) -> str:
        lines = [f"{self.routed} products through tilewise, {self.left} left to torch"]
        for row in self._table():
            lines.append("  ".join(cell.rjust(w) for cell, w in zip(row, (5, 8, 22, 8, 9, 9, 9), strict=True)))
        return "\n".join(lines)

    def _table(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("calls", "operator", "m x k x n", "dtype", "tilewise", "torch", "gain")]
        for c in self.choices:
            ours, theirs = (seconds(x) if x else "–" for x in (c.ours, c.theirs))
            known = f"{c.theirs / c.ours:.2f}×" if c.theirs else "asked for"
            rows.append((str(c.calls), c.operator, c.shape, c.dtype, ours, theirs, known if c.routed else "left"))
        return rows

    def _repr_html_(self) -> str:
        head, *body = ("".join(f"<td>{cell}</td>" for cell in row) for row in self._table())
        rows = "".join(f"<tr>{row}</tr>" for row in body)
        return (
            f"<p>{self.routed} products through tilewise, {self.left} left to torch (expected times)</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )


def accelerate(when: str = "plan") -> Acceleration:
    """Route mm, addmm and bmm (and linear, matmul, einsum, and their backward passes) of the block through tilewise.

    when: "plan" routes where the plan's expected time is clearly below that of torch's own kernels; "always" routes all
    that tilewise takes; "never" only counts.

    >>> import torch
    >>> with tw.torch.accelerate("always") as done:
    ...     P = torch.randn(4, 5) @ torch.randn(5, 6)
    >>> done.routed, done.left
    (1, 0)
    """
    return Acceleration(when)


def _with_sum(bias: Tensor, M: Tensor, N: Tensor) -> Tensor:
    made: Tensor = api.matmul(M, N)
    return made.add_(bias)


ROUTES: dict[Any, Callable[..., Any]] = {
    aten.mm.default: lambda M, N: api.matmul(M, N),
    aten.bmm.default: lambda M, N: api.matmul(M, N),
    aten.addmm.default: _with_sum,
    aten.baddbmm.default: _with_sum,
}
