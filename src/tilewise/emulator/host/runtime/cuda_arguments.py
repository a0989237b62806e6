"""A launch's arguments for the interpreter, read from memory: numbers, pointers to buffers, structs of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from tilewise.emulator.host.runtime.memory import HOST_AND_CARD, INIT_BIT, Allocation, Memory, describe
from tilewise.emulator.host.runtime.session import Session
from tilewise.emulator.machine.execute import first_values
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.machine.leaves import dtype_of, dtypes_of, element_dtype, placed_leaves
from tilewise.emulator.machine.memory import ZERO, Buffer, Pointer
from tilewise.emulator.machine.shadow import Shadow
from tilewise.emulator.parse.types import FunctionType, Record, Scalar, innermost
from tilewise.emulator.parse.types import Pointer as HostPointer
from tilewise.errors import EngineError

PIECE = 1 << 20  # bytes of shadow that are inspected at once


class Arguments:
    """The buffers of one launch; `buffers`: by the names that the kernel gives them."""

    def __init__(self, s: Session, site: Any, program: Any) -> None:
        self.s = s
        self.site = site
        self.program = program
        self.buffers: dict[str, Buffer] = {}
        self.matrices: None = None  # the roles M, N and P are known only for kernels of an assignment
        self.globals: list[Buffer] = []
        self.dynamic: dict[str, int] = {}  # sizes of extern __shared__ arrays in this launch
        self.blocks: dict[int, tuple[Allocation, Buffer]] = {}
        self.bad = False

    def read(self, address: int) -> dict[str, Any] | None:
        """Values by parameter; None if a pointer cannot be used on the card."""
        values: dict[str, Any] = {}
        for i, (variable, offset) in enumerate(zip(self.program.parameters, self.site.offsets, strict=True)):
            at = address + offset
            written = self.site.node.written[i] if i < len(self.site.node.written) else variable.name
            leaves = [self._leaf(leaf, at + place, variable, written) for leaf, place in placed_leaves(variable.type)]
            values[variable.name] = leaves[0] if isinstance(variable.type, (Scalar, HostPointer)) else leaves
        self._globals()
        return None if self.bad else values

    def _leaf(self, leaf: Any, address: int, variable: Any, written: str) -> Any:
        data = self.s.memory.view(address, leaf.size).tobytes()
        if isinstance(leaf, Scalar):
            return np.frombuffer(data, dtype_of(leaf))[0]
        return self._pointer(struct.unpack("<Q", data)[0], leaf, variable, written)

    def _pointer(self, target: int, leaf: Any, variable: Any, written: str) -> Pointer:
        if target == 0:
            return Pointer(None, ZERO)
        block = self._block(target, written)
        if block is None:
            return Pointer(None, ZERO)
        dtype, _ = element_dtype(leaf.to)
        if dtype is None:
            raise EngineError(f"memory that holds {leaf.to} is not supported on the machine yet")
        stores = self.program.stores_to(variable)
        buffer = self._buffer(block, np.dtype(dtype), variable.name, stores)
        apart = target - block.address
        if apart % buffer.data.dtype.itemsize:
            raise EngineError(f"{written} is not aligned to {dtype}")
        if stores:
            block.stored = self.site.node.line
        return Pointer(buffer, np.int64(apart // buffer.data.dtype.itemsize))

    def _block(self, target: int, written: str) -> Allocation | None:
        """The block of the card's memory that a pointer points to; None, reported, if the card cannot access it."""
        s = self.s
        block = s.memory.find(target, near=False)
        line = self.site.node.line
        if block is None or not block.device:
            what = describe(block) if block is not None else "a variable of the host"
            if block is None and not s.memory.on_stack(target):
                what = f"{target:#x}, which is no memory: was it ever allocated?"
            named = what if block is not None and block.name == written else f"{written}, which is {what}"
            s.faults.add(
                Kind.HOST_POINTER,
                line,
                f"{self.site.kernel.name} is given {named}: the card cannot reach it",
                "give the kernel memory from cudaMalloc, and copy the data there first",
                array=written,
                access="launch",
            )
            self.bad = True
            return None
        symbol = s.memory.symbol_at(target, written)
        if symbol is not None:
            s.faults.add(
                Kind.HOST_POINTER,
                line,
                f"{self.site.kernel.name} is given {written}, a variable of the card: on the host its name is not its "
                "address there",
                f"let the kernel name {symbol.name} itself, or pass what cudaGetSymbolAddress gives",
                array=symbol.name,
                access="launch",
            )
            self.bad = True
            return None
        if block.freed:
            s.faults.add(
                Kind.USE_AFTER_FREE,
                line,
                f"{self.site.kernel.name} is given {written}, freed at line {block.freed}",
                "free it after the last launch",
                array=written,
                access="launch",
                other_line=block.freed,
            )
            self.bad = True
            return None
        return block

    def _buffer(self, block: Allocation, dtype: Any, name: str, stores: bool) -> Buffer:
        key = block.address
        if key in self.blocks and self.blocks[key][1].data.dtype == dtype:
            buffer = self.blocks[key][1]
        else:
            memory = self.s.memory
            size = block.size // dtype.itemsize
            usable = max(1, size) * dtype.itemsize
            data = memory.view(block.address, usable).view(dtype)
            buffer = Buffer(name, "global", data, size)
            if size and not memory.has(block.address, size * dtype.itemsize, INIT_BIT):
                buffer.initialised = _initialised_cells(memory, block.address, size, dtype.itemsize)
            self.blocks[key] = (block, buffer)
        if stores and buffer.shadow is None:
            buffer.shadow = Shadow(buffer, False)
        self.buffers.setdefault(name, buffer)
        return buffer

    def _globals(self) -> None:
        """Buffers of __device__ and __constant__ variables."""
        program = self.s.program
        for array in self.program.arrays:
            known = program.globals.get(array.name)
            members = dtypes_of(innermost(array.type))
            if None in members or len({member.itemsize for member in members}) != 1:
                raise EngineError(f"{array.name}, whose members differ in size, is not supported on the machine yet")
            dtype = members[0]
            if known is None:
                values = first_values(array, dtype)
                address = self.s.memory.static(max(1, values.nbytes), array.name, True)
                if array.values is not None:
                    self.s.memory.put(address, values.tobytes())
                program.globals[array.name] = (array.type, address)
            block = self.s.memory.find(program.globals[array.name][1])
            assert block is not None
            buffer = self._buffer(block, dtype, array.name, False)
            variable = program.entities.variables.get(array.name)
            if variable is not None and buffer.shadow is None and "__constant__" not in variable.specifiers:
                buffer.shadow = Shadow(buffer, False)
            self.globals.append(buffer)

    def finished(self, line: int) -> None:
        """Mark what the kernel stored as initialised."""
        for block, buffer in self.blocks.values():
            if buffer.initialised is not None:
                self._mark_initialised(block, buffer.initialised, buffer.data.dtype.itemsize)
            if buffer.shadow is not None:
                block.written = True
                if block.kind in HOST_AND_CARD:
                    self.s.cuda.in_use(block, block.address, block.size, line)
                    block.stored, block.copied = 0, True

    def _mark_initialised(self, block: Allocation, known: np.ndarray, width: int) -> None:
        """`known`: which cells are initialised. The states of pieces that already are initialised are not written."""
        step = PIECE // width
        for at in range(0, len(known), step):
            cells = np.flatnonzero(known[at : at + step])
            start, size = block.address + at * width, len(known[at : at + step]) * width
            if len(cells) and not self.s.memory.has(start, size, INIT_BIT):
                self.s.memory.state(start, size).reshape(-1, width)[cells] |= INIT_BIT

    def forget(self) -> None:
        """The interpreter's changes were undone: there is nothing to explain after the launch."""
        self.blocks.clear()

    def usable(self, address: int) -> bool:
        """Whether the card can access what the launch's pointers point to; reports those that it cannot."""
        for i, (type_, offset) in enumerate(zip(self.site.parameters, self.site.offsets, strict=True)):
            if isinstance(type_, HostPointer) and not isinstance(type_.to, FunctionType):
                written = self.site.node.written[i] if i < len(self.site.node.written) else "a pointer"
                target = struct.unpack("<Q", self.s.memory.view(address + offset, 8).tobytes())[0]
                if target:
                    self._block(target, written)
        return not self.bad

    def block_of(self, name: str) -> Allocation | None:
        buffer = self.buffers.get(name)
        return next((block for block, b in self.blocks.values() if b is buffer), None) if buffer is not None else None


def _initialised_cells(memory: Memory, address: int, count: int, width: int) -> np.ndarray:
    """Which cells are initialised in all of their bytes; computed piece by piece, to save memory."""
    known = np.zeros(count, np.bool_)
    step = PIECE // width
    for at in range(0, count, step):
        start, size = address + at * width, min(step, count - at) * width
        alike = memory.alike(start, size)
        if alike is None:
            cells = memory.state(start, size).reshape(-1, width)
            known[at : at + step] = ((cells & INIT_BIT) != 0).all(axis=1)
        elif alike & INIT_BIT:
            known[at : at + step] = True
    return known


def pointed_blocks(s: Session, site: Any, address: int, changed: bool = False, program: Any = None) -> list[Allocation]:
    """The card's blocks that a launch's arguments point to. `changed`: only those that it may store to, by the types of
    its parameters and by the interpreter's `program`, if there is one."""
    out: list[Allocation] = []
    for i, type_, pointer, block in _parameter_blocks(s, site, address):
        known = program is not None and isinstance(type_, HostPointer)
        read = pointer.const or (known and not program.stores_to(program.parameters[i]))
        if block.device and not (changed and read):
            out.append(block)
    return out


def parameter_blocks(s: Session, site: Any, address: int) -> list[tuple[str, Allocation]]:
    """The blocks that a launch's arguments point to, each with the parameter's name."""
    names = [parameter.name for parameter in site.kernel.parameters]
    return [(names[i], block) for i, _, _, block in _parameter_blocks(s, site, address)]


def _parameter_blocks(s: Session, site: Any, address: int) -> Iterator[tuple[int, Any, Any, Allocation]]:
    """Number and type of a parameter, a pointer in it, and the block there."""
    for i, (type_, offset) in enumerate(zip(site.parameters, site.offsets, strict=True)):
        for pointer, at in _pointers(type_, address + offset):
            target = struct.unpack("<Q", s.memory.view(at, 8).tobytes())[0]
            block = s.memory.find(target) if target else None
            if block is not None:
                yield i, type_, pointer, block


def describe_arguments(s: Session, site: Any, address: int) -> list[Any]:
    """A launch's arguments for the report: a number; for a pointer, the bytes behind it and whether they were written;
    a list of an object's members; or None."""
    return [_described(s, t, address + offset) for t, offset in zip(site.parameters, site.offsets, strict=True)]


def describe_template(bindings: dict[str, Any]) -> dict[str, Any]:
    """A launch's template arguments for the report: a number, or the spelling of a type."""
    return {n: given[0] if isinstance(given, tuple) else str(given) for n, given in bindings.items()}


def _filled(s: Session, block: Allocation) -> bool:
    """Whether anything was stored there; stores of the host to pinned or managed memory only change its states."""
    stored = block.kind in HOST_AND_CARD and (s.memory.state(block.address, block.size) & INIT_BIT).any()
    return block.written or bool(stored)


def _described(s: Session, type_: Any, address: int) -> Any:
    if isinstance(type_, Record):
        return [_described(s, f.type, address + f.offset) for f in type_.fields] if not type_.bases else None
    data = s.memory.view(address, type_.size).tobytes()
    if isinstance(type_, HostPointer):
        target = struct.unpack("<Q", data)[0]
        block = s.memory.find(target) if target else None
        return {"bytes": block.end - target, "filled": _filled(s, block)} if block is not None else None
    if not isinstance(type_, Scalar):
        return None
    if type_.floating:
        return struct.unpack({2: "<e", 4: "<f", 8: "<d"}[type_.size], data)[0]
    return int.from_bytes(data, "little", signed=type_.signed)


def _pointers(type_: Any, address: int) -> list[tuple[Any, int]]:
    if isinstance(type_, HostPointer):
        return [(type_, address)]
    if isinstance(type_, Record):
        return [x for f in type_.fields for x in _pointers(f.type, address + f.offset)]
    return []
