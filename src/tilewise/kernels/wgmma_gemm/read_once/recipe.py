"""The launches of `read_once`: the few rows transposed or split where needed, the product, parts of k added up."""

from __future__ import annotations

import ctypes
import math

from tilewise.core.epilogue import PLAIN
from tilewise.core.plan import Plan
from tilewise.core.problem import Layout
from tilewise.core.recipe import Address, Argument, Launch, Scratch, TensorMap, Value, array, structure
from tilewise.kernels.shared.delegated import AnyStep, Fallback
from tilewise.kernels.shared.layouts import along_columns
from tilewise.kernels.shared.placed import Operands, Placed
from tilewise.kernels.shared.structs import struct_of
from tilewise.kernels.shared.tensor_map import NO_MAP
from tilewise.kernels.transforms.sums import add_parts, epilogue_argument
from tilewise.kernels.transforms.transpose import transposing
from tilewise.kernels.wgmma_gemm.bf16x6.model import LINES as PADDED
from tilewise.kernels.wgmma_gemm.bf16x6.model import plane_bytes
from tilewise.kernels.wgmma_gemm.bf16x6.recipe import RESIDENT, UNSAFE, WARPS, operand
from tilewise.kernels.wgmma_gemm.k_major.recipe import Side, maps_of_classes
from tilewise.kernels.wgmma_gemm.read_once.model import (
    ALIKE,
    ALONG,
    APART,
    CLASSES,
    DEPTH,
    KERNEL,
    LONG,
    OnceConfig,
    side_of,
)
from tilewise.kernels.wgmma_gemm.read_once.text import render_read_once, render_split_interleaved

BOXES = {ALONG: (DEPTH + 4, LONG // CLASSES), APART: (LONG + 4, DEPTH // CLASSES), ALIKE: (LONG + 8, DEPTH)}


_Product = struct_of("Product", "wgmma_gemm/read_once/stage.cuh")


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[AnyStep]:
    """P has rows side by side."""
    config = plan.config
    assert isinstance(config, OnceConfig)
    kind = _Gathered if config.tile.gathered else _Split if config.tile.planes > 1 else _Rounded
    return kind(plan, config, given).launches(scratch)


class _Gathered:
    """The product whose few lines are rounded or split inside the launch."""

    def __init__(self, plan: Plan, config: OnceConfig, given: Operands) -> None:
        self.plan, self.config, self.given, self.side = plan, config, given, side_of(plan.problem, config)
        self.few, self.long = (given.M, given.N) if config.transposed else (given.N, given.M)

    def launches(self, scratch: Scratch) -> list[AnyStep]:
        return [*self.multiplied(NO_MAP, {}, scratch.take_all(self.needs()))]

    def needs(self) -> dict[str, int]:
        p = self.plan.problem
        return {"parts of k": 4 * self.config.clusters * p.m * p.n} if self.config.clusters > 1 else {}

    def multiplied(self, few: Value, split: dict[str, Value], held: dict[str, Address]) -> list[Launch]:
        """The product's own launch, and the one that adds up what clusters made."""
        p, config, side, P = self.plan.problem, self.config, self.side, self.given.P
        parts, maps, misalignments = held.get("parts of k"), *self._maps()
        product = structure(
            _Product, parts or P.pointer, split.get("planes"), split.get("largest"), split.get("verdict"),
            p.n if parts else P.lead, p.m * p.n, side.few, p.k, side.length, config.transposed,
            p.accumulate and parts is None, split.get("met", 0), max(p.k - 1, 0).bit_length(), *misalignments,
            *self._as_they_lie(),
        )  # fmt: skip
        tiles = -(-side.length // LONG), -(-side.few // config.tile.width)
        grid, text = (
            (tiles[0] * config.blocks, config.clusters, tiles[1]),
            render_read_once.key(config.tile, side.lies),
        )
        arguments = few, array(maps), product, ctypes.c_int(config.blocks)
        shared = config.tile.shared_bytes
        made = [Launch.of(text, KERNEL, grid, (config.tile.threads,), arguments, shared, True, config.blocks)]
        if parts:
            bare = epilogue_argument(PLAIN, "float32", None)
            made.append(add_parts(p, parts, p.n, P.pointer, P.lead, config.clusters, bare))
        return made

    def _as_they_lie(self) -> tuple[Value, ...]:
        """The operands' first elements, and from line to line and along k of each."""
        few, long = self.few.layout, self.long.layout
        strides = (
            (few.row, few.col, long.col, long.row) if self.config.transposed else (few.col, few.row, long.row, long.col)
        )
        return self.few.pointer, self.long.pointer, *strides

    def _maps(self) -> tuple[list[TensorMap], list[int]]:
        """Descriptors of the long operand's lines, and how many elements before them each begins."""
        x, (width, box_lines) = self.long, BOXES[self.side.lies]
        lines = (x.cols, x.rows) if along_columns(x.layout, x.rows, x.cols) else (x.rows, x.cols)
        x = Placed(x.pointer, x.dtype, *lines, Layout(self.side.lead, 1))
        classes, kept = 1 if self.side.lies == ALIKE else CLASSES, self.config.tile.planes > 1  # rounded to tf32 else
        maps, misalignments = maps_of_classes(x, (), classes, width, box_lines, sums=kept, swizzled=False)
        return maps, misalignments + [0] * (CLASSES - len(misalignments))


class _Rounded(_Gathered):
    """The product in tf32, its few rows as they are or transposed first."""

    def launches(self, scratch: Scratch) -> list[AnyStep]:
        lines, needs = Side(self.few, self.config.transposed), self.needs()
        if not self.side.in_place:
            needs["few"] = lines.bytes
        held = scratch.take_all(needs)
        made = [] if self.side.in_place else transposing([(lines, held["few"])], ())
        return [*made, *self.multiplied(lines.map((), held.get("few"), self.config.tile.width), {}, held)]


class _Split(_Gathered):
    """The product from bfloat16 planes; the plain kernel stands behind it."""

    def launches(self, scratch: Scratch) -> list[AnyStep]:
        p, M, N, P = self.plan.problem, self.given.M, self.given.N, self.given.P
        blocks = self._blocks
        needs = self.needs() | {"planes of few": plane_bytes(self.side.few, p.k), "largest": 4 * 2 * blocks}
        held = scratch.take_all(needs)
        verdict = held["largest"] + 4 * blocks  # the split of no second operand leaves 0 there
        split = {"planes": held["planes of few"], "largest": held["largest"], "verdict": verdict, "met": blocks}
        made = [self._split(held["planes of few"], held["largest"]), *self.multiplied(NO_MAP, split, held)]
        return [*made, Fallback(self.plan, M, N, P, verdict, UNSAFE)]

    @property
    def _blocks(self) -> int:
        """That split: as many as are resident at once, so that each leaves one word."""
        pieces = math.ceil(self.plan.problem.k / DEPTH) * math.ceil(self.side.few / PADDED)
        return max(1, min(RESIDENT * self.plan.machine.units, math.ceil(pieces / WARPS)))

    def _split(self, planes: Address, largest: Address) -> Launch:
        x, k, layout = self.few, self.plan.problem.k, self.few.layout
        strides = (layout.row, layout.col) if self.config.transposed else (layout.col, layout.row)
        one: Argument = operand(x, planes, self.side.few, *strides, 0, k)
        none = operand(x, None, 0, 0, 0, 0, 0)
        return Launch.of(render_split_interleaved.key(), "split", (self._blocks,), (32 * WARPS,), (one, none, largest))
