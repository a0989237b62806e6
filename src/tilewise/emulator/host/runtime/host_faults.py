"""Faults of compiled host code: invalid accesses, overflow, division, the stack, exceptions."""

from __future__ import annotations

import re
from typing import Any

from tilewise.emulator.host.lower.scalars import MAX_OVERFLOWS
from tilewise.emulator.host.runtime.memory import BUSY, Allocation, describe
from tilewise.emulator.host.runtime.session import Session, runtime
from tilewise.emulator.host.runtime.uninitialised_reads import uninitialised_read
from tilewise.emulator.host.target import Trapped
from tilewise.emulator.machine.findings import Kind
from tilewise.system.quantities import counted

SEGMENTATION, ABORTED = 139, 134
SIGNALS = {Kind.STACK: (SEGMENTATION, "stack overflow"), Kind.DIVISION: (136, "floating point exception")}
MAX_INSPECTED = 1 << 20  # bytes of a range whose states are inspected


@runtime("rt_bad_read")
def bad_read(s: Session, address: int, size: int, line: int) -> None:
    report_access(s, address, size, line, "read")


@runtime("rt_bad_write")
def bad_write(s: Session, address: int, size: int, line: int) -> None:
    report_access(s, address, size, line, "write")


@runtime("rt_check_range")
def check_range(s: Session, address: int, size: int, write: int, line: int) -> None:
    memory = s.memory
    if not memory.inside(address, size) or not memory.has(address, size, 1):
        report_access(s, address, size, line, "write" if write else "read")


@runtime("rt_outside_memory")
def beyond(s: Session, address: int, size: int) -> None:
    """A pointer from the program's memory leads out of it (see lower/containment.py): end the program."""
    if s.memory.inside(address) and size > 0:
        address += size - 1
    _unmapped(s, address, s.line, "access")


def stopped(s: Session, kind: Kind, line: int, message: str, hint: str, **where: Any) -> None:
    """A finding at which the real program would stop: so does this one."""
    s.faults.add(kind, line, message, hint, **where)
    status, signal = SIGNALS.get(kind, (SEGMENTATION, "segmentation fault"))
    s.finish(status, "crash", f"line {line}: the program would be stopped here ({signal})")


@runtime("rt_trap")
def trapped(s: Session, trap: Trapped) -> None:
    """The program's code trapped: the checks before it were wrong, or its stack is full."""
    name = next((i.node.name for i in s.program.instances.values() if i.symbol == f'@"{trap.function}"'), "")
    if trap.stack:
        _stack_overflow(s, name or "a function")
    message, hint = f"the program's code was stopped here: {trap.what}", "check pointers and indices before this line"
    if "indirect call" in trap.what:
        message = "a function is called through a pointer of another type: it takes or returns something else"
        hint = "give the function the parameters and the result of the pointer's type, without a cast"
    stopped(s, Kind.OUT_OF_BOUNDS, s.line, message, hint, access="trap")


def report_access(s: Session, address: int, size: int, line: int, access: str) -> None:
    """Report what is wrong with an access; end the program if a real one would crash."""
    memory = s.memory
    if not memory.inside(address, size):
        block = memory.find(address)
        if block is not None and not block.freed and memory.inside(address) and not memory.on_stack(address):
            _outside(s, block, address, size, line, access)  # it begins in a block
        _unmapped(s, block.end if block is not None else address, line, access)
        return
    state = memory.state(address, min(size, MAX_INSPECTED))
    busy = (state & BUSY) != 0
    if busy.any() and memory.find(address + int(busy.argmax())) is not None:
        _busy(s, address + int(busy.argmax()), line)
        return
    if access == "read" and (state & 1).all():
        uninitialised_read(s, address, size, line)
        return
    block = memory.find(address, near=True)
    if block is None or memory.on_stack(address):
        message = f"{access} of {size} bytes outside every variable of the stack"
        hint = (
            "check the index against the array's length; a pointer to a local variable is dead when its function ends"
        )
        s.faults.add(Kind.OUT_OF_BOUNDS, line, message, hint, access=access)
        return
    if (state & 4).any() or (not block.host and address < block.end):
        _device(s, block, line, access)
    if block.freed and address < block.end:
        message = f"{access} of {describe(block)} after it was freed at line {block.freed}"
        s.faults.add_of(block, Kind.USE_AFTER_FREE, line, message, "free it after the last use", access, block.freed)
        return
    _outside(s, block, address, size, line, access)


def _busy(s: Session, address: int, line: int) -> None:
    """Report a read of memory that a kernel or an asynchronous copy may still write."""
    block = s.memory.find(address)
    assert block is not None
    launched = s.cuda.unsynchronised.get(block.address, 0)
    copied = "MemcpyAsync" in s.source.line(launched)
    what = f"the copy begun at line {launched}" if copied else f"the kernel launched at line {launched}"
    message = f"{describe(block)} is read while {what} may still run"
    hint = f"{'cudaStreamSynchronize(stream)' if copied else 'cudaDeviceSynchronize()'} before the host reads it"
    s.faults.add_of(block, Kind.NOT_SYNCHRONISED, line, message, hint, "read", launched)
    s.memory.change(block.address, block.size, keep=255 - BUSY)


def _outside(s: Session, block: Allocation, address: int, size: int, line: int, access: str) -> None:
    past = address - block.end
    if address < block.address:
        where = f"{counted(block.address - address, 'byte')} before the start of {describe(block)}"
    elif past > 0:
        where = f"{counted(past, 'byte')} past the end of {describe(block)}"
    else:
        where = f"right past the end of {describe(block)}"
    hint = "check the index against the length"
    if block.kind == "std::vector" and block.address <= address < block.end:
        where = f"behind the elements of {describe(block)}"
        hint = "reserve makes room and no elements: resize does, or the constructor with a length"
    message = f"{access} of {size} bytes {where}"
    made = s.faults.add_of(block, Kind.OUT_OF_BOUNDS, line, message, hint, access, block.line)
    if past >= 0 and size > 1:
        furthest = max(past + size, s.overruns[block.address][1] if block.address in s.overruns else 0)
        s.overruns[block.address] = (block, furthest, size, line, made)


def small_allocations(s: Session) -> None:
    """Replace overruns that extend to n * size bytes of a block of n bytes: the allocation lacks a sizeof."""
    for block, furthest, size, line, finding in list(s.overruns.values()):  # at a limit the program still runs
        missing = block.size * (size - 1)
        counted_in_elements = block.kind == "std::vector" or "sizeof" in s.source.line(block.line)
        if furthest < missing - 2 * size or counted_in_elements:
            continue
        s.faults.found = {k: f for k, f in list(s.faults.found.items()) if f is not finding}
        message = f"{describe(block)} is too small: line {line} goes {counted(furthest, 'byte')} past its end"
        hint = f"{block.size} bytes hold {block.size // size} elements of {size} bytes: allocate count * sizeof(type)"
        s.faults.add_of(block, Kind.SMALL_ALLOCATION, block.line, message, hint, "", line)


def _unmapped(s: Session, address: int, line: int, access: str) -> None:
    address &= (1 << 64) - 1
    if address < 1 << 16 and s.arguments == 0 and _reads_arguments(s, line):  # not a fault of the program
        s.wanted = "arguments"
        message = f"line {line}: the program wants arguments and was given none: tilewise run FILE -- ARGUMENTS"
        s.finish(SEGMENTATION, "crash", message)
    if address < 1 << 16:
        message = f"{access} through a null pointer" + (f" (+{address} bytes)" if address else "")
        hint = "give the pointer memory first, and check what malloc returned"
        stopped(s, Kind.NULL_POINTER, line, message, hint, access=access)
        return
    message = f"{access} at {address:#x}, which is no memory of this program"
    hint = "the pointer was never set, or an index is far too large"
    stopped(s, Kind.OUT_OF_BOUNDS, line, message, hint, access=access)


def _reads_arguments(s: Session, line: int) -> bool:
    """Whether a null pointer is most likely argv[1]: the line names argv or a variable assigned from it, or the program
    never tests argc."""
    text, names = s.source.text, set(re.findall(r"\w+", s.source.line(line)))
    copies = set(re.findall(r"\b(\w+)\s*=\s*argv\s*\[", text))
    untested = re.search(r"\bargv\s*\[", text) is not None and len(re.findall(r"\bargc\b", text)) < 2
    return "argv" in names or bool(names & copies) or untested


def _device(s: Session, block: Allocation, line: int, access: str) -> None:
    message = f"the host {access}s {describe(block)}, which is memory of the card"
    hint = "copy it with cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost) first, or use cudaMallocManaged"
    stopped(s, Kind.DEVICE_POINTER, line, message, hint, array=block.name, access=access, other_line=block.line)


@runtime("rt_bad_index")
def bad_index(s: Session, index: int, length: int, number: int, line: int) -> None:
    """A subscript outside an array's length."""
    name = s.name(number)
    message = f"index {index} of an array of {length}: 0 to {length - 1} are there"
    if name:
        message = f"index {index} of {name}, an array of {length}: 0 to {length - 1} are there"
    s.faults.add(Kind.OUT_OF_BOUNDS, line, message, "check the index against the length", array=name, access="index")


@runtime("rt_overflow")
def overflow(s: Session, one: int, two: int, sign: int, size: int, line: int) -> None:
    op = "+-*"[sign]
    true = one + two if sign == 0 else one - two if sign == 1 else one * two
    kind = "int" if size == 4 else "long"
    found = s.faults.add(
        Kind.OVERFLOW,
        line,
        f"{one} {op} {two} is {true}, which does not fit {kind}",
        "compute in long long or size_t: cast one operand first",
        access="arithmetic",
    )
    if found.count == MAX_OVERFLOWS:
        found.evidence = f"counting stopped at {MAX_OVERFLOWS}"


@runtime("rt_divide")
def divide(s: Session, least: int, line: int) -> None:
    message = (
        "the least integer is divided by -1: its type has no such number" if least else "an integer is divided by zero"
    )
    stopped(s, Kind.DIVISION, line, message, "check the divisor first", access="divide")


@runtime("rt_null_call")
def null_call(s: Session, line: int) -> None:
    stopped(
        s, Kind.NULL_POINTER, line, "a null pointer to a function is called", "set the pointer first", access="call"
    )


@runtime("rt_bad_call")
def wild_call(s: Session, address: int, line: int) -> None:
    where = f"{address & (1 << 64) - 1:#x}"
    message = f"a pointer to a function is called that is {where}, which is no function of its type here"
    hint = "give it the address of a function that takes and returns what the pointer's type says"
    stopped(s, Kind.OUT_OF_BOUNDS, line, message, hint, access="call")


@runtime("rt_no_return")
def no_return(s: Session, name_id: int, line: int) -> None:
    s.faults.add(
        Kind.NO_RETURN,
        line,
        f"{s.name(name_id)} ends without returning a value",
        "return a value on every path",
        array=s.name(name_id),
    )


@runtime("rt_large_local")
def stack(s: Session, size: int, limit: int, name_id: int, line: int) -> None:
    """A local array that is larger than the host's stack or a thread's local memory."""
    name = s.name(name_id)
    message = f"{name} takes {size} bytes of a stack of 8 MiB: a real program crashes here"
    hint = "allocate it with malloc, new or std::vector, or make it static"
    if limit < 8 << 20:
        message = f"{name} takes {size} bytes and a thread has {limit} bytes of local memory: nvcc does not compile it"
        hint = f"allocate {name} with cudaMalloc, a part of it for each thread"
    s.faults.add(Kind.STACK, line, message, hint, array=name)


@runtime("rt_stack_overflow")
def stack_overflow(s: Session, name_id: int) -> None:
    _stack_overflow(s, s.name(name_id))


def _stack_overflow(s: Session, name: str) -> None:
    """The line is that of the last call of the runtime; before the first one, that of the function."""
    line = s.line or next((i.node.line for i in s.program.instances.values() if i.node.name == name), 0)
    stopped(s, Kind.STACK, line, f"{name} calls itself until the stack is full", "end the recursion", array=name)


@runtime("rt_variable_length")
def variable_length(s: Session, size: int, name_id: int, line: int) -> int:
    limit = 8 << 20
    if size < 0 or size > limit:
        stack(s, size, limit, name_id, line)
    return s.memory.allocate(max(1, size), "stack", line, s.name(name_id)).address


@runtime("rt_throw")
def throw(s: Session, name_id: int, line: int) -> None:
    _thrown(s, f"terminate called after throwing an instance of '{s.name(name_id)}'\n", line)


@runtime("rt_throw_what")
def throw_what(s: Session, name_id: int, what: int, line: int) -> None:
    text = s.memory.text(what).decode("utf-8", "replace")
    _thrown(s, f"terminate called after throwing an instance of 'std::{s.name(name_id)}'\n  what():  {text}\n", line)


def _thrown(s: Session, text: str, line: int) -> None:
    s.console.error(text.encode())
    s.finish(ABORTED, "abort", f"line {line}: an exception ended the program")
