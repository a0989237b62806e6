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
from tilewise.engines.cuda.by_value import Size
from tilewise.engines.cuda.placed import Placed, by_way_of_scratch
from tilewise.engines.cuda.queue import Launch, kernel_function
from tilewise.kernels.guarded import guarded
from tilewise.kernels.render_plain import render_combine
from tilewise.kernels.render_split import render_bf16x6, render_split
from tilewise.plans import Plan
from tilewise.problem import Layout
from tilewise.split_tiles import DEPTH, KERNEL, LINES, plane_bytes, slab_of

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


def prepare(plan: Plan, M: Placed, N: Placed, P: Placed, device: str, stream: Any) -> Callable[[], None]:
    """Everything that can be done before the launch; M and N have any strides, P has rows side by side."""
    p = plan.problem
    members = [
        _Product(_alone(plan), _member(M, index), _member(N, index), _member(P, index), device, stream)
        for index in product(*(range(extent) for extent in p.stack))
    ]
    return by_way_of_scratch(
        members[0].needs(), lambda held: [launch for one in members for launch in one.launches(held)], device, stream
    )


def _alone(plan: Plan) -> Plan:
    """The plan of one member of a stack."""
    p = plan.problem
    m, n, out = (replace(layout, stack=()) for layout in (p.layout_m, p.layout_n, p.layout_p))
    return replace(plan, problem=replace(p, stack=(), layout_m=m, layout_n=n, layout_p=out))


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
            "planes of M": plane_bytes(p.m, self._slab),
            "planes of N": plane_bytes(p.n, self._slab),
            "largest": 4 * (4 * self._blocks + 1),  # of the operands, of a slab of them, and the verdict
        }
        if self._way.splits > 1:
            made["partials"] = 4 * self._way.splits * p.m * p.n
        return made | plain.planes_needed(self._fallback)

    def launches(self, held: dict[str, int]) -> list[Launch]:
        p, largest = self._plan.problem, held["largest"]
        verdict = largest + 4 * 4 * self._blocks
        slabs = range(0, max(p.k, 1), max(self._slab, 1))
        made = []
        if len(slabs) > 1:  # nothing may be added onto P before all of M and N has been looked at
            made.append(self._split(0, p.k, {}, largest))
        for start in slabs:
            depth = min(self._slab, p.k - start)
            made.append(self._split(start, depth, held, largest + (8 * self._blocks if len(slabs) > 1 else 0)))
            made.append(self._multiply(depth, held, verdict, onto=p.accumulate or start > 0))
            if self._way.splits > 1:
                made.append(self._gather(held, verdict, onto=p.accumulate or start > 0))
        return made + plain.guarded_launches(self._fallback, held, verdict, UNSAFE)

    @property
    def _slab(self) -> int:
        p = self._plan.problem
        return slab_of(p.m, p.k, p.n)

    @property
    def _blocks(self) -> int:
        """That split: as many as are resident at once, so that each leaves one word."""
        p = self._plan.problem
        pieces = math.ceil(p.k / DEPTH) * (math.ceil(p.m / LINES) + math.ceil(p.n / LINES))
        return max(1, min(RESIDENT * self._plan.machine.units, math.ceil(pieces / WARPS)))

    def _split(self, start: int, depth: int, held: dict[str, int], largest: int) -> Launch:
        """So much of k from `start` on; without a place for the planes, its largest magnitudes alone."""
        (M, N), to = (self._M, self._N), (held.get("planes of M", 0), held.get("planes of N", 0))
        arguments = (
            _operand(M, to[0], M.rows, M.layout.row, M.layout.col, start, depth),
            _operand(N, to[1], N.cols, N.layout.col, N.layout.row, start, depth),
            ctypes.c_void_p(largest),
        )
        function = kernel_function(render_split(), "split", self._device)
        return Launch(function, (self._blocks,), (32 * WARPS,), arguments, self._stream)

    def _multiply(self, depth: int, held: dict[str, int], verdict: int, onto: bool) -> Launch:
        p, way = self._plan.problem, self._way
        cut = way.splits > 1
        function = kernel_function(render_bf16x6(way.tile), KERNEL, self._device, way.tile.shared_bytes)
        arguments = (
            *(ctypes.c_void_p(held[f"planes of {side}"]) for side in "MN"),
            ctypes.c_void_p(held["partials"] if cut else self._P.pointer),
            Size(p.m, depth, p.n, way.splits),
            ctypes.c_longlong(p.n if cut else self._lead),
            ctypes.c_int(onto and not cut),
            ctypes.c_void_p(held["largest"]),
            ctypes.c_int(self._blocks),
            ctypes.c_int(max(p.k - 1, 0).bit_length()),
            ctypes.c_void_p(verdict),
        )
        blocks, block = way.blocks(p.m, p.n, self._plan.machine.units), (self._plan.geometry.block[0],)
        return Launch(function, (blocks,), block, arguments, self._stream, way.tile.shared_bytes, True)

    def _gather(self, held: dict[str, int], verdict: int, onto: bool) -> Launch:
        p = self._plan.problem
        source = guarded(render_combine(p.algebra, self._fallback.choice.way, onto), 1 - UNSAFE)
        arguments = (
            ctypes.c_void_p(held["partials"]), ctypes.c_void_p(self._P.pointer), ctypes.c_int(p.m), ctypes.c_int(p.n),
            ctypes.c_longlong(p.n), ctypes.c_longlong(self._lead), ctypes.c_longlong(1),
            ctypes.c_int(self._way.splits), ctypes.c_void_p(verdict),
        )  # fmt: skip
        function = kernel_function(source, "combine", self._device)
        return Launch(function, (math.ceil(p.m * p.n / 32),), (256,), arguments, self._stream)


def _operand(x: Placed, to: int, lines: int, line_stride: int, k_stride: int, start: int, depth: int) -> _Operand:
    along_k = abs(k_stride) <= abs(line_stride) or lines == 1
    first = x.pointer + start * k_stride * x.dtype.itemsize
    return _Operand(first, to, lines, depth, line_stride, k_stride, along_k)
