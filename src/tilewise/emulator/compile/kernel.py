"""A kernel of a parsed file to a `Program`: closures with their slots, shared arrays and leading dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewise.emulator.compile.dataflow import DataFlow
from tilewise.emulator.compile.operand import Operand
from tilewise.emulator.compile.statement import StmtCompiler
from tilewise.emulator.frontend import ctype
from tilewise.emulator.frontend.ctype import Scalar, Struct, Type
from tilewise.emulator.frontend.source import Source
from tilewise.emulator.frontend.syntax import Declarator, Expr, File, Function, Node
from tilewise.emulator.limits import DEFAULT, Limits
from tilewise.emulator.machine.program import GlobalArray, Program, Variable
from tilewise.errors import LimitError

TILE_NAMES = (
    "TILE_WIDTH", "TILE_SIZE", "TILE_DIM", "TILE", "BLOCK_SIZE", "BLOCKSIZE", "BLOCK_WIDTH", "BLOCK_DIM",
    "BLOCK", "TILEWIDTH", "TILESIZE", "TILEDIM", "BLOCKDIM", "TW", "BS", "TS", "TILE_W", "TPB",
    "BLOCK_SZ", "THREAD_BLOCK",
    "THREADS", "NUM_THREADS", "THREADS_PER_BLOCK", "tile_width", "tile_size", "block_size", "blocksize", "tileSize",
    "tileWidth", "blockSize", "TileWidth", "TileSize", "BlockSize",
)  # fmt: skip
DEFAULT_TILE = 16
MAX_PASSES = 12
LEAF_BYTES = 256  # of an element with a first value, while it is compiled


class Compiler(StmtCompiler):
    def __init__(
        self,
        source: Source,
        file: File,
        flow: DataFlow,
        limits: Limits = DEFAULT,
        tile: int | None = None,
        dimensions: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(source, file, flow)
        self.limits = limits
        self.tile = tile
        self.dimension_names = dimensions
        self.depth = 0
        self.loop_depth = 0
        self.switch_depth = 0
        self.returns: list[Type | None] = []
        self.returned_members: list[dict[int, int] | None] = []
        self.pointer_roots: dict[int, frozenset[Any]] = {}
        self.kept: list[Any] = []
        self.narrowed: dict[int, int] = {}
        self.usage: list[tuple[Any, int]] = []
        self.globals: dict[str, Variable] = {}
        self.arrays: list[GlobalArray] = []
        self.array_slots: list[int] = []
        self._resolving_globals: list[str] = []

    def constant(self, node: Expr) -> int:
        value = self.expr(node)
        if value.const is None:
            raise self.refuse(f"{self.text(node)} must be known before running", node)
        if not isinstance(value.type, Scalar) or value.type.floating:
            raise self.refuse("an integer is expected here", node)
        return int(value.const)

    def supply(self, name: str, node: Node) -> Operand | None:
        if name in TILE_NAMES and not self.file.variables.get(name):
            value = self.tile if self.tile is not None else DEFAULT_TILE
            self.supplied[name] = str(value)
            return self.constant_value(np.int32(value), ctype.INT)
        if name in ("WARPSIZE", "WARP_SIZE"):
            self.supplied[name] = "32"
            return self.constant_value(np.int32(32), ctype.INT)
        return None

    # -- variables of the file

    def global_variable(self, name: str, node: Node) -> Variable | None:
        if name in self.globals:
            return self.globals[name]
        entry = self.file.variables.get(name)
        if entry is None:
            return None
        if name in self._resolving_globals:
            raise self.refuse(f"{name} is defined by itself", node)
        item, words = entry
        self._resolving_globals.append(name)
        kept, self.scopes = self.scopes, [{}]
        try:
            made = self._global(item, words, node)
        finally:
            self.scopes = kept
            self._resolving_globals.pop()
        self.globals[name] = made
        return made

    def _global(self, item: Declarator, words: frozenset[str], node: Node) -> Variable:
        type_ = self.counted(self.resolve(item.type), item.init)
        key = ("global", item.name)
        device = bool(words & {"__device__", "__constant__", "__managed__"})
        if "__shared__" in words:
            self.declare_shared(item, words)
            return self.scopes[-1][item.name]
        if isinstance(type_, Scalar) and not ("__device__" in words or "__managed__" in words):
            if item.init is None:
                raise self.refuse(f"{item.name} has no value that is known here", node)
            value = self.value_for(item.init, type_)
            if value.const is not None:
                bare = self.symbol(item.name) if item.name in self.dimension_names else value.bare
                return Variable(item.name, type_, key, -1, "constant", const=value.const, bare=bare)
        if not device and "const" not in words and "constexpr" not in words:
            raise self.refuse(f"{item.name} is a variable of the host", node)
        values = None if item.init is None else self._first_values(item.name, type_, item.init)
        self.arrays.append(GlobalArray(item.name, type_, values))
        slot = self.new_slot()
        self.array_slots.append(slot)
        return Variable(item.name, type_, key, slot, "reference")

    def _first_values(self, name: str, type_: Type, init: Expr) -> list[Any] | str:
        count = ctype.leaf_count(type_)
        if count * LEAF_BYTES > self.limits.memory:  # `run` has made them already, and never asks
            return (
                f"{name} has {count:,} elements with first values: they would take {count * LEAF_BYTES:,} bytes here, "
                f"and {self.limits.memory:,} are allowed; leave the values out, or store them in a kernel"
            )
        parts = self.flatten(type_, init)
        with np.errstate(all="ignore"):
            return [p.const if p.const is not None else p.fn(None) for p in parts]  # type: ignore[arg-type]

    # -- the kernel

    def kernel(self, function: Function, template: Mapping[str, Any]) -> Program:
        assert function.body is not None
        self.template.append(dict(template))
        self.scopes.append({})
        parameters: list[Variable] = []
        for parameter in function.parameters:
            type_ = self.resolve(parameter.type)
            if isinstance(type_, ctype.Reference):
                type_ = type_.to
            variable = self.new_variable(parameter.name, type_, id(parameter))
            if isinstance(type_, Scalar) and parameter.name in self.dimension_names:
                variable.bare = self.symbol(parameter.name)
            if isinstance(type_, Struct):
                for f in type_.fields:
                    if f"{parameter.name}.{f.name}" in self.dimension_names:
                        offset = ctype.leaf_offset(type_, f.name)
                        variable.members[str(offset)] = self.symbol(f"{parameter.name}.{f.name}")
            self.scopes[-1][parameter.name] = variable
            parameters.append(variable)
        self.returns.append(ctype.VOID)
        self.returned_members.append(None)
        body = self.block(function.body)
        return Program(
            function.name, function, parameters, body, self.slots, self.sites, self.site_list, self.shared,
            self.symbols, self.supplied, self.flow.reached_by_stores(), self.flow.sources, self.arrays,
            self.array_slots, self.usage,
        )  # fmt: skip


def compile_kernel(
    source: Source,
    file: File,
    function: Function,
    *,
    template: Mapping[str, Any] | None = None,
    tile: int | None = None,
    dimensions: frozenset[str] = frozenset(),
    limits: Limits = DEFAULT,
) -> Program:
    """Compile until nothing new is learnt about the variables."""
    flow = DataFlow()
    try:
        for _ in range(MAX_PASSES):
            flow.changed = False
            compiler = Compiler(source, file, flow, limits, tile, dimensions)
            program = compiler.kernel(function, template or {})
            if compiler.assigned != flow.assigned:
                flow.assigned = compiler.assigned
                flow.changed = True
            if not flow.changed:
                break
    except RecursionError:
        raise LimitError(f"{source.name}: {function.name} is nested too deep") from None
    return program
