"""Runtime functions of the C++ headers: memory of vectors and strings, range errors."""

from __future__ import annotations

import re

from tilewise.emulator.host.runtime.host_faults import report_access
from tilewise.emulator.host.runtime.memory import UNINIT
from tilewise.emulator.host.runtime.session import Session, runtime
from tilewise.emulator.machine.findings import Kind

DECLARED = re.compile(r"\bvector\s*<.*>\s*(\w+)\s*[({=;,]")
FURTHER = re.compile(r"[)}]\s*,\s*(\w+)\s*[({=]")
GROWN = re.compile(
    r"([A-Za-z_][\w.\->]*?)(?:\[\w+\])?(?:\.|->)(?:push_back|emplace_back|resize|reserve|assign|insert)\b"
)


def vector_name(s: Session, line: int) -> str:
    """The vector that this line declares or lets grow; of several, the next one without elements."""
    text = s.source.line(line)
    declared = DECLARED.search(text)
    names = [declared[1], *FURTHER.findall(text, declared.end(1))] if declared else GROWN.findall(text)
    made = sum(b.line == line and not b.freed for b in s.memory.blocks[-len(names) :]) if len(names) > 1 else 0
    return str(names[made % len(names)]) if names else ""


@runtime("__vector_memory")
def vector_memory(s: Session, size: int) -> int:
    """Allocate a vector's capacity, unaddressable: see __vector_size."""
    if size < 0 or size > 1 << 46:
        s.console.error(b"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n")
        s.finish(134, "abort", f"line {s.line}: a vector of {size} bytes")
    return s.memory.allocate(max(1, size), "std::vector", s.line, vector_name(s, s.line), state=0).address


@runtime("__vector_free")
def vector_free(s: Session, address: int) -> None:
    block = s.memory.find(address)
    if block is not None and not block.freed:
        s.memory.release(block, s.line)


@runtime("__vector_size")
def vector_size(s: Session, address: int, before: int, size: int) -> None:
    """Resize from `before` to `size` bytes of elements; the rest of the capacity is unaddressable."""
    block = s.memory.find(address)
    if before == size:
        return
    if block is None or block.kind != "std::vector" or min(before, size) < 0 or address + max(before, size) > block.end:
        report_access(s, address, max(1, before, size), s.line, "write")  # the vector's own bytes were written over
        return
    if size < before:
        s.memory.change(address + size, before - size, keep=0)
    else:
        s.memory.change(address + before, size - before, give=UNINIT)


@runtime("__empty_pop")
def empty_pop(s: Session) -> None:
    """pop_back() of an empty container: a real one would wrap its size; here it has no effect."""
    s.faults.add(
        Kind.OUT_OF_BOUNDS,
        s.line,
        "an element is taken from a container that has none",
        "ask empty() first",
        access="pop",
    )


@runtime("__out_of_range")
def out_of_range(s: Session, index: int, size: int) -> None:
    s.faults.add(
        Kind.OUT_OF_BOUNDS, s.line, f"at({index}) of {size} elements", "check the index against size()", access="at"
    )
    text = f"terminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::_M_range_check: __n (which is {index}) >= this->size() (which is {size})\n"  # noqa: E501
    s.console.error(text.encode())
    s.finish(134, "abort", f"line {s.line}: at() is out of range")
