"""The launches of `k_major`: operands transposed where their k does not lie side by side, then the product."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace

from tilewise.core.plan import Plan
from tilewise.core.recipe import Address, Argument, Launch, Scratch, TensorMap, Value, array, structure
from tilewise.kernels.shared.placed import Operands, Placed, Scales, members
from tilewise.kernels.shared.structs import struct_of
from tilewise.kernels.shared.tensor_map import NO_MAP, Size, row_classes
from tilewise.kernels.transforms.sums import combine
from tilewise.kernels.transforms.transpose import Lines, transposing
from tilewise.kernels.wgmma_gemm.k_major.model import (
    KERNEL,
    AcrossTile,
    KMajorConfig,
    lines_apart,
    paired,
)
from tilewise.kernels.wgmma_gemm.k_major.seconds import BY_CLASSES, CLASSES, LINE_BYTES, TRANSPOSED, boxed
from tilewise.kernels.wgmma_gemm.k_major.text import SPARE, render_k_across, render_k_major

BOX_ROWS = 64  # of P
# Lines of an N that goes to the tensor cores from registers, which start anywhere, a class of them at a time:
DEPTH = 32  # of k in a stage
STAGED_ROWS = 16  # of P


_Scales = struct_of("Scales", "wgmma_gemm/k_major/k_major.cu")


def _scales(scales: Scales | None) -> Argument:
    if scales is None:
        return structure(_Scales)
    steps = scales.step_m, scales.step_n
    held = [None if step is None else Address(f"scale_{side}") for side, step in zip("mn", steps, strict=True)]
    return structure(_Scales, *held, *(step or 0 for step in steps), scales.factor)


class Side(Lines):
    """An operand as the copy engine fetches it."""

    def map(self, member: tuple[int, ...], to: Address | None, box_lines: int) -> TensorMap:
        """Of the lines at `to`, or of the operand itself."""
        lead = self.stride * self.size if self.lines > 1 and to is None else self.lead_to
        return tensor_map(
            to or self.x.member(member), self.lines, self.k, lead, self.size, LINE_BYTES // self.size, box_lines
        )


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M and N have any strides, P has rows side by side."""
    p, config = plan.problem, plan.config
    assert isinstance(config, KMajorConfig)
    operands = {"M": Side(given.M, True), "N": Side(given.N, False)}
    needs = {side: operands[side].bytes for side, how in zip("MN", config.routes, strict=True) if how == TRANSPOSED}
    if config.splits > 1:
        needs["partials"] = 4 * config.splits * p.m * p.n
    held = scratch.take_all(needs)
    return [
        launch
        for member in members(p.stack)
        for launch in _Product(plan, config, operands, given.P, member, held, _scales(given.scales)).launches()
    ]


@dataclass(frozen=True)
class _Into:
    """Where sums go: P, or the parts of it that are added up afterwards."""

    pointer: Address
    lead: int
    by_boxes: bool
    P: Placed

    def map(self, box_rows: int) -> Value:
        """P's tensor map, where the TMA stores it."""
        if not self.by_boxes:
            return NO_MAP
        P, size = self.P, self.P.dtype.itemsize
        apart = size * (self.lead if P.rows > 1 else P.cols)  # of a single row anything will do that is whole 16 bytes
        return tensor_map(self.pointer, P.rows, P.cols, apart, size, LINE_BYTES // size, box_rows, sums=True)


@dataclass(frozen=True)
class _Product:
    """One member of the stack."""

    plan: Plan
    config: KMajorConfig
    operands: dict[str, Side]
    P: Placed
    member: tuple[int, ...]
    held: dict[str, Address]
    scales: Argument

    def launches(self) -> list[Launch]:
        p, config, held = self.plan.problem, self.config, self.held
        made = self._transposing()
        cut, target, P = config.splits > 1, self.P.member(self.member), self.P
        by_boxes = not (cut or p.accumulate) and boxed(P.layout, P.rows, P.cols, target.alignment, P.dtype.itemsize)
        into = _Into(held["partials"] if cut else target, p.n if cut else P.lead, by_boxes, P)
        blocks, block = config.blocks(p.m, p.n, self.plan.machine.units), (self.plan.geometry.block[0],)
        of_rows = isinstance(config.tile, AcrossTile)
        source, name, arguments = self._across(into) if of_rows else self._side_by_side(into)
        made.append(Launch.of(source, name, (blocks,), block, arguments, config.tile.shared_bytes, True))
        if cut:
            cells, strides = (p.m, p.n), (p.n, P.lead, 1)
            made.append(combine(p.algebra, p.accumulate, held["partials"], target, cells, strides, config.splits))
        return made

    def _transposing(self) -> list[Launch]:
        sides = [side for side in "MN" if side in self.held]
        if not sides:
            return []
        moved: list[tuple[Lines, Address]] = [(self.operands[side], self.held[side]) for side in sides]
        return transposing(moved, self.member)

    def _side_by_side(self, into: _Into) -> tuple[str, str, tuple[Value, ...]]:
        """The product where both operands have k side by side: its text, name and arguments."""
        p, config, P, operands, held = self.plan.problem, self.config, into.P, self.operands, self.held
        aligned = into.pointer.alignment
        words = paired(P.layout, P.rows, P.cols, aligned, P.dtype.itemsize) and not p.accumulate
        source = render_k_major.key(
            (p.dtype_m.name, p.dtype_n.name),
            config.tile,
            boxed=into.by_boxes,
            result=p.result.name,
            paired=words,
            scaled=p.scaled,
            symmetric=config.symmetric,
        )
        lines_m, lines_n = config.tile.fetched
        arguments = (
            operands["M"].map(self.member, held.get("M"), lines_m),
            operands["N"].map(self.member, held.get("N"), lines_n),
            into.map(BOX_ROWS),
            into.pointer,
            Size(p.m, p.k, p.n, config.splits),
            ctypes.c_longlong(into.lead),
            ctypes.c_int(p.accumulate and config.splits == 1),
            self.scales,
        )
        return source, KERNEL, arguments

    def _across(self, into: _Into) -> tuple[str, str, tuple[Value, ...]]:
        """The product where N's k lies across its lines: its text, name and arguments."""
        p, config, tile = self.plan.problem, self.config, self.config.tile
        assert isinstance(tile, AcrossTile)
        box_rows, M, N = tile.fetched[0], self.operands["M"], self.operands["N"].x
        if config.routes[0] == BY_CLASSES:
            maps_m, misaligned_m = maps_of_classes(M.x, self.member, config.classes, 32, box_rows, swizzled=True)
        else:
            maps_m, misaligned_m = [M.map(self.member, self.held.get("M"), box_rows)], [0]
        maps_n, misaligned_n = maps_of_n(N, config, self.member)
        into = replace(into, by_boxes=into.by_boxes and config.classes == 1)
        apart_n = lines_apart(N.layout)
        source = render_k_across.key(
            tile, apart=apart_n, classes=config.classes, boxed=into.by_boxes, onto=p.accumulate
        )
        misalignments = misaligned_m + misaligned_n
        arguments = (
            array(maps_m),
            array(maps_n),
            into.map(STAGED_ROWS),
            into.pointer,
            Size(p.m, p.k, p.n, config.splits),
            (ctypes.c_int * len(misalignments))(*misalignments),
            ctypes.c_longlong(into.lead),
        )
        return source, "k_across", arguments


def tensor_map(
    address: Address,
    lines: int,
    length: int,
    lead: int,
    size: int,
    box: int,
    box_lines: int,
    sums: bool = False,
    swizzled: bool = True,
) -> TensorMap:
    """Of lines of elements of `size` bytes, `lead` bytes apart. float32 operands are rounded to tf32 on their way, sums
    are not."""
    kind = {1: "uint8", 2: "uint16", 4: "uint32" if sums else "tfloat32"}[size]
    return TensorMap(address, kind, lines, length, lead, box, box_lines, swizzled)


def maps_of_classes(
    x: Placed, member: tuple[int, ...], classes: int, box: int, box_lines: int, *, sums: bool = False, swizzled: bool
) -> tuple[list[TensorMap], list[int]]:
    """Tensor maps of 4-byte elements by alignment classes of rows, and how many elements before them each begins."""
    every = row_classes(x.member(member), x.rows, x.cols, x.layout.row, 4, classes)
    maps = [
        tensor_map(at, rows, length, 4 * lead, 4, box, box_lines, sums, swizzled) for at, rows, length, lead, _ in every
    ]
    return maps, [one.before for one in every]


def maps_of_n(N: Placed, config: KMajorConfig, member: tuple[int, ...]) -> tuple[list[TensorMap], list[int]]:
    """Descriptors of N's lines, and how many elements before them each begins."""
    scattered, tile = lines_apart(N.layout), config.tile
    lines = DEPTH // CLASSES if scattered else DEPTH // (1 if tile.beside else tile.cluster)
    width = tile.cols + SPARE[scattered]
    return maps_of_classes(N, member, CLASSES if scattered else 1, width, lines, swizzled=False)
