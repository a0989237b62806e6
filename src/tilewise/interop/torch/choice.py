"""Ours or torch's: which kernel a product of tensors takes, decided once for each way they can lie, and accounted for.

A plan gives our expected time, `vendor.py` torch's. Both are models, so a win must be clear; where nothing is known of
torch's kernels, torch keeps the product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.dtypes import DTYPES
from tilewise.core.problem import Layout, Problem, row_major
from tilewise.dispatch.execute import machine_of
from tilewise.errors import TilewiseError, UsageError
from tilewise.interop.torch.lines import best_laid
from tilewise.interop.torch.vendor import keeps_layers, on_sixteen_bytes, padded_seconds, vendor_seconds
from tilewise.planning.choose import make_plan
from tilewise.system.quantities import seconds

MARGIN = 1.1  # both sides are models, so a win must be clear
COMPILED_MARGIN = 0.8  # Inductor pads by a benchmark of its own, which left half of an all-odd GPT-2 unpadded
HOST_SECONDS = 12e-6  # that ours keeps an eager program longer than torch's: where rows are few, it waits for the host
LIMIT = 16384  # kinds of products that are kept in mind
WHEN = ("plan", "always", "never")
AT_THEIR_BEST = "torch's kernels are at their best on 16 bytes"


class Surroundings(NamedTuple):
    """Of a product in a graph that is compiled."""

    open: bool  # whether it may still be said how its matrices lie: all sizes are numbers
    made_here: tuple[bool, bool]  # whether M and N are made in the graph
    room_for_p: bool  # whether P stays in it


@dataclass
class Choice:
    """What happens to the products of one shape, dtype and layout, and how often it did."""

    operator: str
    shape: str
    dtype: str
    ours: float  # seconds, by the plan
    theirs: float  # seconds, by the model of torch's own
    routed: bool
    why: str
    calls: int = 0
    plan: Callable[[], float] | None = None  # where it was chosen without one: `ours`, for who asks

    @property
    def saved(self) -> float:
        """Seconds that are expected to be gained in all its calls."""
        return (self.theirs - self.ours) * self.calls if self.routed and self.theirs else 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "shape": self.shape,
            "dtype": self.dtype,
            "routed": self.routed,
            "why": self.why,
            "calls": self.calls,
            "predicted_seconds": self.ours,
            "vendor_seconds": self.theirs,
        }


class Left:
    """Layers of one kind, whose products all stay with torch: a call is one look-up and one more of `calls`."""

    __slots__ = ("calls", "choices")

    def __init__(self, choices: list[Choice]) -> None:
        self.choices, self.calls = choices, 0


class Account:
    """The choices that were made: print it."""

    def __init__(self, when: str = "plan") -> None:
        if when not in WHEN:
            raise UsageError(f"when={when!r} is not known; known are {', '.join(WHEN)}")
        self.when = when
        self._choices: dict[tuple[Any, ...], Choice] = {}
        self.met: dict[tuple[Any, ...], Any] = {}  # signature: what was chosen for it
        self.kinds_left: dict[tuple[Any, ...], Left] = {}
        self.layers_left: dict[tuple[Any, ...], Left] = {}  # weight's shape and dtype: whatever the input

    @property
    def choices(self) -> list[Choice]:
        """Every kind of product that was met, the ones with the largest gain first."""
        met = [c for c in self._counted() if c.calls]
        for choice in met:
            if choice.plan is not None:
                choice.ours, choice.plan = choice.plan(), None
        return sorted(met, key=lambda c: -c.saved)

    def _counted(self) -> list[Choice]:
        """All choices, with the calls of layers that went straight to torch."""
        for left in (*self.kinds_left.values(), *self.layers_left.values()):
            calls, left.calls = left.calls, 0
            for choice in left.choices:
                choice.calls += calls
        return list(self._choices.values())

    @property
    def routed(self) -> int:
        """Products that tilewise took; in a compiled function each counts once, when it is compiled."""
        return sum(c.calls for c in self._counted() if c.routed)

    @property
    def left(self) -> int:
        """Products that torch kept."""
        return sum(c.calls for c in self._counted() if not c.routed)

    def choice(
        self, operator: str, M: Tensor, N: Tensor, bias: bool = False, within: Surroundings | None = None
    ) -> Choice:
        """What becomes of this product, by how its operands lie. Fake tensors and symbolic sizes will do."""
        shapes = tuple(tuple(_number(x) for x in t) for t in (M.shape, N.shape, M.stride(), N.stride()))
        return self.choice_of(operator, shapes, (M.dtype, N.dtype), str(M.device), _skews(M, N), bias, within)

    def choice_of(
        self,
        operator: str,
        lie: Any,
        dtypes: Any,
        device: str,
        skews: tuple[int, int] = (0, 0),
        bias: bool = False,
        within: Surroundings | None = None,
    ) -> Choice:
        """The same of shapes and strides: `lie` is the shape of M, that of N, the strides of M and those of N."""
        key = (operator, lie, dtypes, device, skews, bias, within)
        known = self._choices.get(key)
        if known is None:
            self._make_room()
            known = self._choices[key] = self._decide(operator, lie, dtypes, device, skews, bias, within)
        return known

    def _make_room(self) -> None:
        """A program of ever new shapes: what was met first is forgotten."""
        if len(self._choices) >= LIMIT:
            self._counted()
            for old in list(self._choices)[: LIMIT // 4]:
                del self._choices[old]
            self.met.clear()
            self.kinds_left.clear()
            self.layers_left.clear()

    def keep_left(self, kind: tuple[Any, ...], choices: list[Choice]) -> None:
        """Layers of this kind go straight to torch from now on."""
        if len(self.kinds_left) >= LIMIT:
            self._counted()
            self.kinds_left.clear()
        self.kinds_left[kind] = Left(choices)

    def keeps_layer(self, weight: Tensor) -> bool:
        """Whether torch keeps a layer however many rows come; it is then known by its weight from now on, and each call
        counts as one product, m x k x n with an m of its own."""
        n, k = weight.shape
        if self.when != "plan" or not keeps_layers(k, n) or weight.element_size() != 2:
            return False
        self.kept_layer(weight.shape, weight.dtype)
        return True

    def kept_layer(self, shape: tuple[int, ...], dtype: torch.dtype) -> Left:
        """What is known of layers whose weights are of such a shape, which torch keeps."""
        left = self.layers_left.get((shape, dtype))
        if left is None:
            self._make_room()
            name = str(dtype).removeprefix("torch.")
            choice = Choice("linear", f"mx{shape[1]}x{shape[0]}", name, 0.0, 0.0, False, AT_THEIR_BEST)
            choice = self._choices.setdefault(("linear", shape, dtype), choice)
            left = self.layers_left[shape, dtype] = Left([choice])
        return left

    def leave(self, operator: str, M: Tensor, N: Tensor, why: str) -> None:
        """Count a product that cannot be taken."""

        def made() -> Choice:
            shape, dtype = f"{'x'.join(map(str, M.shape))}x{N.shape[-1]}", str(M.dtype).removeprefix("torch.")
            return Choice(operator, shape, dtype, 0.0, 0.0, False, why)

        self.count((operator, M.shape, N.shape, M.dtype, why), made)

    def count(self, key: tuple[Any, ...], make: Callable[[], Choice]) -> None:
        """One more call of what is known by `key`, or is made now."""
        known = self._choices.get(key)
        if known is None:
            self._make_room()
            known = self._choices[key] = make()
        known.calls += 1

    def _decide(
        self, operator: str, lie: Any, dtypes: Any, device: str, skews: Any, bias: bool, within: Surroundings | None
    ) -> Choice:
        *stack, m, k = lie[0]
        shape = ("x".join(map(str, stack)) + "·" if stack else "") + f"{m}x{k}x{lie[1][-1]}"
        dtype = str(dtypes[0]).removeprefix("torch.")
        name = f"{operator}, compiled" if within else operator
        if dtypes[0] != dtypes[1]:
            return Choice(name, shape, dtype, 0.0, 0.0, False, "M and N are of two dtypes")
        problem = problem_of(lie, dtype, skews)
        if problem is None:
            return Choice(name, shape, dtype, 0.0, 0.0, False, f"{dtype} has no kernel here")
        try:
            theirs = their_seconds(problem, device, within)
            why = "" if self.when != "plan" else _kept(problem, theirs)
            if why:  # a server meets an m of its own with each prompt: no plan is waited for
                plan = partial(_ours, problem, device, bias, within)
                return Choice(name, shape, dtype, 0.0, theirs, False, why, plan=plan)
            ours, theirs = expected(problem, device, bias, within)
        except TilewiseError as refusal:
            return Choice(name, shape, dtype, 0.0, 0.0, False, str(refusal))
        if self.when == "always":
            return Choice(name, shape, dtype, ours, theirs, True, "when='always'")
        if self.when == "never":
            return Choice(name, shape, dtype, ours, theirs, False, "when='never'")
        wins = ours * MARGIN + HOST_SECONDS < theirs if within is None else ours * COMPILED_MARGIN < theirs
        return Choice(name, shape, dtype, ours, theirs, wins, f"{theirs / ours:.2f}× by the models")

    def to_json(self) -> dict[str, Any]:
        return {"routed": self.routed, "left": self.left, "choices": [c.to_json() for c in self.choices]}

    def __str__(self) -> str:
        saved = sum(c.saved for c in self.choices)
        head = f"{self.routed} products through tilewise, {self.left} left to torch"
        lines = [head + (f"; expected to save {seconds(saved)}" if saved else "")]
        table = self._table()
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        for row in table:
            cells = [cell.rjust(w) for cell, w in zip(row[:-1], widths, strict=False)]
            lines.append("  ".join((*cells, row[-1])))
        return "\n".join(lines)

    def _table(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("calls", "operator", "m x k x n", "dtype", "tilewise", "torch", "taken", "why")]
        for c in self.choices:
            ours, theirs = (seconds(x) if x else "–" for x in (c.ours, c.theirs))
            rows.append(
                (str(c.calls), c.operator, c.shape, c.dtype, ours, theirs, "yes" if c.routed else "left", c.why)
            )
        return rows

    def _repr_html_(self) -> str:
        head, *body = ("".join(f"<td>{cell}</td>" for cell in row) for row in self._table())
        rows = "".join(f"<tr>{row}</tr>" for row in body)
        return (
            f"<p>{self.routed} products through tilewise, {self.left} left to torch (expected times)</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )


ACCOUNTS = {when: Account(when) for when in WHEN}  # of layers, by what they were told


@lru_cache(maxsize=4096)
def expected(problem: Problem, device: str, bias: bool, within: Surroundings | None) -> tuple[float, float]:
    """Seconds that ours and torch's own are expected to take; within a graph torch's may pad first, and in eager a
    `bias` of a stack is a pass of its own."""
    machine, theirs = machine_of(device), their_seconds(problem, device, within)
    if within is not None and within.open:
        return best_laid(problem, machine, within.made_here, within.room_for_p).seconds, theirs
    plan, extra = make_plan(problem, machine), 0.0
    if bias and problem.stack and within is None:
        extra = 2 * problem.members * problem.m * problem.n * problem.result.itemsize / machine.bandwidth
    return plan.predicted + extra, theirs


def _kept(problem: Problem, theirs: float) -> str:
    """Why torch keeps a product whatever ours would take; empty where that is still to be seen."""
    if not theirs:
        return "nothing is known of torch's kernel here"
    return AT_THEIR_BEST if on_sixteen_bytes(problem) else ""


def _ours(problem: Problem, device: str, bias: bool, within: Surroundings | None) -> float:
    try:
        return expected(problem, device, bias, within)[0]
    except TilewiseError:
        return 0.0


def their_seconds(problem: Problem, device: str, within: Surroundings | None) -> float:
    """Those of torch's own alone; 0 where nothing is known of it."""
    machine = machine_of(device)
    theirs = vendor_seconds(problem, machine)
    return min(theirs, padded_seconds(problem, machine)) if theirs and within is not None else theirs


def problem_of(lie: Any, dtype: str, skews: tuple[int, int], P: Layout | None = None) -> Problem | None:
    """Matrices, or stacks of the same extents, as a Problem; P is fresh where nothing is said of it."""
    kind = DTYPES.get(dtype)
    if kind is None:
        return None
    m_shape, n_shape, m_strides, n_strides = lie
    stack = m_shape[:-2]
    left, right = (
        Layout(strides[-2], strides[-1], tuple(strides[:-2]), skew)
        for strides, skew in zip((m_strides, n_strides), skews, strict=True)
    )
    m, k, n = m_shape[-2], m_shape[-1], n_shape[-1]
    ring = SEMIRINGS["plus_times"]
    return Problem(m, k, n, tuple(stack), kind, kind, ring, left, right, P or row_major(m, n, tuple(stack)))


def _number(x: Any) -> int:
    """A size, or what a symbol stood for when it was traced: asking so adds no guard."""
    node = getattr(x, "node", None)
    return int(x) if node is None else int(node.hint if node.has_hint() else 8192)


def _skews(M: Tensor, N: Tensor) -> tuple[int, int]:
    if not M.is_cuda or isinstance(M, torch._subclasses.FakeTensor) or isinstance(N, torch._subclasses.FakeTensor):
        return 0, 0
    return M.data_ptr() & 15, N.data_ptr() & 15
