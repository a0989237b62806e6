"""A kernel compiled in record mode, and launches of it without a host program."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tilewise.emulator.host.lower.call import PREFIX
from tilewise.emulator.host.lower.device import kernel_module
from tilewise.emulator.host.lower.function import LoweredProgram, Lowering
from tilewise.emulator.host.lower.globals import memory_of
from tilewise.emulator.host.lower.launch import argument_offsets
from tilewise.emulator.host.lower.module import runtime_signature
from tilewise.emulator.host.lower.program import LaunchSite
from tilewise.emulator.host.lower.recording import ENTRY_BYTES, Recording
from tilewise.emulator.host.runtime.linking import library_address
from tilewise.emulator.host.runtime.memory import CARD_INIT, CARD_UNINIT, Memory
from tilewise.emulator.host.runtime.session import FUNCTIONS
from tilewise.emulator.host.target.native import LLVM_TO_C
from tilewise.emulator.machine.lanes import Geometry
from tilewise.emulator.machine.leaves import placed_leaves
from tilewise.emulator.machine.memory import Buffer, Cells
from tilewise.emulator.machine.memory import Pointer as At
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.tree import Function
from tilewise.emulator.parse.types import Pointer, Record, Scalar
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable
from tilewise.errors import EngineError

ENTRIES = 1 << 22  # of the log; pages are allocated on first access
LIMIT = 4 << 30
RUN_BLOCKS = ("void", "ptr", "i64", "i64", "i64", "i64")
LOG = np.dtype([
    ("address", "<i8"), ("value", "<f8"), ("row", "<i4"), ("site", "<i4"), ("thread", "<i4"), ("block", "<i4"),
])  # fmt: skip
assert LOG.itemsize == ENTRY_BYTES


@dataclass
class Placed:
    """An array of a launch in the program's memory."""

    buffer: Buffer
    address: int


@dataclass
class Recorded:
    """The log of a launch, and what its addresses are."""

    log: np.ndarray
    lost: int  # entries that the log had no room for
    placed: list[Placed]
    leads: Mapping[str, int]  # leading dimensions by name
    reports: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)  # calls of the runtime: name, arguments


class RecordedKernel:
    """`dimensions`: names that may be leading dimensions. `target`: where the code runs; None: in this process."""

    def __init__(
        self, table: SymbolTable, function: Function, template: Mapping[str, Any], dimensions: frozenset[str],
        target: Any = None, entries: int = ENTRIES,
    ) -> None:  # fmt: skip
        self.memory = Memory(LIMIT, target)
        program = self.program = LoweredProgram(table.source, table.entities, table.names, self.memory)
        program.library_variables, program.supplied = table.library_variables, table.supplied
        node = program.definition(function)
        env = Environment(dict(template), node.scope)
        self.parameters = [types.bare(program.resolve(p.type, env)) for p in node.parameters]
        self.names = [p.name for p in node.parameters]
        self.offsets, self.argument_bytes = argument_offsets(program, self.parameters)
        self.recording = Recording(dimensions)
        self.recording.reserve(program, entries)
        self.arguments = self.memory.static(max(64, self.argument_bytes), "", False)
        self.reports: list[tuple[str, tuple[Any, ...]]] = []
        self._callbacks: list[Any] = []
        site = LaunchSite(tree.Launch(None, [], []), node, dict(template), self.parameters, self.offsets)
        self.text = kernel_module(program, site, None, recording=self.recording)
        for name in program.globals:
            if name not in program.library_variables and program.entities.variables[name].init is not None:
                raise EngineError(f"{name} is initialised by the host's code, which does not run")
        self.run_blocks: Callable[..., Any] = self.memory.target.load(
            self.text, self._symbols(), "run_blocks", RUN_BLOCKS
        )

    def _symbols(self) -> dict[str, int]:
        """Functions of numbers are the C library's; those of the runtime note that they were called."""
        out = {}
        for name, declaration in self.program.externals.items():
            if name.startswith("llvm."):
                continue
            result, parameters = runtime_signature(name, declaration)
            bare = name.removeprefix(PREFIX)
            if bare == name or bare in FUNCTIONS or "ptr" in (result, *parameters):
                maker = ctypes.CFUNCTYPE(*(LLVM_TO_C[t] for t in (result, *parameters)))
                self._callbacks.append(maker(partial(self._report, bare, result)))
                out[name] = int(ctypes.cast(self._callbacks[-1], ctypes.c_void_p).value or 0)
            else:
                out[name] = library_address(bare)
        return out

    def _report(self, name: str, result: str, *arguments: Any) -> Any:
        self.reports.append((name, arguments))
        return None if result == "void" else 0

    def address_of(self, name: str) -> int:
        """The address of a variable of the library: gridDim, blockDim."""
        return memory_of(Lowering(self.program, Environment(), True), name)[1]

    def flags(self, name: str) -> int:
        """The address of an int of the card that the host sets; its first value is 0."""
        address = self.program.globals[name][1]
        self.memory.put(address, bytes(4))
        return address

    def launch(
        self, geometry: Geometry, arguments: Mapping[str, Any], leads: Mapping[str, int], dynamic: int = 0
    ) -> Recorded:
        """Run all blocks. `arguments` are those of the machine: numbers, pointers into buffers, lists of leaves. The
        contents of buffers are copied to the program's memory, and back after the launch."""
        memory = self.memory
        placed: dict[int, Placed] = {}
        for name, type_, offset in zip(self.names, self.parameters, self.offsets, strict=True):
            data = self._bytes(type_, arguments[name], placed)
            memory.cells(self.arguments + offset, ctypes.c_char, max(1, len(data)))[: len(data)] = data
        for name, sizes in (("gridDim", geometry.grid), ("blockDim", geometry.block)):
            memory.put(self.address_of(name), struct.pack("<3I", *sizes))
        count = memory.cells(self.recording.log, ctypes.c_int64, 1)
        count[0] = 0
        self.reports = []
        self.run_blocks(self.arguments, 0, geometry.blocks, geometry.threads, dynamic)
        kept = min(int(count[0]), self.recording.capacity)
        raw = memory.cells(self.recording.entries, ctypes.c_char, ENTRY_BYTES * kept)
        log = np.frombuffer(bytes(memoryview(raw)), LOG)
        for one in placed.values():
            one.buffer.data[:] = memory.view(one.address, one.buffer.data.nbytes).view(one.buffer.data.dtype)
        return Recorded(log, int(count[0]) - kept, list(placed.values()), leads, self.reports)

    def _bytes(self, type_: Any, value: Any, placed: dict[int, Placed]) -> bytes:
        """An argument as the kernel reads it."""
        if isinstance(value, At):
            if isinstance(value.memory, Cells):
                raise EngineError("a pointer to a struct of matrices")
            if value.memory is None:
                return struct.pack("<q", 0)
            if id(value.memory) not in placed:
                placed[id(value.memory)] = self._placed(value.memory)
            one = placed[id(value.memory)]
            return struct.pack("<q", one.address + int(value.offset) * one.buffer.data.itemsize)
        if isinstance(type_, (Scalar, Pointer)):
            return bytes(np.asarray(value).tobytes())
        assert isinstance(type_, Record)
        out = bytearray(type_.size)
        for (leaf, at), part in zip(placed_leaves(type_), value, strict=True):
            data = self._bytes(leaf, part, placed)
            out[at : at + len(data)] = data
        return bytes(out)

    def _placed(self, buffer: Buffer) -> Placed:
        data = buffer.data
        made = self.memory.allocate(
            data.nbytes, "cudaMalloc", 0, buffer.name, device=True, host=False, state=CARD_UNINIT
        )
        self.memory.view(made.address, data.nbytes)[:] = data.view(np.uint8)
        if buffer.initialised is None:
            self.memory.change(made.address, data.nbytes, give=CARD_INIT)
        return Placed(buffer, made.address)
