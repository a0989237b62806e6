"""Structured values by the plain kernel: a word is a structure of fields; operands are packed k by k."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from functools import lru_cache

from tilewise.algebra.program_cuda import slots, structured_prelude, value_bytes
from tilewise.algebra.structured import StructuredAlgebra
from tilewise.core.machine import Machine
from tilewise.core.recipe import Address, Launch, Recipe
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.text import assembled
from tilewise.kernels.simt_gemm.tiled.configs import Config
from tilewise.kernels.simt_gemm.tiled.model import KERNEL, k_each
from tilewise.kernels.simt_gemm.tiled.text import PLAIN_FILES, Form, macros_of
from tilewise.kernels.simt_gemm.tiled.tiles import TILES, PlainTile


@dataclass(frozen=True)
class StructuredPlan:
    """The plan for m × k by k × n values: the tile, the layout of the workspace, the limit."""

    algebra: StructuredAlgebra
    tile: PlainTile
    m: int
    k: int
    n: int
    limit: float  # steps a second, by issue slots

    @property
    def word(self) -> int:
        """Bytes of a value."""
        return value_bytes(self.algebra.dtypes)

    def lead(self, extent: int) -> int:
        """The leading dimension in values: whole 128-byte cache lines."""
        values = 128 // self.word
        return -(-extent // values) * values

    @property
    def places(self) -> tuple[int, int, int, int]:
        """Bytes before M, N and P in the workspace, and all of it."""
        sizes = (self.k * self.lead(self.m), self.k * self.lead(self.n), self.m * self.lead(self.n))
        after = [0]
        for size in sizes:
            after.append(after[-1] + -(-size * self.word // 1024) * 1024)
        return after[0], after[1], after[2], after[3]

    @property
    def recipe(self) -> Recipe:
        """One launch, on a workspace at the address called P."""
        tile, (at_m, at_n, at_p, _) = self.tile, self.places
        tiles = math.ceil(self.m / tile.rows) * math.ceil(self.n / tile.cols)
        arguments = (
            *(Address("P", at) for at in (at_m, at_n, at_p)),
            *(ctypes.c_int(extent) for extent in (self.m, self.k, self.n)),
            *(ctypes.c_longlong(self.lead(extent)) for extent in (self.m, self.n, self.n)),
            ctypes.c_int(k_each(self.k, tile, 1)),
            None,  # no guard
            ctypes.c_uint(0),
        )
        source, shared = render(self.algebra, tile), tile.shared_bytes(self.word)
        return Recipe((Launch.of(source, KERNEL, (tiles, 1, 1), (tile.threads,), arguments, shared),))


@lru_cache(maxsize=256)
def structured_plan(algebra: StructuredAlgebra, machine: Machine, m: int, k: int, n: int) -> StructuredPlan:
    """The plan with the widest tile that leaves no multiprocessor idle."""
    tiles = TILES[2 if value_bytes(algebra.dtypes) <= 8 else 4]
    busy = [t for t in tiles if math.ceil(m / t.rows) * math.ceil(n / t.cols) >= machine.units * t.resident]
    return StructuredPlan(algebra, (busy or tiles[-1:])[0], m, k, n, machine.step_rate("float32") / slots(algebra))


@lru_cache(maxsize=256)
def render(algebra: StructuredAlgebra, tile: PlainTile) -> str:
    word = value_bytes(algebra.dtypes)
    form = Form(Config("each", word, 1, 0, slots(algebra)), False, False, 16 // word, 16 // word, True, False)
    return assembled(structured_prelude(algebra), macros_of(tile, form), "", PLAIN_FILES)


@KeyedRenderer
def render_limit(algebra: StructuredAlgebra, rows: int = 4, cols: int = 4) -> str:
    """The step alone, on registers: what no kernel with these instructions can beat."""
    defines: dict[str, object] = {"TM": rows, "TN": cols, "PAIRS": 0}
    return assembled(structured_prelude(algebra), defines, "", "simt_gemm/tiled/limit.cu")
