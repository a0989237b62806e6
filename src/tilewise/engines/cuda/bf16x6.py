"""Launching float32 on tensor cores: the split, the six products, and behind them the plain kernel, which makes P where
the parts would not be safe. Everything is queued in any case; what must run is decided on the card.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

from tilewise.engines.cuda import plain
from tilewise.engines.cuda.placed import Placed, scratch
from tilewise.engines.cuda.queue import Launch, kernel_function
from tilewise.kernels.guarded import guarded
from tilewise.kernels.render_plain import render_combine
from tilewise.kernels.render_split import render_bf16x6, render_split
from tilewise.planning import Plan
from tilewise.problem import Layout
from tilewise.split_tiles import DEPTH, KERNEL, LINES, plane_bytes

__all__ = ["KERNEL", "prepare"]

WARPS, RESIDENT = 8, 4  # of a block that splits, and such blocks of a multiprocessor
UNSAFE = 1  # the verdict: P is the plain kernel's


class _Operand(ctypes.Structure):
    """The split's `Operand`."""

    _fields_ = (
        ("source", ctypes.c_void_p),
        ("to", ctypes.c_void_p),
        ("lines", ctypes.c_int),
        ("k", ctypes.c_int),
        ("line_stride", ctypes.c_longlong),
        ("k_stride", ctypes.c_longlong),
        ("along_k", ctypes.c_int),
    )


class _Size(ctypes.Structure):
    """The kernel's `Size`."""

    _fields_ = (("m", ctypes.c_int), ("k", ctypes.c_int), ("n", ctypes.c_int), ("splits", ctypes.c_int))


def prepare(plan: Plan, M: Placed, N: Placed, P: Placed, device: str, stream: Any) -> Callable[[], None]:
    """Everything that can be done before the launch; M and N have any strides, P has rows side by side."""
    p = plan.problem
    members = [
        _Product(_alone(plan), *(_member(x, index) for x in (M, N, P)), device, stream)
        for index in product(*(range(extent) for extent in p.stack))
    ]
    needs = members[0].needs()
    prepared: list[tuple[list[Any], list[Launch]]] = []  # the scratch buffers and the launches made for them

    def queue() -> None:
        with scratch(needs, device, stream) as buffers:
            if not prepared or any(a is not b for a, b in zip(prepared[0][0], buffers, strict=True)):
                held = {role: int(buffer.handle) for role, buffer in zip(needs, buffers, strict=True)}
                prepared[:] = [(buffers, [launch for one in members for launch in one.launches(held)])]
            for launch in prepared[0][1]:
                launch()

    return queue


def _alone(plan: Plan) -> Plan:
    """The plan of one member of a stack."""
    p = plan.problem
    layouts = {
        name: replace(layout, stack=())
        for name, layout in (("layout_m", p.layout_m), ("layout_n", p.layout_n), ("layout_p", p.layout_p))
    }
    return replace(plan, problem=replace(p, stack=(), **layouts))


def _member(x: Placed, index: tuple[int, ...]) -> Placed:
    return Placed(x.member(index), x.dtype, x.rows, x.cols, Layout(x.layout.row, x.layout.col, (), x.layout.alignment))


class _Product:
    """One product, its operands anywhere."""

    def __init__(self, plan: Plan, M: Placed, N: Placed, P: Placed, device: str, stream: Any) -> None:
        assert plan.split is not None
        lead = P.layout.leading_dimension(P.rows, P.cols)
        assert lead is not None
        self._plan, self._way, self._lead = plan, plan.split, lead
        self._M, self._N, self._P, self._device, self._stream = M, N, P, device, stream
        self._fallback = plain.whole_tiles_job(plan, M, N, P, device, stream)

    def needs(self) -> dict[str, int]:
        """Scratch memory by its role."""
        p = self._plan.problem
        made = {
            "planes of M": plane_bytes(p.m, p.k),
            "planes of N": plane_bytes(p.n, p.k),
            "largest": 4 * (2 * self._blocks + 1),
        }
        if self._way.splits > 1:
            made["partials"] = 4 * self._way.splits * p.m * self._partial_lead
        return made | plain.planes_needed(self._fallback)

    def launches(self, held: dict[str, int]) -> list[Launch]:
        verdict = held["largest"] + 4 * 2 * self._blocks
        made = [self._split(held), self._multiply(held, verdict)]
        if self._way.splits > 1:
            made.append(self._gather(held, verdict))
        return made + plain.guarded_launches(self._fallback, held, verdict, UNSAFE)

    @property
    def _blocks(self) -> int:
        """That split: as many as are resident at once, so that each leaves one word."""
        p = self._plan.problem
        pieces = math.ceil(p.k / DEPTH) * (math.ceil(p.m / LINES) + math.ceil(p.n / LINES))
        return max(1, min(RESIDENT * self._plan.machine.units, math.ceil(pieces / WARPS)))

    @property
    def _partial_lead(self) -> int:
        """Sums are written two at a time."""
        n = self._plan.problem.n
        return n + n % 2

    def _split(self, held: dict[str, int]) -> Launch:
        M, N = self._M, self._N
        arguments = (
            _operand(M, held["planes of M"], M.rows, M.cols, M.layout.row, M.layout.col),
            _operand(N, held["planes of N"], N.cols, N.rows, N.layout.col, N.layout.row),
            ctypes.c_void_p(held["largest"]),
        )
        function = kernel_function(render_split(), "split", self._device)
        return Launch(function, (self._blocks,), (32 * WARPS,), arguments, self._stream)

    def _multiply(self, held: dict[str, int], verdict: int) -> Launch:
        p, way = self._plan.problem, self._way
        cut = way.splits > 1
        paired = cut or (self._P.pointer % 8 == 0 and (self._lead % 2 == 0 or p.m == 1))
        source = render_bf16x6(way.tile, paired=paired, split=cut, accumulate=p.accumulate and not cut)
        function = kernel_function(source, KERNEL, self._device, way.tile.shared_bytes)
        arguments = (
            *(ctypes.c_void_p(held[f"planes of {side}"]) for side in "MN"),
            ctypes.c_void_p(self._P.pointer),
            ctypes.c_void_p(held.get("partials", 0)),
            _Size(p.m, p.k, p.n, way.splits),
            ctypes.c_longlong(self._partial_lead if cut else self._lead),
            ctypes.c_void_p(held["largest"]),
            ctypes.c_int(self._blocks),
            ctypes.c_int(max(p.k - 1, 0).bit_length()),
            ctypes.c_void_p(verdict),
        )
        blocks, block = way.blocks(p.m, p.n, self._plan.machine.units), (self._plan.geometry.block[0],)
        return Launch(function, (blocks,), block, arguments, self._stream, way.tile.shared_bytes, True)

    def _gather(self, held: dict[str, int], verdict: int) -> Launch:
        p = self._plan.problem
        source = guarded(render_combine(p.algebra, self._fallback.choice.way, p.accumulate), 1 - UNSAFE)
        arguments = (
            ctypes.c_void_p(held["partials"]), ctypes.c_void_p(self._P.pointer), ctypes.c_int(p.m), ctypes.c_int(p.n),
            ctypes.c_longlong(self._partial_lead), ctypes.c_longlong(self._lead), ctypes.c_longlong(1),
            ctypes.c_int(self._way.splits), ctypes.c_void_p(verdict),
        )  # fmt: skip
        function = kernel_function(source, "combine", self._device)
        return Launch(function, (math.ceil(p.m * p.n / 32),), (256,), arguments, self._stream)


def _operand(x: Placed, to: int, lines: int, k: int, line_stride: int, k_stride: int) -> _Operand:
    along_k = abs(k_stride) <= abs(line_stride) or lines == 1
    return _Operand(x.pointer, to, lines, k, line_stride, k_stride, along_k)
