"""A kernel compiled in record mode, for a launch without a host program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewise.emulator.host.lower.device import RUN_BLOCKS_TYPES, kernel_module
from tilewise.emulator.host.lower.function import LoweredProgram, Lowering
from tilewise.emulator.host.lower.globals import memory_of
from tilewise.emulator.host.lower.launch import argument_offsets
from tilewise.emulator.host.lower.program import LaunchSite
from tilewise.emulator.host.lower.recording import Recording
from tilewise.emulator.host.runtime.memory import Memory
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.tree import Function
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable
from tilewise.errors import EngineError

LIMIT = 4 << 30


class RecordedKernel:
    """`dimensions`: names that may be leading dimensions. `target`: where the code runs; None: in this process.
    `symbols`: the addresses there of the functions that it calls; a module for another host imports them by name."""

    def __init__(
        self, table: SymbolTable, function: Function, template: Mapping[str, Any], dimensions: frozenset[str],
        target: Any, entries: int, symbols: Callable[[LoweredProgram], dict[str, int]] = lambda program: {},
    ) -> None:  # fmt: skip
        self.memory = Memory(LIMIT, target)
        program = self.program = LoweredProgram(table.source, table.entities, table.names, self.memory)
        program.library_variables, program.supplied = table.library_variables, table.supplied
        node = program.definition(function)
        env = Environment(dict(template), node.scope)
        self.parameters = [types.bare(program.resolve(p.type, env)) for p in node.parameters]
        self.names = [p.name for p in node.parameters]
        self.offsets, argument_bytes = argument_offsets(program, self.parameters)
        self.recording = Recording(dimensions)
        self.recording.reserve(program, entries)
        self.arguments = self.memory.static(max(64, argument_bytes), "", False)
        site = LaunchSite(tree.Launch(None, [], []), node, dict(template), self.parameters, self.offsets)
        text = kernel_module(program, site, None, recording=self.recording)
        for name in program.globals:
            if name not in program.library_variables and program.entities.variables[name].init is not None:
                raise EngineError(f"{name} is initialised by the host's code, which does not run")
        self.run_blocks = self.memory.target.load(text, symbols(program), "run_blocks", RUN_BLOCKS_TYPES)

    def address_of(self, name: str) -> int:
        """The address of a variable of the library: gridDim, blockDim."""
        return memory_of(Lowering(self.program, Environment(), True), name)[1]

    def flags(self, name: str) -> int:
        """The address of an int of the card that the host sets; its first value is 0."""
        address = self.program.globals[name][1]
        self.memory.put(address, bytes(4))
        return address
