"""new, delete, and the checks of every deallocation."""

from __future__ import annotations

import re

from tilewise.emulator.host.runtime.host_faults import ABORTED
from tilewise.emulator.host.runtime.memory import Memory, describe
from tilewise.emulator.host.runtime.session import Session, runtime
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.parse.tree import Function, TypeConst, TypeReference

DEALLOCATORS = {
    "malloc": "free",
    "calloc": "free",
    "realloc": "free",
    "new": "delete",
    "new[]": "delete[]",
    "cudaMalloc": "cudaFree",
    "cudaMallocManaged": "cudaFree",
    "cudaMallocPitch": "cudaFree",
    "cudaMallocHost": "cudaFreeHost",
    "cudaHostAlloc": "cudaFreeHost",
    "strdup": "free",
}

ASSIGNED = re.compile(r"([A-Za-z_][\w.\->]*(?:\[\w+\])?)\s*=(?!=)")


@runtime("rt_new")
def new(s: Session, count: int, size: int, name_id: int, line: int) -> int:
    array = bool(name_id >> 24)
    if count < 0:
        s.faults.add(
            Kind.OUT_OF_BOUNDS, line, f"new of {count} elements", "the length must not be negative", access="new"
        )
        s.finish(ABORTED, "crash", "terminate called after throwing an instance of 'std::bad_array_new_length'")
    made = s.memory.allocate(max(1, count * size), "new[]" if array else "new", line)
    made.name = assigned_name(s, line)
    return made.address


@runtime("rt_element_count")
def count(s: Session, address: int, size: int) -> int:
    block = s.memory.find(address)
    return 0 if block is None or block.freed else block.size // max(1, size)


@runtime("rt_delete")
def delete(s: Session, address: int, array: int, line: int) -> None:
    release(s, address, "delete[]" if array else "delete", ("new[]",) if array else ("new",), line)


def release(s: Session, address: int, call: str, kinds: tuple[str, ...], line: int) -> bool:
    """Free a block with `call`; False, with a finding, if that is wrong."""
    if address == 0:
        return True
    memory: Memory = s.memory
    block = memory.find(address)
    if block is not None and block.name and address == block.address and block.kind in ("static", "__device__"):
        message = f"{call} of {block.name}, a variable that is declared at line {block.line}"
        hint = "leave it out: only what was allocated is freed"
        s.faults.add(Kind.WRONG_FREE, line, message, hint, array=block.name, access=call)
        return False
    if block is None or address != block.address or block.kind in ("static", "stack", "__device__"):
        what = (
            "an address inside an allocation"
            if block is not None and block.kind not in ("static",)
            else "memory that was never allocated"
        )
        s.faults.add(
            Kind.WRONG_FREE, line, f"{call} of {what}", "free the pointer that the allocation returned", access=call
        )
        return False
    if block.freed:
        message = f"{call} of {describe(block)}, which was freed at line {block.freed}"
        hint = copied_object(s, block.freed) or "free it once"
        s.faults.add_of(block, Kind.DOUBLE_FREE, line, message, hint, call, block.freed)
        return False
    if block.kind not in kinds:
        hint = f"free it with {DEALLOCATORS.get(block.kind, 'free')}"
        s.faults.add_of(block, Kind.WRONG_FREE, line, f"{call} of {describe(block)}", hint, call, block.line)
        if not (block.host and call in ("free", "delete", "delete[]")):
            return False
    memory.release(block, line)
    return True


def copied_object(s: Session, line: int) -> str:
    """A hint for memory that the destructor at this line freed too early: its object was copied, or ''."""
    for owner in (c for same in s.program.entities.classes.values() for c in same if not c.library):
        body = next((tokens_of(m.tokens) for m in owner.methods if m.name == "~" and m.tokens), [])
        copying = [m for m in owner.methods if m.name == "<new>" and _copies(m, owner.name)]
        if body and body[0].line <= line <= body[-1].line and not copying:
            name = owner.name.rpartition("::")[2]
            return (
                f"line {line} is in ~{name}(): a copy of the object frees the same memory; pass it by reference, or "
                "write a copy constructor"
            )
    return ""


def _copies(constructor: Function, owner: str) -> bool:
    """Whether it is the copy constructor, `T(const T&)`, be it deleted."""
    written = constructor.parameters[0].type if len(constructor.parameters) == 1 else None
    to = written.to if isinstance(written, TypeReference) and not written.rvalue else None
    return getattr(to.of if isinstance(to, TypeConst) else to, "name", "") in (owner, owner.rpartition("::")[2])


def assigned_name(s: Session, line: int) -> str:
    """The variable that the current call's result is assigned to: the last assignment before the call on its line."""
    text = s.source.line(line)
    found = ASSIGNED.findall(text[: s.memory.column - 1] if s.memory.column else text)
    return str(found[-1]) if found else ""
