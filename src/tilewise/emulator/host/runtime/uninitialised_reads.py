"""Reports reads of uninitialised memory: variables, blocks that nothing was copied to or no thread stored to."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from tilewise.emulator.host.runtime.memory import INIT, INIT_BIT, UNINIT, Allocation, describe
from tilewise.emulator.host.runtime.session import Session, runtime
from tilewise.emulator.machine.findings import Kind

if TYPE_CHECKING:
    from tilewise.emulator.host.runtime.cuda_card import UninitialisedCopy

NOT_BACK = "nothing was copied into it: cudaMemcpy(…, cudaMemcpyDeviceToHost) after the kernel brings results back"
MAX_INSPECTED = 1 << 26  # bytes of a copy in which uninitialised elements are counted


def partial_copy_hint(block: Allocation) -> str:
    """A hint that the last copy into a block was too short for it, or ''."""
    line, size = block.last_copy
    if not line or size >= block.size:
        return ""
    name = block.name or "it"
    return f"the copy at line {line} gave {name} {size} of its {block.size} bytes: sizes are count * sizeof(type)"


def missing_copy_hint(block: Allocation) -> str:
    """The hint for a kernel's read of uninitialised memory of the card."""
    if block.failed:
        return (
            f"the copy at line {block.failed} failed, so nothing was copied into {block.name or 'it'}: correct it there"
        )
    if block.kind == "__device__":
        return (
            f"nothing was ever copied there, so it is zero ({block.name} is declared at line {block.line} with no "
            f"value): cudaMemcpyToSymbol({block.name}, …) before the launch"
        )
    name = block.name or "it"
    return (
        f"nothing was ever copied into {name} (allocated at line {block.line}): "
        f"cudaMemcpy({name}, …, cudaMemcpyHostToDevice) or cudaMemset before the launch"
    )


def _rest_uninitialised(s: Session, address: int) -> int:
    """The number of uninitialised bytes from here on of a large local array, which is reported once; else 0."""
    length, most = 4096, s.memory.stack_end - address
    if most < length or (s.memory.state(address, length) != UNINIT).any():
        return 0  # small: each element is reported
    while length < most:
        length = min(2 * length, most)
        others = s.memory.state(address, length) != UNINIT  # variables are separated by unaddressable bytes
        if others.any():
            return int(others.argmax())
    return length


def local_name(s: Session, line: int) -> str:
    """The uninitialised local array or object that this line names; '' if it names none or several."""
    written = dict.fromkeys(re.findall(r"\w+", s.source.line(line)))
    found = [name for name in written if s.program.uninitialised_locals.get(name, line + 1) <= line]
    return found[0] if len(found) == 1 else ""


def _may_be_copy_target(s: Session, name: str) -> bool:
    """Whether a copy from the card may have been meant to fill this local array."""
    return bool(name and s.cuda is not None and s.cuda.launches)


def uninitialised_variable(s: Session, line: int, name: str, access: str, who: str = "", hint: str = "") -> None:
    message = f"{name} is read before it was given a value" if name else "a variable is read that was given no value"
    if who:
        message = f"{message}: {who}"
    if not hint:
        hint = f"give {name} a value where it is declared" if name else "give it a value where it is declared"
    s.faults.add(Kind.UNINITIALISED_READ, line, message, hint, array=name, access=access)


def uninitialised_read(s: Session, address: int, size: int, line: int) -> None:
    memory = s.memory
    block = memory.find(address)
    copies = s.cuda.uninitialised_copies if s.cuda is not None else ()
    copy = next((c for c in reversed(copies) if c.covers(address)), None)
    if copy is not None:
        _never_stored(s, copy, address, size, line)
        memory.change(copy.to, copy.size, give=INIT)
        return
    if block is None or memory.on_stack(address):
        name = local_name(s, line)
        uninitialised_variable(s, line, name, "read", hint=NOT_BACK if _may_be_copy_target(s, name) else "")
        memory.state(address, max(size, _rest_uninitialised(s, address)))[:] = INIT
        return
    hint = "give it values first (calloc and memset give zeros)"
    if block.failed:
        hint = f"the copy at line {block.failed} failed: correct it there"
    elif short := partial_copy_hint(block):
        hint = short
    elif block.kind not in ("static", "stack") and s.cuda is not None and s.cuda.launches:
        hint = NOT_BACK
    message = f"{describe(block)} is read at byte {address - block.address} before anything was stored there"
    s.faults.add_of(block, Kind.UNINITIALISED_READ, line, message, hint, "read", block.line)
    memory.change(block.address, block.size, give=INIT)


def _never_stored(s: Session, copy: UninitialisedCopy, address: int, size: int, line: int) -> None:
    """The host reads elements that it copied from the card, but no kernel had stored."""
    block, name = copy.source, copy.source.name or "it"
    element = (copy.offset + address - copy.to) // size
    launch = next((record for record in reversed(s.cuda.launches) if record["line"] == copy.stored), None)
    if launch is None:
        message = f"{describe(block)} is copied to the host before anything was stored there; line {line} reads it"
        hint = f"copy {name} after the launch that stores to it"
        s.faults.add_of(block, Kind.UNINITIALISED_READ, copy.line, message, hint, "copy", line)
        return
    without = (s.memory.state(block.address + copy.offset, min(copy.size, MAX_INSPECTED)) & INIT_BIT) == 0
    lacking, first = int(without.sum()) // size, (copy.offset + int(without.argmax())) // size
    element = first if lacking else element
    message = (
        f"{lacking} of {block.size // size} elements of {name} are stored by no thread, first {name}[{element}]: line "
        f"{copy.line} copies them to the host, and line {line} reads them"
    )
    hint = _coverage_hint(launch["grid"], launch["block"], block.size // size)
    blocks = math.prod(launch["grid"])
    if first == blocks and lacking == block.size // size - blocks:
        hint = f"each block stores one element, and the grid has {blocks}: round it up, (n + block - 1) / block"
    s.faults.add_of(block, Kind.UNCOVERED, copy.stored, message, hint, "launch", line)


def _coverage_hint(grid: list[int], block: list[int], elements: int) -> str:
    threads = math.prod(grid) * math.prod(block)
    if math.prod(grid[1:] + block[1:]) == 1:
        if threads < elements:
            return (
                f"the launch has {threads} threads for {elements} elements: round the grid up, "
                f"(n + {block[0]} - 1) / {block[0]}"
            )
        return "there are enough threads: check the guard and the index of the store"
    covered = f"x covers {grid[0] * block[0]} columns and y {grid[1] * block[1]} rows"
    if threads < elements:
        return (
            f"{covered}, fewer than there are elements: round the grid up, (size + tile - 1) / tile, and check x and y"
        )
    return f"{covered}: check that they are the matrix's, that the grid is rounded up, and the index of the store"


@runtime("rt_uninitialised_variable")
def unset(s: Session, line: int, name_id: int) -> None:
    uninitialised_variable(s, line, s.name(name_id), "read")
