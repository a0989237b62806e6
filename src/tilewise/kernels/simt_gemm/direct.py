"""`direct`: small products by strips in one stage."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar

from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.capabilities import Capabilities
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.residency import clusters_of
from tilewise.kernels.shared.stack_launches import along_k, strides
from tilewise.kernels.simt_gemm.strips import StripConfig, Strips, StripTile, Times
from tilewise.kernels.simt_gemm.text import render_strips

TILES = ((16, 32, 2, 2), (32, 32, 2, 4), (64, 32, 4, 4), (8, 128, 2, 4), (128, 8, 4, 2))
SHARED_BYTES = 40 * 1024  # of a block, for its strips and then for its sums
BYTES_AT_ONCE = 144  # loads in flight of a thread
GROUPS = (4, 2)  # of threads that share a strip's k,
LARGE = 2048  # unless their tile has so many cells: of 82,000 drawn products 19 would take that
RESIDENT_REGISTERS = 65536 // 88  # threads that a unit's registers allow


def tile_of(sides: tuple[int, int, int, int], groups: int, size: int) -> StripTile | None:
    """The longest strip that fits shared memory and the loads in flight; None where threads would have unequal loads,
    or the groups' sums do not fit."""
    rows, cols, tm, tn = sides
    threads, deep = rows // tm * (cols // tn) * groups, 256
    loads = BYTES_AT_ONCE // max(4, size) * threads
    while deep * (rows + cols) > loads or deep * (rows + cols + 2 * (16 // size)) * size > SHARED_BYTES:
        deep //= 2
    even = min(rows, cols) * deep % threads == 0
    fits = groups * rows * cols * size <= SHARED_BYTES
    return StripTile(*sides, groups, deep, RESIDENT_REGISTERS // threads) if even and fits else None


@lru_cache(maxsize=64)
def every_config(size: int, clusters: tuple[int, ...]) -> tuple[StripConfig, ...]:
    """Every configuration: one group for a short k, as many as fit for a longer one, alone and in clusters."""
    made: list[StripConfig] = []
    for sides in TILES:
        one = tile_of(sides, 1, size)
        if one is not None:
            made.append(StripConfig(one, 1))
        if sides[0] * sides[1] < LARGE:
            several = next((t for groups in GROUPS if (t := tile_of(sides, groups, size))), one)
            if several is not None:
                made += [StripConfig(several, cluster) for cluster in clusters if several.groups * cluster > 1]
    return tuple(made)


class Direct(Strips):
    """Products too small for a pipeline, in one launch, for any algebra, layout and stack. Fitted
    to the configurations of 1,200 random products (rms 11 %; held out, the choice 2 % above the best in the mean)."""

    name = "direct"
    kernels: ClassVar = {
        name: "whole strips of M and N are loaded into shared memory: small products, any layout, one launch"
    }
    stages = 1
    can = Capabilities(  # strips of wider sums do not fit, and beyond these steps pipelines always win
        one_dtype=True, partial_bytes=(1, 8), steps=2**29, stores_anywhere=True, precisions=("ieee",)
    )

    def every(self, size: int, machine: Machine) -> tuple[StripConfig, ...]:
        return every_config(size, clusters_of(machine))

    def figures(self, algebra: Algebra) -> Any:
        size = 8 if algebra.partial.itemsize == 8 else min(8, algebra.element.itemsize)  # complex128 to truth values
        return coefficients(f"direct {max(2, size)}")

    def times(self, config: StripConfig, algebra: Algebra, machine: Machine, slower: float) -> Times:
        f, tile, cluster = self.figures(algebra), config.tile, config.cluster
        room = f.room * machine.units
        smallest = config == every_config(algebra.partial.itemsize, (1,))[0]
        return Times(
            tile.deep * cluster // 2 if cluster > 1 else -1, f.strip[tile.groups], f.of_k[tile.groups],
            f.shares[f"{tile.rows}x{tile.cols}"], late=(room // 2, room) if smallest else (0, 0),
        )  # fmt: skip

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        every = self.every(problem.algebra.partial.itemsize, machine)
        for config in every:
            yield render_strips.key(problem.algebra, config.tile, self.stages, None)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
        return self._launches(plan, given, None, [*strides(given), *map(ctypes.c_int, along_k(given))], 0)
