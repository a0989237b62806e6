"""The choice between our kernels and torch's, made once for each combination of shapes and layouts.

The plan's expected time is compared with that of torch by `vendor.py`. Both are models, so ours must be lower by a
margin. If torch's time is unknown, torch computes the product.
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
from tilewise.arrays.torch_library import dtype_name
from tilewise.core.problem import Layout, Problem, row_major
from tilewise.dispatch.execute import machine_of
from tilewise.errors import TilewiseError, UsageError
from tilewise.planning.choose import make_plan
from tilewise.system.quantities import seconds
from tilewise.torch.row_alignment import best_arrangement
from tilewise.torch.vendor import keeps_layers, on_sixteen_bytes, padded_seconds, vendor_seconds

MARGIN = 1.1  # by which our expected time must be lower
COMPILED_MARGIN = 0.8  # below 1: Inductor's benchmark left half of the products of an odd GPT-2 unpadded
HOST_SECONDS = 12e-6  # host overhead beyond torch's
LIMIT = 16384  # cached choices
WHEN = ("plan", "always", "never")
AT_THEIR_BEST = "torch's kernels are at their best on 16 bytes"


class GraphContext(NamedTuple):
    """A product inside a compiled graph."""

    static: bool  # whether all sizes are constants, so that layouts may be chosen
    computed: tuple[bool, bool]  # whether the graph computes M and N
    pads_p: bool  # whether P is not an output, so that its rows may be padded


@dataclass
class ProductChoice:
    """The choice for products of one shape, dtype and layout, its reason, and the number of calls."""

    operator: str
    shape: str
    dtype: str
    ours: float  # seconds, by the plan
    theirs: float  # seconds, by the model of torch's own
    routed: bool
    why: str
    calls: int = 0
    plan: Callable[[], float] | None = None  # computes `ours` for printing, if the choice was made without a plan

    @property
    def saved(self) -> float:
        """Expected seconds saved by all its calls."""
        return (self.theirs - self.ours) * self.calls if self.routed and self.theirs else 0.0


class KeptByTorch:
    """Layers of a kind that torch computes: a call costs one look-up and one increment of `calls`."""

    __slots__ = ("calls", "choices")

    def __init__(self, choices: list[ProductChoice]) -> None:
        self.choices, self.calls = choices, 0


class Account:
    """The choices made so far, printable."""

    def __init__(self, when: str = "plan") -> None:
        if when not in WHEN:
            raise UsageError(f"when={when!r} is not known; known are {', '.join(WHEN)}")
        self.when = when
        self._choices: dict[tuple[Any, ...], ProductChoice] = {}
        self.cached: dict[tuple[Any, ...], Any] = {}  # choices by signature
        self.kinds_kept: dict[tuple[Any, ...], KeptByTorch] = {}
        self.layers_kept: dict[tuple[Any, ...], KeptByTorch] = {}  # by the weight's shape and dtype, whatever the input

    @property
    def choices(self) -> list[ProductChoice]:
        """Every kind of product so far, the largest gain first."""
        cached = [c for c in self._counted() if c.calls]
        for choice in cached:
            if choice.plan is not None:
                choice.ours, choice.plan = choice.plan(), None
        return sorted(cached, key=lambda c: -c.saved)

    def _counted(self) -> list[ProductChoice]:
        """All choices, with the calls of layers that torch kept."""
        for left in (*self.kinds_kept.values(), *self.layers_kept.values()):
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
        self, operator: str, M: Tensor, N: Tensor, bias: bool = False, within: GraphContext | None = None
    ) -> ProductChoice:
        """The choice for this product, by shapes and layouts. Tensors may be fake, sizes symbolic."""
        layout = tuple(tuple(_number(x) for x in t) for t in (M.shape, N.shape, M.stride(), N.stride()))
        offsets = (0, 0)
        if M.is_cuda and not any(isinstance(x, torch._subclasses.FakeTensor) for x in (M, N)):
            offsets = M.data_ptr() & 15, N.data_ptr() & 15
        return self.choice_of(operator, layout, (M.dtype, N.dtype), str(M.device), offsets, bias, within)

    def choice_of(
        self,
        operator: str,
        layout: Any,
        dtypes: Any,
        device: str,
        offsets: tuple[int, int] = (0, 0),
        bias: bool = False,
        within: GraphContext | None = None,
    ) -> ProductChoice:
        """`choice` by `layout`: the shapes of M and N, then their strides; `offsets`: bytes past a
        multiple of 16."""
        key = (operator, layout, dtypes, device, offsets, bias, within)
        known = self._choices.get(key)
        if known is None:
            self._make_room()
            known = self._choices[key] = self._decide(operator, layout, dtypes, device, offsets, bias, within)
        return known

    def _make_room(self) -> None:
        """Evict the oldest quarter: the shapes of a program may never repeat."""
        if len(self._choices) >= LIMIT:
            self._counted()
            for old in list(self._choices)[: LIMIT // 4]:
                del self._choices[old]
            self.cached.clear()
            self.kinds_kept.clear()
            self.layers_kept.clear()

    def keep_kind(self, kind: tuple[Any, ...], choices: list[ProductChoice]) -> None:
        """Record that torch computes layers of this kind."""
        if len(self.kinds_kept) >= LIMIT:
            self._counted()
            self.kinds_kept.clear()
        self.kinds_kept[kind] = KeptByTorch(choices)

    def keeps_layer(self, weight: Tensor) -> bool:
        """Whether torch computes a layer for any number of rows; if so it is recorded by its weight, and each call
        counts as one product m x k x n."""
        n, k = weight.shape
        if self.when != "plan" or not keeps_layers(k, n) or weight.element_size() != 2:
            return False
        self.kept_layer(weight.shape, weight.dtype)
        return True

    def kept_layer(self, shape: tuple[int, ...], dtype: torch.dtype) -> KeptByTorch:
        """The entry of layers with weights of this shape, which torch computes for any input."""
        left = self.layers_kept.get((shape, dtype))
        if left is None:
            self._make_room()
            name = dtype_name(dtype)
            choice = ProductChoice("linear", f"mx{shape[1]}x{shape[0]}", name, 0.0, 0.0, False, AT_THEIR_BEST)
            choice = self._choices.setdefault(("linear", shape, dtype), choice)
            left = self.layers_kept[shape, dtype] = KeptByTorch([choice])
        return left

    def count_left(self, operator: str, M: Tensor, N: Tensor, why: str) -> None:
        """Count a product that torch computes, with the reason."""

        def made() -> ProductChoice:
            shape, dtype = f"{'x'.join(map(str, M.shape))}x{N.shape[-1]}", dtype_name(M.dtype)
            return ProductChoice(operator, shape, dtype, 0.0, 0.0, False, why)

        self.count((operator, M.shape, N.shape, M.dtype, why), made)

    def count(self, key: tuple[Any, ...], make: Callable[[], ProductChoice]) -> None:
        """Count a call of the choice under `key`, which `make` makes on first use."""
        known = self._choices.get(key)
        if known is None:
            self._make_room()
            known = self._choices[key] = make()
        known.calls += 1

    def _decide(
        self,
        operator: str,
        layout: Any,
        dtypes: Any,
        device: str,
        offsets: Any,
        bias: bool,
        within: GraphContext | None,
    ) -> ProductChoice:
        *stack, m, k = layout[0]
        shape = ("x".join(map(str, stack)) + "·" if stack else "") + f"{m}x{k}x{layout[1][-1]}"
        dtype = dtype_name(dtypes[0])
        made = partial(ProductChoice, f"{operator}, compiled" if within else operator, shape, dtype)
        if dtypes[0] != dtypes[1]:
            return made(0.0, 0.0, False, "M and N are of two dtypes")
        problem = problem_of(layout, dtype, offsets)
        if problem is None:
            return made(0.0, 0.0, False, f"{dtype} has no kernel here")
        try:
            theirs = their_seconds(problem, device, within)
            why = "" if self.when != "plan" else _kept(problem, theirs)
            if why:  # no plan is made: in a server each prompt may have another m
                return made(0.0, theirs, False, why, plan=partial(_ours, problem, device, bias, within))
            ours, theirs = expected(problem, device, bias, within)
        except TilewiseError as refusal:
            return made(0.0, 0.0, False, str(refusal))
        if self.when != "plan":
            return made(ours, theirs, self.when == "always", f"when={self.when!r}")
        wins = ours * MARGIN + HOST_SECONDS < theirs if within is None else ours * COMPILED_MARGIN < theirs
        return made(ours, theirs, wins, f"{theirs / ours:.2f}× by the models")

    def __str__(self) -> str:
        saved = sum(c.saved for c in self.choices)
        head = f"{self.routed} products through tilewise, {self.left} left to torch"
        text = [head + (f"; expected to save {seconds(saved)}" if saved else "")]
        table = self._table()
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        for row in table:
            cells = [cell.rjust(w) for cell, w in zip(row[:-1], widths, strict=False)]
            text.append("  ".join((*cells, row[-1])))
        return "\n".join(text)

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


ACCOUNTS = {when: Account(when) for when in WHEN}  # of `Linear` and patched layers


@lru_cache(maxsize=4096)
def expected(problem: Problem, device: str, bias: bool, within: GraphContext | None) -> tuple[float, float]:
    """Expected seconds of ours and of torch's. Within a graph torch may pad first; in eager mode the `bias` of a stack
    takes us another pass."""
    machine, theirs = machine_of(device), their_seconds(problem, device, within)
    if within is not None and within.static:
        return best_arrangement(problem, machine, within.computed, within.pads_p).seconds, theirs
    plan, extra = make_plan(problem, machine), 0.0
    if bias and problem.stack and within is None:
        extra = 2 * problem.members * problem.m * problem.n * problem.result.itemsize / machine.bandwidth
    return plan.predicted + extra, theirs


def _kept(problem: Problem, theirs: float) -> str:
    """Why torch computes a product without comparing plans; empty if the plans decide."""
    if not theirs:
        return "nothing is known of torch's kernel here"
    return AT_THEIR_BEST if on_sixteen_bytes(problem) else ""


def _ours(problem: Problem, device: str, bias: bool, within: GraphContext | None) -> float:
    try:
        return expected(problem, device, bias, within)[0]
    except TilewiseError:
        return 0.0


def their_seconds(problem: Problem, device: str, within: GraphContext | None) -> float:
    """Expected seconds of torch's kernels; 0 if unknown."""
    machine = machine_of(device)
    theirs = vendor_seconds(problem, machine)
    return min(theirs, padded_seconds(problem, machine)) if theirs and within is not None else theirs


def problem_of(layout: Any, dtype: str, offsets: tuple[int, int], P: Layout | None = None) -> Problem | None:
    """Matrices, or stacks of the same extents, as a Problem; P is dense by default."""
    kind = DTYPES.get(dtype)
    if kind is None:
        return None
    m_shape, n_shape, m_strides, n_strides = layout
    stack = m_shape[:-2]
    left, right = (
        Layout(strides[-2], strides[-1], tuple(strides[:-2]), offset)
        for strides, offset in zip((m_strides, n_strides), offsets, strict=True)
    )
    m, k, n = m_shape[-2], m_shape[-1], n_shape[-1]
    ring = SEMIRINGS["plus_times"]
    return Problem(m, k, n, tuple(stack), kind, kind, ring, left, right, P or row_major(m, n, tuple(stack)))


def _number(x: Any) -> int:
    """A size, or the hint of a symbolic one, which adds no guard."""
    node = getattr(x, "node", None)
    return int(x) if node is None else int(node.hint if node.has_hint() else 8192)
