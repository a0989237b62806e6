"""Kernels compiled to machine code, for the blocks that the interpreter would take too long for.

Bounds and initialisation are checked at every access, as in host code. Races, shared memory and barriers are checked
only by the interpreter, in the blocks that it runs, and by the instrumented version of a kernel."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tilewise.emulator.host.lower.checked_memory import FLOATING, NAMED
from tilewise.emulator.host.lower.device import RUN_BLOCKS_TYPES, kernel_module
from tilewise.emulator.host.lower.device_variables import MAX_DYNAMIC_SHARED
from tilewise.emulator.host.lower.function import Lowering
from tilewise.emulator.host.lower.globals import memory_of
from tilewise.emulator.host.lower.lanes.kernel import width_of
from tilewise.emulator.host.lower.races import PENDING
from tilewise.emulator.host.runtime.counted_work import counted_work, reset_counters
from tilewise.emulator.host.runtime.cuda_arguments import parameter_blocks
from tilewise.emulator.host.runtime.linking import symbols_of
from tilewise.emulator.host.runtime.memory import Allocation, Memory, describe
from tilewise.emulator.host.runtime.session import Session, runtime
from tilewise.emulator.host.runtime.uninitialised_reads import local_name, missing_copy_hint, uninitialised_variable
from tilewise.emulator.machine.execute import Outcome
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.machine.lanes import Geometry
from tilewise.emulator.sema.symbol_table import Environment
from tilewise.errors import EngineError, TilewiseError
from tilewise.system.quantities import coordinates, counted

SCRATCH = 1 << 16  # bytes of the memory to which invalid accesses are redirected
LARGE = 1 << 30  # bytes of a block above which it is not checked for being initialised
VOLATILE = re.compile(r"(?<!asm )(?<!asm__ )\bvolatile\b")  # of a variable; that of `asm volatile` says nothing
INSTRUMENTED_THREADS = 4096  # of a launch that the interpreter cannot run: checked for races
FEW_BLOCKS = 2  # that are run without optimising their code
PARTS = 100  # of a launch, between which progress is shown
MAX_REPORTED = 100_000  # invalid accesses of a program; later ones are redirected without a report


class CompiledKernel:
    def __init__(self, s: Session, site: Any, geometry: Geometry) -> None:
        self.s, self.site = s, site
        self._made: dict[Any, Any] = {}
        self._spans: dict[Any, list[tuple[int, int]]] = {}
        self._function(geometry)

    def _function(self, geometry: Geometry) -> tuple[Any, int]:
        """The kernel's code for blocks of this shape, and its number of lanes."""
        width, rows = width_of(geometry.block)
        for group in ((width, rows), None):
            if group not in self._made:
                try:
                    self._made[group] = self._compiled(group)
                except TilewiseError:  # fall back to one thread at a time; an error in that is raised
                    if group is None:
                        raise
                    self._made[group] = None
            if self._made[group] is not None:
                return self._made[group], width if group is not None else 1
        raise EngineError("this kernel cannot be compiled")

    def _fill_spans(self, group: Any, arguments: int) -> None:
        """Write the ends of each pointer parameter's block to its cell, if it is initialised. Code for single threads
        has no spans, and may copy uninitialised values into a block."""
        memory, offsets = self.s.memory, self.site.offsets
        if group is None:
            for block in memory.device_blocks:
                block.initialised = False
            return
        for number, cell in self._spans[group]:
            (target,) = struct.unpack("<Q", memory.view(arguments + offsets[number], 8).tobytes())
            found = memory.find(target)
            ends = (found.address, found.end) if found is not None and _initialised(memory, found) else (0, 0)
            memory.cells(cell, ctypes.c_int64, 2)[:] = ends

    def instrumented(self, level: int) -> Any:
        """The kernel with calls of check_race."""
        program, key = self.s.program, ("instrumented", level)
        if key not in self._made:
            self._made[key] = None
            if VOLATILE.search(self.s.source.text) is None:  # threads may wait for such a variable
                text = kernel_module(program, self.site, None, instrumented=True)
                target = self.s.memory.target
                self._made[key] = target.load(text, symbols_of(self.s), "run_blocks", RUN_BLOCKS_TYPES, level)
        return self._made[key]

    def _compiled(self, group: tuple[int, bool] | None) -> Any:
        text = kernel_module(self.s.program, self.site, group)
        if group is not None:
            self._spans[group] = [] if "call void @copy_states" in text else self.s.program.spans
        target = self.s.memory.target
        return target.load(text, symbols_of(self.s), "run_blocks", RUN_BLOCKS_TYPES, wide=group is not None)

    def run(
        self, geometry: Geometry, arguments: int, shared: int, blocks: list[tuple[int, int]], instrumented: int
    ) -> tuple[int, Outcome | None]:  # fmt: skip
        """Run the blocks of each range (first, end); the number of lanes, and the work counted in the first blocks.

        `instrumented`: number of first blocks to run instrumented."""
        s = self.s
        state = s.cuda.running
        state.geometry, state.dynamic_bytes = geometry, min(shared, MAX_DYNAMIC_SHARED)
        state.site, state.arguments = self.site, arguments
        state.unset_pointer = False
        for name, sizes in (("gridDim", geometry.grid), ("blockDim", geometry.block)):
            s.memory.put(_address(s, name), struct.pack("<3I", *sizes))
        work = None
        level = 0 if instrumented <= FEW_BLOCKS else 2  # optimising would take longer than running them
        counting = self.instrumented(level) if instrumented else None
        if counting:
            reset_counters(s.program)
            counting(arguments, 0, instrumented, geometry.threads, min(shared, MAX_DYNAMIC_SHARED))
            s.faults.drop_reads_before_racing_stores()
            blocks = [(max(first, instrumented), last) for first, last in blocks]
            work = counted_work(s.program, geometry.threads)
        run, width = self._function(geometry)
        self._fill_spans(width_of(geometry.block) if width > 1 else None, arguments)
        for first, last in _parts(blocks, -(-geometry.blocks // PARTS)):
            s.cuda.progress = f"{self.site.kernel.name} {100 * first // geometry.blocks} %"
            if not s.cuda.sticky:
                with s.memory.running():
                    run(arguments, first, last, -(-geometry.threads // width), min(shared, MAX_DYNAMIC_SHARED))
        state.geometry = None
        return width, work


def _parts(blocks: list[tuple[int, int]], most: int) -> Iterator[tuple[int, int]]:
    """The same blocks, at most `most` at a time, so that progress is shown."""
    for first, last in blocks:
        for at in range(first, last, most):
            yield at, min(at + most, last)


def _initialised(memory: Memory, block: Allocation) -> bool:
    """Whether all of a block is initialised. Cached for blocks that the host cannot access: copies clear the flag."""
    if block.freed or block.size > LARGE:
        return False
    if not block.initialised:
        full = memory.has(block.address, block.size, 2)
        block.initialised = full and not block.host
        return full
    return True


def _address(s: Session, name: str) -> int:
    return memory_of(Lowering(s.program, Environment(), True), name)[1]


def compiled(s: Session, site: Any, geometry: Geometry) -> CompiledKernel | str:
    """The compiled kernel of a launch, or the reason why it cannot be compiled."""
    card = s.cuda
    key = (id(site.kernel), tuple(sorted((k, str(v)) for k, v in site.bindings.items())))
    if key not in card.compiled:
        try:
            card.compiled[key] = CompiledKernel(s, site, geometry)
        except TilewiseError as error:
            card.compiled[key] = str(error)
        except RecursionError:
            card.compiled[key] = "it is nested too deep"
    found: CompiledKernel | str = card.compiled[key]
    return found


@runtime("rt_invalid_access")
def invalid_access(s: Session, address: int, size: int, kind: int, line: int) -> int:
    """Report an access of a kernel's thread; the address that it uses instead, where a floating value is NaN. An
    integer is 0: as a loop's limit or a subscript any other would only add consequences."""
    memory = s.memory
    state = s.cuda.running
    access, name = kind & FLOATING - 1, s.name(kind // NAMED)
    state.reported += 1
    verb = "store" if access & 1 else "load"
    if memory.inside(address, size):
        states = memory.state(address, size)
        if access == 0 and ((states & 5) != 0).all():
            _uninitialised(s, address, size, line)
            return address
    if not state.scratch:
        state.scratch = memory.static(SCRATCH, "", False)
    if state.reported < MAX_REPORTED:
        _outside(s, address, size, line, verb, name)
    value = b"\xff" * (size - 1) + b"\x7f" if kind & FLOATING else bytes(min(size, SCRATCH))
    memory.put(state.scratch, value)
    return int(state.scratch)


def _thread(s: Session) -> str:
    """The current thread, by its threadIdx and blockIdx."""
    out = []
    geometry = s.cuda.running.geometry
    deep = (geometry.block[2] > 1, geometry.grid[2] > 1) if geometry is not None else (False, False)
    for name, three in (("threadIdx", deep[0]), ("blockIdx", deep[1])):
        at = struct.unpack("<3I", s.memory.view(_address(s, name), 12).tobytes())
        out.append(coordinates(at if three else at[:2]))
    return f"thread {out[0]} of block {out[1]}"


def _uninitialised(s: Session, address: int, size: int, line: int) -> None:
    memory = s.memory
    block = memory.find(address)
    if block is None or memory.on_stack(address):
        memory.state(address, size)[:] |= 2
        uninitialised_variable(s, line, local_name(s, line), "kernel", _thread(s))
        return
    what = describe(block) if block.kind != "static" else block.name
    hint = "store to it, and synchronise, before it is read"
    if block.device and (not block.written or block.kind == "__device__"):
        hint = missing_copy_hint(block)
    message = f"{_thread(s)} loads from {what} at byte {address - block.address} before anything was written there"
    s.faults.add(Kind.UNINITIALISED_READ, line, message, hint, array=_array(s, block), access="kernel")
    memory.change(block.address, block.size, give=2)
    s.cuda.running.unset_pointer |= size == 8


def _array(s: Session, block: Allocation) -> str:
    """What the kernel calls a block: the first of its parameters that points there."""
    own = parameter_blocks(s, s.cuda.running.site, s.cuda.running.arguments)
    return next((name for name, found in own if found is block), block.name or str(block.line))


def _meant(s: Session, address: int, name: str) -> Allocation | None:
    """The block that an access outside of all blocks belongs to: of the parameter that the text names, else the closest
    one, which is none of the library's variables."""
    own = parameter_blocks(s, s.cuda.running.site, s.cuda.running.arguments)
    found = next((block for parameter, block in own if parameter == name), s.memory.find(address, near=True))
    if found is None or not own or found.name not in s.program.library_variables:
        return found
    return min((block for _, block in own), key=lambda b: max(b.address - address, address - b.end))


def _outside(s: Session, address: int, size: int, line: int, verb: str, name: str) -> None:
    memory = s.memory
    address &= (1 << 64) - 1
    if address < 1 << 16:
        hint = "give the kernel memory from cudaMalloc: the pointer is NULL, or its cudaMalloc failed"
        if not s.cuda.running.unset_pointer and not s.cuda.sticky:
            message = f"{_thread(s)} goes through a null pointer"
            s.faults.add(Kind.NULL_POINTER, line, message, hint, array=name, access="kernel")
        s.cuda.illegal_address()
        return
    block = _meant(s, address, name) if memory.inside(address, size) else None
    if block is None:
        s.faults.add(
            Kind.OUT_OF_BOUNDS, line, f"{_thread(s)}: a {verb} at {address:#x}, which is no memory of this program",
            "the pointer was never set, or an index is far too large", access=verb,
        )  # fmt: skip
        s.cuda.illegal_address()
        return
    if block.freed and block.address <= address < block.end:
        message = f"{_thread(s)}: a {verb} in {describe(block)}, freed at line {block.freed}"
        hint = "free it after the last launch"
        s.faults.add(
            Kind.USE_AFTER_FREE, line, message, hint, array=_array(s, block), access=verb, other_line=block.freed
        )
        return
    hint = "check the index against the length before the access"
    if block.kind == "static" and block.size == MAX_DYNAMIC_SHARED:  # of extern __shared__, whatever a launch gives it
        block = replace(block, size=s.cuda.running.dynamic_bytes)
        hint = "give extern __shared__ memory the bytes it needs as the third launch argument, <<<grid, block, bytes>>>"
    past, before = counted(address + size - block.end, "byte"), counted(block.address - address, "byte")
    message = f"{_thread(s)}: a {verb} {past} past the end of {describe(block)}"
    if address < block.address:
        message = f"{_thread(s)}: a {verb} {before} before the start of {describe(block)}"
    s.faults.add(Kind.OUT_OF_BOUNDS, line, message, hint, array=_array(s, block), access=verb)


@runtime("rt_divergent_barrier")
def divergent_barrier(s: Session, line: int, missing: int) -> None:
    message = (
        f"{missing} threads never reach this __syncthreads() while others of their block wait at it: first {_thread(s)}"
    )
    hint = "move the barrier out of the branch, so that every thread of the block passes it"
    found = s.faults.add(Kind.DIVERGENT_BARRIER, line, message, hint, access="barrier")
    found.count += missing - 1


@runtime("rt_race")
def race(s: Session, address: int, line: int, other: int, _: int, kind: int) -> None:
    """Each pair of source lines is reported once, in either order, unless the interpreter found a race on one."""
    if any(f.kind is Kind.RACE and f.line in (line, other) for f in s.faults.kernel):
        return
    block = s.memory.find(address)
    name, at = (_array(s, block), address - block.address) if block is not None else ("shared memory", 0)
    pairs: dict[tuple[str, frozenset[int]], int] = s.state.setdefault("races", {})
    reported = pairs.setdefault((name, frozenset((line, other))), line)
    who, between_blocks = _thread(s), kind >= 4
    hint = f"put __syncthreads() between line {min(line, other)} and line {max(line, other)}"
    geometry = s.cuda.running.geometry
    if between_blocks:
        hint = "let only one block touch each cell, or use atomic operations: blocks run in no order"
    elif block is not None and block.device and geometry is not None and geometry.blocks > 1:
        hint = "store to a second array, or in a kernel of its own: __syncthreads() orders the threads of one block"
    elif line == other:
        hint = "this line reads what others write: read into a variable, __syncthreads(), and store after it"
    if kind == PENDING:
        hint = "the copying thread waits for it (__pipeline_wait_prior, cp.async.wait_group), then __syncthreads()"
        message = f"{who} uses {name} at byte {at} before the asynchronous copy at line {other} is waited for"
        s.faults.add(Kind.RACE, reported, message, hint, array=name, access="kernel", other_line=other)
        return
    messages = (
        f"{who} reads {name} at byte {at}, which another thread wrote at line {other} with no barrier between them",
        f"{who} stores to {name} at byte {at}, where another thread wrote at line {other} with no barrier between them",
        f"{who} stores to {name} at byte {at}, which another thread read at line {other} with no barrier between them",
        f"{who} reads {name} at byte {at}, which a thread of another block wrote at line {other}",
        f"{who} stores to {name} at byte {at}, where a thread of another block wrote at line {other}",
        f"{who} stores to {name} at byte {at}, which a thread of another block read at line {other}",
    )
    message = messages[(kind & 3) + 3 * between_blocks]
    s.faults.add(Kind.RACE, reported, message, hint, array=name, access="kernel", other_line=other)
