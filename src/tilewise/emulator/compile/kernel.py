"""Compile a kernel of a parsed file to a `Program`."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from tilewise.emulator.compile.dataflow import DataFlow
from tilewise.emulator.compile.operand import Operand
from tilewise.emulator.compile.statement import StmtCompiler
from tilewise.emulator.limits import DEFAULT, Limits
from tilewise.emulator.machine.leaves import dtype_of, leaf_count, leaf_offset, leaves
from tilewise.emulator.machine.program import GlobalArray, Program, Variable
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Record, Scalar, Type, innermost
from tilewise.emulator.sema import constants
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.symbol_table import HOST_VARIABLE, Environment, SymbolTable, Unknown
from tilewise.errors import LimitError

TILE_NAMES = (
    "TILE_WIDTH", "TILE_SIZE", "TILE_DIM", "TILE", "BLOCK_SIZE", "BLOCKSIZE", "BLOCK_WIDTH", "BLOCK_DIM",
    "BLOCK", "TILEWIDTH", "TILESIZE", "TILEDIM", "BLOCKDIM", "TW", "BS", "TS", "TILE_W", "TPB",
    "BLOCK_SZ", "THREAD_BLOCK",
    "THREADS", "NUM_THREADS", "THREADS_PER_BLOCK", "tile_width", "tile_size", "block_size", "blocksize", "tileSize",
    "tileWidth", "blockSize", "TileWidth", "TileSize", "BlockSize",
)  # fmt: skip
DEFAULT_TILE = 16
SUPPLIED = {  # types of missing headers
    "Matrix": "struct { int width, height, pitch, stride; float *elements; }",
    **dict.fromkeys(
        ("DATA_TYPE", "DTYPE", "DataType", "real", "REAL", "scalar_t", "ElementType", "element_t"), "float"
    ),
}
MAX_PASSES = 12
LEAF_BYTES = 256  # memory that the compiler needs per initialised element


class Compiler(StmtCompiler):
    def __init__(
        self,
        table: SymbolTable,
        flow: DataFlow | None = None,
        limits: Limits = DEFAULT,
        tile: int | None = None,
        dimensions: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(table, flow or DataFlow())
        self.env = Environment(local=self.known_local, type_of=self.type_of)
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
        self.supplied: dict[str, str] = {}
        self.open_functions: set[tuple[int, str]] = set()
        self.waits_for_grid = self.copies_asynchronously = False
        self.calls: dict[int, tree.Call] = {}
        self._resolving_globals: list[str] = []

    def constant(self, node: Any) -> int:
        value = self.expr(node)
        if value.const is None:
            raise self.refuse(f"{self.text(node)} must be known before running", node)
        if not isinstance(value.type, Scalar) or value.type.floating:
            raise self.refuse("an integer is expected here", node)
        return int(value.const)

    def supply(self, name: str, node: tree.Node) -> Operand | None:
        if name in TILE_NAMES and self.file_variable(name) is None:
            value = self.tile if self.tile is not None else DEFAULT_TILE
            self.supplied[name] = str(value)
            return self.constant_value(np.int32(value), types.INT)
        if name in ("WARPSIZE", "WARP_SIZE"):
            self.supplied[name] = "32"
            return self.constant_value(np.int32(32), types.INT)
        return None

    def known_local(self, name: str) -> Any:
        """`Environment.local`: the constant value and the type of a local variable."""
        variable = self.find(name)
        if variable is not None:
            known = variable.const.item() if variable.const is not None else None
            type_ = self.written_type(variable.type) if isinstance(variable.type, Scalar) else None
            return SimpleNamespace(constant=known, type=type_)
        if name in self.env.bindings or self.file_variable(name) is not None or name not in TILE_NAMES:
            return None
        self.supplied[name] = str(self.tile or DEFAULT_TILE)
        return SimpleNamespace(constant=self.tile or DEFAULT_TILE, type=types.INT)

    def resolve(self, node: Any) -> Type:
        made = super().resolve(node)
        if isinstance(node, tree.TypeName) and node.name in self.table.supplied:
            self.supplied[node.name] = SUPPLIED[node.name]
        return made

    # -- variables of the file

    def file_variable(self, name: str) -> tree.Variable | None:
        table = self.table
        for candidate in table.names.candidates(name, self.env.scope):
            if candidate in table.entities.variables and candidate not in table.library_variables:
                return table.entities.variables[candidate]
        return None

    def global_variable(self, name: str, node: tree.Node) -> Variable | None:
        if name in self.globals:
            return self.globals[name]
        item = self.file_variable(name)
        if item is None:
            return None
        if name in self._resolving_globals:
            raise self.refuse(f"{name} is defined by itself", node)
        self._resolving_globals.append(name)
        kept, self.scopes = self.scopes, [{}]
        try:
            made = self._global(item, node)
        finally:
            self.scopes = kept
            self._resolving_globals.pop()
        self.globals[name] = made
        return made

    def _global(self, item: tree.Variable, node: tree.Node) -> Variable:
        specifiers = item.specifiers
        if self.table.constants_are_written and "__constant__" in specifiers:
            specifiers |= {"__device__"}
        type_ = self.counted(self.resolve(item.type), item.init)
        key = ("global", item.name)
        device = bool(specifiers & {"__device__", "__constant__", "__managed__"})
        if "__shared__" in specifiers:
            self.declare_shared(item, specifiers)
            return self.scopes[-1][item.name]
        if isinstance(type_, Scalar) and not ("__device__" in specifiers or "__managed__" in specifiers):
            if not device and not isinstance(item.type, tree.TypeConst):
                raise self.refuse(f"{item.name} {HOST_VARIABLE}", node)
            if item.init is None:
                raise self.refuse(f"{item.name} has no value that is known here", node)
            value = self.value_for(item.init, type_)
            if value.const is None:
                value = self.known_initialiser(item.init, type_) or value
            if value.const is not None:
                dimension = self.symbol(item.name) if item.name in self.dimension_names else value.dimension
                return Variable(item.name, type_, key, -1, "constant", const=value.const, dimension=dimension)
        if not device and not isinstance(item.type, tree.TypeConst):
            raise self.refuse(f"{item.name} {HOST_VARIABLE}", node)
        if any(isinstance(leaf, types.Pointer) for leaf in leaves(innermost(type_))):
            raise self.refuse(f"{item.name} holds pointers: a variable of the device cannot do so here", node)
        values = None if item.init is None else self._first_values(item.name, type_, item.init)
        self.arrays.append(GlobalArray(item.name, type_, values))
        slot = self.new_slot()
        self.array_slots.append(slot)
        return Variable(item.name, type_, key, slot, "reference")

    def known_initialiser(self, init: Any, type_: Scalar) -> Operand | None:
        """The value of an initialiser that calls constexpr functions."""
        try:
            return self.constant_value(dtype_of(type_).type(constants.evaluate(self.table, init, self.env)[0]), type_)
        except (Unknown, OverflowError):
            return None

    def _first_values(self, name: str, type_: Type, init: Any) -> list[Any] | str:
        count = leaf_count(type_)
        if count * LEAF_BYTES > self.limits.memory:  # only `check` reads them: `run` has initialised the memory
            return (
                f"{name} has {count:,} elements with first values: they would take {count * LEAF_BYTES:,} bytes here, "
                f"and {self.limits.memory:,} are allowed; leave the values out, or store them in a kernel"
            )
        parts = self.flatten(type_, init)
        unknown = [p for p in parts if p.const is None and not p.pure]
        if unknown:
            raise self.refuse(f"the first value of {name} is not known before running", init)
        with np.errstate(all="ignore"):
            return [p.const if p.const is not None else p.fn(None) for p in parts]  # type: ignore[arg-type]

    # -- the kernel

    def kernel(self, function: tree.Function, template: Mapping[str, Any]) -> Program:
        self.env = self.environment(function, dict(template))
        body_tree = body_of(self.table, function, self.env)
        self.scopes.append({})
        parameters: list[Variable] = []
        for number, parameter in enumerate(function.parameters):
            name = parameter.name or f"<{number}>"
            if name in self.scopes[-1]:
                raise self.refuse(f"the parameter {name} is declared twice", parameter)
            type_ = self.resolve(parameter.type)
            type_ = types.bare(type_)
            variable = self.new_variable(name, type_, id(parameter))
            if isinstance(type_, Scalar) and name in self.dimension_names:
                variable.dimension = self.symbol(name)
            if isinstance(type_, Record):
                for f in type_.members:
                    if f"{name}.{f.name}" in self.dimension_names:
                        offset = leaf_offset(type_, f.offset)
                        variable.members[str(offset)] = self.symbol(f"{name}.{f.name}")
            self.scopes[-1][name] = variable
            parameters.append(variable)
        self.returns.append(types.VOID)
        self.returned_members.append(None)
        body = self.block(body_tree)
        return Program(
            function.name, function, parameters, body, self.slots, self.memos, self.site_list, self.shared,
            self.symbols, self.supplied, self.flow.reached_by_stores(), self.flow.sources, self.arrays,
            self.array_slots, self.usage, self.waits_for_grid, self.copies_asynchronously,
        )  # fmt: skip


def compile_kernel(
    table: SymbolTable,
    function: tree.Function,
    *,
    template: Mapping[str, Any] | None = None,
    tile: int | None = None,
    dimensions: frozenset[str] = frozenset(),
    limits: Limits = DEFAULT,
) -> Program:
    """Compile until `DataFlow` reaches a fixed point."""
    flow = DataFlow()
    try:
        for _ in range(MAX_PASSES):
            flow.changed = False
            compiler = Compiler(table, flow, limits, tile, dimensions)
            program = compiler.kernel(function, template or {})
            if compiler.assigned != flow.assigned:
                flow.assigned = compiler.assigned
                flow.changed = True
            if not flow.changed:
                break
    except RecursionError:
        raise LimitError(f"{table.source.name}: {function.name} is nested too deep") from None
    return program
