"""Launching `kernels/hopper/k_major.cu`: operands turned where their k does not lie side by side, then the product."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

from tilewise.engines.cuda import k_across
from tilewise.engines.cuda.by_value import Size, bits
from tilewise.engines.cuda.placed import Placed, by_way_of_scratch
from tilewise.engines.cuda.queue import Launch, kernel_function
from tilewise.errors import EngineError
from tilewise.float8_scales import Scales, step
from tilewise.k_major_tiles import BY_CLASSES, KERNEL, LINE_BYTES, TURNED, AcrossTile, boxed, lines_apart, paired
from tilewise.kernels.render_k_major import render_k_across, render_k_major, render_turn
from tilewise.kernels.render_plain import render_combine
from tilewise.plain_tiles import whole_tiles
from tilewise.plans import Plan

__all__ = ["KERNEL", "prepare"]

TURN_LINES = 64  # of a block, as the kernel has it
BOX_ROWS = 64  # of P


class _Operand(ctypes.Structure):
    """The turning kernel's `Operand`."""

    _fields_ = (
        ("source", ctypes.c_void_p),
        ("to", ctypes.c_void_p),
        ("lines", ctypes.c_int),
        ("k", ctypes.c_int),
        ("line_stride", ctypes.c_longlong),
        ("k_stride", ctypes.c_longlong),
        ("lead_to", ctypes.c_longlong),
        ("along_k", ctypes.c_int),
    )


class _Scales(ctypes.Structure):
    """The kernel's `Scales`."""

    _fields_ = (
        ("of_m", ctypes.c_void_p),
        ("of_n", ctypes.c_void_p),
        ("step_m", ctypes.c_longlong),
        ("step_n", ctypes.c_longlong),
        ("factor", ctypes.c_float),
    )


def _scales(scales: Scales | None) -> _Scales:
    if scales is None:
        return _Scales()
    pointers = [0 if x is None else x.pointer for x in (scales.of_m, scales.of_n)]
    steps = [0 if x is None else step(x) for x in (scales.of_m, scales.of_n)]
    return _Scales(*pointers, *steps, scales.factor)


class _Lines:
    """An operand as lines along k: the rows of M, or the columns of N."""

    def __init__(self, x: Placed, of_m: bool) -> None:
        self.x, self.size = x, x.dtype.itemsize
        self.lines, self.k = (x.rows, x.cols) if of_m else (x.cols, x.rows)
        row, col = x.layout.row, x.layout.col
        self.stride, self.k_stride = (row, col) if of_m else (col, row)
        self.lead_to = -(-self.k * self.size // LINE_BYTES) * LINE_BYTES  # bytes from line to line, once turned

    @property
    def bytes(self) -> int:
        return self.lines * self.lead_to

    def turned(self, member: tuple[int, ...], to: int) -> _Operand:
        along_k = abs(self.k_stride) <= abs(self.stride) or self.lines == 1
        source = self.x.member(member)
        return _Operand(source, to, self.lines, self.k, self.stride, self.k_stride, self.lead_to // 4, along_k)

    def map(self, member: tuple[int, ...], to: int, box_lines: int) -> Any:
        """The descriptor of the lines at `to`, or of the operand itself."""
        if to:
            return _map(to, self.lines, self.k, self.lead_to, self.size, LINE_BYTES // self.size, box_lines)
        lead = self.stride * self.size if self.lines > 1 else self.lead_to
        return _map(self.x.member(member), self.lines, self.k, lead, self.size, LINE_BYTES // self.size, box_lines)


def prepare(
    plan: Plan, M: Placed, N: Placed, P: Placed, device: str, stream: Any, scales: Scales | None = None
) -> Callable[[], None]:
    """Everything that can be done before the launch; M and N have any strides, P has rows side by side."""
    p, way = plan.problem, plan.k_major
    assert way is not None
    operands = {"M": _Lines(M, True), "N": _Lines(N, False)}
    needs = {side: operands[side].bytes for side, how in zip("MN", way.routes, strict=True) if how == TURNED}
    if way.splits > 1:
        needs["partials"] = 4 * way.splits * p.m * p.n

    def launches(held: dict[str, int]) -> list[Launch]:
        return [
            launch
            for member in product(*(range(extent) for extent in p.stack))
            for launch in _launches(plan, operands, P, member, held, device, stream, _scales(scales))
        ]

    return by_way_of_scratch(needs, launches, device, stream)


def _launches(
    plan: Plan,
    operands: dict[str, _Lines],
    P: Placed,
    member: tuple[int, ...],
    held: dict[str, int],
    device: str,
    stream: Any,
    scales: _Scales,
) -> list[Launch]:
    p, way = plan.problem, plan.k_major
    assert way is not None
    launches = []
    turned = [operands[side].turned(member, held[side]) for side in "MN" if side in held]
    if turned:
        function = kernel_function(render_turn(p.dtype_m.name), "turn", device)
        grid = (
            max(math.ceil(x.k * p.dtype_m.itemsize / LINE_BYTES) for x in turned) or 1,
            max(math.ceil(x.lines / TURN_LINES) for x in turned),
            len(turned),
        )
        launches.append(Launch(function, grid, (256,), (turned[0], turned[-1]), stream))
    lead = P.layout.leading_dimension(P.rows, P.cols)
    assert lead is not None
    cut, target = way.splits > 1, P.member(member)
    by_boxes = not (cut or p.accumulate) and boxed(P.layout, P.rows, P.cols, target & -target, P.dtype.itemsize)
    into = _Into(held["partials"] if cut else target, p.n if cut else lead, by_boxes, P)
    product_of = _across if isinstance(way.tile, AcrossTile) else _side_by_side
    function, arguments = product_of(plan, operands, into, member, held, device, scales)
    blocks, block = way.blocks(p.m, p.n, plan.machine.units), (plan.geometry.block[0],)
    launches.append(Launch(function, (blocks,), block, arguments, stream, way.tile.shared_bytes, bool(turned)))
    if cut:
        text = render_combine(p.algebra, whole_tiles(p, plan.machine).way, p.accumulate)
        adding = (
            ctypes.c_void_p(held["partials"]), ctypes.c_void_p(target), ctypes.c_int(p.m), ctypes.c_int(p.n),
            ctypes.c_longlong(p.n), ctypes.c_longlong(lead), ctypes.c_longlong(1), ctypes.c_int(way.splits),
        )  # fmt: skip
        combine = kernel_function(text, "combine", device)
        launches.append(Launch(combine, (math.ceil(p.m * p.n / 32),), (256,), adding, stream))
    return launches


@dataclass(frozen=True)
class _Into:
    """Where sums go: P, or the parts of it that are added up afterwards."""

    pointer: int
    lead: int
    by_boxes: bool
    P: Placed

    def map(self, box_rows: int) -> Any:
        """P's descriptor, where the copy engine stores it."""
        if not self.by_boxes:
            return (ctypes.c_ulonglong * 16)()
        P, size = self.P, self.P.dtype.itemsize
        apart = size * (self.lead if P.rows > 1 else P.cols)  # of a single row anything will do that is whole 16 bytes
        return bits(_map(self.pointer, P.rows, P.cols, apart, size, LINE_BYTES // size, box_rows, True))


def _side_by_side(
    plan: Plan,
    operands: dict[str, _Lines],
    into: _Into,
    member: tuple[int, ...],
    held: dict[str, int],
    device: str,
    scales: _Scales,
) -> tuple[Any, tuple[Any, ...]]:
    """The product where both operands have k side by side: its kernel and arguments."""
    p, way, P = plan.problem, plan.k_major, into.P
    assert way is not None
    kinds = (p.dtype_m.name, p.dtype_n.name)
    words = paired(P.layout, P.rows, P.cols, into.pointer & -into.pointer, P.dtype.itemsize) and not p.accumulate
    source = render_k_major(kinds, way.tile, boxed=into.by_boxes, result=p.result.name, paired=words, scaled=p.scaled)
    lines_m, lines_n = way.tile.fetched
    arguments = (
        bits(operands["M"].map(member, held.get("M", 0), lines_m)),
        bits(operands["N"].map(member, held.get("N", 0), lines_n)),
        into.map(BOX_ROWS),
        ctypes.c_void_p(into.pointer),
        Size(p.m, p.k, p.n, way.splits),
        ctypes.c_longlong(into.lead),
        ctypes.c_int(p.accumulate and way.splits == 1),
        scales,
    )
    return kernel_function(source, KERNEL, device, way.tile.shared_bytes), arguments


def _across(
    plan: Plan,
    operands: dict[str, _Lines],
    into: _Into,
    member: tuple[int, ...],
    held: dict[str, int],
    device: str,
    scales: _Scales,
) -> tuple[Any, tuple[Any, ...]]:
    """The product where N's k lies across its lines: its kernel and arguments."""
    p, way = plan.problem, plan.k_major
    assert way is not None
    assert isinstance(way.tile, AcrossTile)
    box_rows, N = way.tile.fetched[0], operands["N"].x
    if way.routes[0] == BY_CLASSES:
        parts = k_across.classes_of(operands["M"].x, member, way.classes)
        maps_m = [_map(start, rows, length, apart, 4, 32, box_rows) for start, rows, length, apart, _ in parts]
        skews_m = [skew for *_, skew in parts]
    else:
        maps_m, skews_m = [operands["M"].map(member, held.get("M", 0), box_rows)], [0]
    maps_n, skews_n = k_across.maps_of_n(N, way, member, _map)
    into = replace(into, by_boxes=into.by_boxes and way.classes == 1)
    source = render_k_across(
        way.tile,
        apart=lines_apart(N.layout),
        classes=way.classes,
        boxed=into.by_boxes,
        onto=p.accumulate,
    )
    skews = skews_m + skews_n
    arguments = (
        k_across.together(maps_m),
        k_across.together(maps_n),
        into.map(k_across.STAGED_ROWS),
        ctypes.c_void_p(into.pointer),
        Size(p.m, p.k, p.n, way.splits),
        (ctypes.c_int * len(skews))(*skews),
        ctypes.c_longlong(into.lead),
    )
    return kernel_function(source, "k_across", device, way.tile.shared_bytes), arguments


@lru_cache(maxsize=4096)
def _map(
    pointer: int,
    lines: int,
    length: int,
    lead: int,
    size: int,
    box: int,
    box_lines: int,
    sums: bool = False,
    swizzled: bool = True,
) -> Any:
    """The copy engine's description of lines of elements, `lead` bytes apart: boxes of `box` elements × `box_lines`.
    float32 operands are rounded to tf32 on their way, sums are not."""
    from cuda.bindings import driver

    kinds, swizzle = driver.CUtensorMapDataType, driver.CUtensorMapSwizzle
    words = kinds.CU_TENSOR_MAP_DATA_TYPE_UINT32 if sums else kinds.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
    code, made = driver.cuTensorMapEncodeTiled(
        {1: kinds.CU_TENSOR_MAP_DATA_TYPE_UINT8, 2: kinds.CU_TENSOR_MAP_DATA_TYPE_UINT16, 4: words}[size],
        2,
        pointer,
        [driver.cuuint64_t(length), driver.cuuint64_t(lines)],
        [driver.cuuint64_t(lead)],
        [driver.cuuint32_t(box), driver.cuuint32_t(box_lines)],
        [driver.cuuint32_t(1), driver.cuuint32_t(1)],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        swizzle.CU_TENSOR_MAP_SWIZZLE_128B if swizzled else swizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if int(code):
        raise EngineError(f"the copy engine refused a matrix of {lines} lines of {length}, {lead} bytes apart: {code}")
    return made
