"""cudaMalloc, cudaMemcpy, cudaMemset and similar functions, with reports of wrong arguments."""

from __future__ import annotations

import re

from tilewise.emulator.host.runtime import cuda_card as codes
from tilewise.emulator.host.runtime.c_memory import writable
from tilewise.emulator.host.runtime.comparisons import record_input
from tilewise.emulator.host.runtime.cuda_card import UninitialisedCopy, refuse
from tilewise.emulator.host.runtime.graphs import captured
from tilewise.emulator.host.runtime.memory import (
    BUSY,
    CARD_UNINIT,
    INIT,
    INIT_BIT,
    PINNED,
    UNINIT,
    Allocation,
    describe,
)
from tilewise.emulator.host.runtime.releases import copied_object, release
from tilewise.emulator.host.runtime.session import Session, runtime
from tilewise.emulator.machine.findings import Kind

KINDS = ("cudaMalloc", "cudaMallocManaged", "cudaMallocHost", "cudaHostAlloc")
DIRECTIONS = (
    "cudaMemcpyHostToHost",
    "cudaMemcpyHostToDevice",
    "cudaMemcpyDeviceToHost",
    "cudaMemcpyDeviceToDevice",
    "cudaMemcpyDefault",
)


CALL = re.compile(r"cuda(Malloc|HostAlloc|Memcpy|Memset)\w*\s*(?:<[^>]*>\s*)?\(")  # also inside CHECK(…)


USED = re.compile(r"(=|\breturn|[!&|<>,?:])\s*$")  # before a call: its result is used


WRAPPED = re.compile(r"(?:\w+_cast\s*<[^<>]*>\s*)?\(([^()]*)\)")  # reinterpret_cast<void**>(&x), (x)


def _call(s: Session) -> tuple[str, str]:
    """The source text before and behind the current call's opening parenthesis; '' if its line has several calls."""
    line = s.source.line(s.line)
    found = list(CALL.finditer(line))
    here = [call for call in found if call.start() + 1 == s.memory.column] or found
    return (line[: here[0].start()], line[here[0].end() :]) if len(here) == 1 else ("", "")


def _result_is_used(s: Session) -> bool:
    """Whether the current call stands in an expression: `CHECK(cudaMalloc(…))`, `status = cudaMalloc(…)`."""
    texts = [*(s.source.line(line) for line in range(max(1, s.line - 2), s.line)), _call(s)[0]]
    text = "\n".join(t.partition("//")[0] for t in texts if not t.lstrip().startswith("#"))
    start = re.split(r"[;{}]", text)[-1]
    return start.count("(") > start.count(")") or USED.search(start) is not None


def argument_name(s: Session, position: int) -> str:
    """The source text of an argument of the current call; '' if its line has several such calls."""
    parts, depth, part = [], 0, ""
    for ch in _call(s)[1]:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(ch, 0)
        if depth < 0:
            break
        if ch == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += ch
    parts.append(part)
    if position >= len(parts):
        return ""
    text, before = parts[position], ""
    while text != before:
        before, text = text, re.sub(r"^\s*(\([^()]*\*\s*\)\s*)?&?\s*", "", text).rstrip()
        inside = WRAPPED.fullmatch(text)
        text = inside[1] if inside is not None else text
    return text


@runtime("__cuda_malloc")
def cuda_malloc(s: Session, pointer: int, size: int, kind: int) -> int:
    if size < 0 or not writable(s, pointer, 8):
        return int(s.cuda.fail(codes.INVALID_VALUE))
    if s.cuda.sticky:
        return int(s.cuda.fail(s.cuda.sticky))
    if size == 0:
        s.memory.put(pointer, bytes(8))
        return codes.SUCCESS
    if kind < 2 and size > s.cuda.memory - sum(b.size for b in s.memory.device_blocks if not b.freed):
        message = f"{size} bytes do not fit a {s.cuda.machine.name} of {s.cuda.memory} bytes"
        if _result_is_used(s):
            s.faults.notes.append(f"line {s.line}: cudaMalloc returns an error: {message}; --card chooses another card")
            return int(s.cuda.fail(codes.OUT_OF_MEMORY))
        hint = "check what cudaMalloc returns"
        return refuse(s, codes.OUT_OF_MEMORY, message, hint, Kind.SMALL_ALLOCATION, access="cudaMalloc")
    name = argument_name(s, 0)
    host = kind > 0
    made = s.memory.allocate(
        size, KINDS[kind], s.line, name, device=True, host=host, state=UNINIT if host else CARD_UNINIT
    )
    s.memory.put(pointer, made.address.to_bytes(8, "little"))
    return codes.SUCCESS


@runtime("__cuda_malloc_pitch")
def cuda_malloc_pitch(s: Session, pointer: int, pitch: int, width: int, height: int) -> int:
    row = -(-width // 512) * 512
    if not (writable(s, pointer, 8) and writable(s, pitch, 8)):
        return int(s.cuda.fail(codes.INVALID_VALUE))
    made = s.memory.allocate(
        max(1, row * height),
        "cudaMallocPitch",
        s.line,
        argument_name(s, 0),
        device=True,
        host=False,
        state=CARD_UNINIT,
    )
    made.pitch = row
    s.memory.put(pointer, made.address.to_bytes(8, "little"))
    s.memory.put(pitch, row.to_bytes(8, "little"))
    return codes.SUCCESS


@runtime("__cuda_free")
def cuda_free(s: Session, address: int, kind: int) -> int:
    call = "cudaFreeHost" if kind == 2 else "cudaFree"
    if kind == 0:
        synchronised(s)
        s.cuda.order.host_waits()
    kinds = PINNED if kind == 2 else ("cudaMalloc", "cudaMallocManaged", "cudaMallocPitch")
    return codes.SUCCESS if release(s, address, call, kinds, s.line) else int(s.cuda.fail(codes.INVALID_VALUE))


def side(s: Session, address: int) -> str:
    """ "host", "device", "both", or "" if the address is not allocated."""
    block = s.memory.find(address)
    if block is None:
        return "host" if s.memory.on_stack(address) else ""
    if block.kind == "cudaMallocManaged" or (block.host and block.device):
        return "both"
    return "device" if not block.host else "host"


def _bytes_left(s: Session, address: int) -> int:
    """Bytes from the address to the end of its block."""
    block = s.memory.find(address)
    if block is None:
        return 1 << 40 if s.memory.on_stack(address) else 0
    return block.end - address


@runtime("__cuda_copy")
def cuda_copy(s: Session, to: int, source: int, size: int, kind: int, asynchronous: int) -> int:
    """cudaMemcpy: report what is wrong with a copy, and return the runtime's error code."""
    if asynchronous and captured(s, lambda: cuda_copy(s, to, source, size, kind, asynchronous)):
        return codes.SUCCESS
    code = _copied(s, to, source, size, kind, asynchronous)
    missing = s.cuda.sticky or (code and s.memory.find(to) is None)  # of a variable
    if missing and writable(s, to, size):  # what is missing there follows from a fault that is reported
        s.memory.change(to, size, give=INIT)
    for block in (s.memory.find(to), s.memory.find(source)) if code else ():
        if block is not None:
            block.failed = s.line
    return code


def _copied(s: Session, to: int, source: int, size: int, kind: int, asynchronous: int) -> int:
    card = s.cuda
    if card.sticky:
        return int(card.fail(card.sticky))
    if size <= 0:
        return codes.SUCCESS if size == 0 else int(card.fail(codes.INVALID_VALUE))
    if not 0 <= kind <= 4:
        return int(card.fail(codes.BAD_DIRECTION))
    wanted = {0: ("host", "host"), 1: ("device", "host"), 2: ("host", "device"), 3: ("device", "device")}.get(kind)
    found = side(s, to), side(s, source)
    names = argument_name(s, 0) or "the target", argument_name(s, 1) or "the source"
    if not all(found):
        return _unallocated(s, (to, source)[bool(found[0])], size, names[bool(found[0])], not found[0])
    if wanted is not None and not all(f in (w, "both") for f, w in zip(found, wanted, strict=True)):
        return _wrong_direction(s, kind, found, names, (to, source))
    code = _check_symbols(s, (to, source), names) or _check_lengths(s, to, source, size, names)
    if code:
        return code
    move(s, to, source, size)
    if found[0] == "device" and found[1] != "device":
        record_input(s, s.memory.find(to), source, size)
    block = s.memory.find(source)
    if block is not None and found[0] != "device":
        block.copied = block.copied or block.stored > 0  # what is copied before a kernel stores is no result
        if found[1] == "device" and not s.memory.has(source, size, INIT_BIT):
            card.uninitialised_copies.append(
                UninitialisedCopy(to, size, s.line, block, source - block.address, block.stored)
            )
    card.copied(size)
    target = s.memory.find(to)
    if not asynchronous:
        synchronised(s)
        card.order.start(0)
        card.order.host_waits(card.order.streams[0])
    elif found[1] == "device" and target is not None and target.kind in PINNED:
        card.in_use(target, to, size, s.line)
    return codes.SUCCESS


def _unallocated(s: Session, address: int, size: int, name: str, target: bool) -> int:
    """Report a copy at an unallocated address, perhaps behind the end of a block that is too small."""
    block = s.memory.find(address, near=True)
    if block is not None and not block.freed and 0 <= address - block.end < block.size:
        return _too_long(s, block, size, name, "writes" if target else "reads", 0)
    message = f"{name} points to no memory: it was never allocated, or freed before"
    return refuse(s, codes.INVALID_VALUE, message, "allocate it first", array=name)


def _holds_pointer(s: Session, address: int) -> bool:
    """Whether the address is that of a host variable that points to the card's memory: &d was passed instead of d."""
    if side(s, address) != "host" or not s.memory.has(address, 8, INIT_BIT):
        return False
    block = s.memory.find(int.from_bytes(s.memory.view(address, 8).tobytes(), "little"))
    return block is not None and block.device


def _wrong_direction(
    s: Session, kind: int, found: tuple[str, str], names: tuple[str, str], addresses: tuple[int, int]
) -> int:  # fmt: skip
    to, source = found
    right = {
        ("device", "host"): 1,
        ("host", "device"): 2,
        ("device", "device"): 3,
        ("host", "host"): 0,
        ("both", "host"): 1,
        ("both", "device"): 3,
        ("host", "both"): 2,
        ("device", "both"): 3,
    }.get(found, 4)
    swapped = {1: ("host", "device"), 2: ("device", "host")}.get(kind) == found
    pointer = next((n for n, at in zip(names, addresses, strict=True) if _holds_pointer(s, at)), "")
    message = f"{DIRECTIONS[kind]}, but {names[0]} is {_where(to)} and {names[1]} is {_where(source)}"
    if pointer:
        hint = f"&{pointer} is where the pointer {pointer} is kept: give {pointer} itself"
    elif swapped:
        hint = f"the target comes first: cudaMemcpy({names[1]}, {names[0]}, …, {DIRECTIONS[kind]}), "
        hint += f"or say {DIRECTIONS[right]}"
    else:
        hint = f"say {DIRECTIONS[right]}"
    return refuse(s, codes.INVALID_VALUE, message, hint, array=names[0])


def _where(side_: str) -> str:
    return {"host": "memory of the host", "device": "memory of the card", "both": "managed memory"}[side_]


def _check_symbols(s: Session, addresses: tuple[int, int], names: tuple[str, str]) -> int:
    """Report a variable of the card that is copied by its name; the error code, or 0."""
    for address, name, call in zip(addresses, names, ("ToSymbol", "FromSymbol"), strict=True):
        block = s.memory.symbol_at(address, name)
        if block is not None:
            message = f"{name} is a variable of the card: on the host its name is not its address there"
            hint = f"cudaMemcpy{call}({', '.join(names)}, bytes)"
            return refuse(s, codes.INVALID_VALUE, message, hint, array=block.name)
    return 0


def _check_lengths(s: Session, to: int, source: int, size: int, names: tuple[str, str]) -> int:
    """Report a copy that is longer than its source or target; the error code, or 0."""
    for address, name, verb in ((to, names[0], "writes"), (source, names[1], "reads")):
        block = s.memory.find(address)
        room = _bytes_left(s, address)
        if block is not None and block.freed:
            message = f"the copy {verb} {describe(block)} after it was freed at line {block.freed}"
            hint, kind = copied_object(s, block.freed) or "free it after the copy", Kind.USE_AFTER_FREE
            return refuse(s, codes.INVALID_VALUE, message, hint, kind, array=name, other_line=block.freed)
        if size <= room or block is None:
            continue
        other = source if address == to else to
        if _bytes_left(s, other) < size or size % max(1, room) or size // max(1, room) not in (2, 4, 8):
            return _too_long(s, block, size, name, verb, room)
        message = f"{block.kind} of {block.size} bytes for {name}: the copy at line {s.line} needs {size}"
        hint, kind = "allocate count * sizeof(type)", Kind.SMALL_ALLOCATION
        if block.kind == "std::vector":
            hint = f"give the vector {size // max(1, room)} times the elements, or copy {room} bytes"
            name = name.removesuffix(".data()")
        return refuse(s, codes.INVALID_VALUE, message, hint, kind, line=block.line, array=name, other_line=s.line)
    return 0


def _too_long(s: Session, block: Allocation, size: int, name: str, verb: str, room: int) -> int:
    message = f"the copy of {size} bytes {verb} past the end of {describe(block)}"
    return refuse(s, codes.INVALID_VALUE, message, f"{name} has {room} bytes here", array=name, other_line=block.line)


def move(s: Session, to: int, source: int, size: int) -> None:
    """Copy bytes and whether they are initialised."""
    memory = s.memory
    memory.move(to, source, size, own=UNINIT | CARD_UNINIT, take=INIT_BIT)
    block = memory.find(to)
    if block is not None:
        block.written, block.initialised = True, False
        block.last_copy = s.line, size


@runtime("__cuda_copy2d")
def cuda_copy2d(
    s: Session, to: int, to_pitch: int, source: int, from_pitch: int, width: int, height: int, kind: int
) -> int:
    if width > to_pitch or width > from_pitch:
        message = f"rows of {width} bytes do not fit a pitch of {min(to_pitch, from_pitch)}"
        return refuse(s, 12, message, "pitches and width are in bytes")
    for row in range(height):
        code = int(cuda_copy(s, to + row * to_pitch, source + row * from_pitch, width, kind, 0))
        if code:
            return code
    return codes.SUCCESS


@runtime("__cuda_set")
def cuda_set(s: Session, to: int, value: int, size: int) -> int:
    if captured(s, lambda: cuda_set(s, to, value, size)):
        return codes.SUCCESS
    if s.cuda.sticky:
        return int(s.cuda.fail(s.cuda.sticky))
    block = s.memory.find(to)
    if block is None or not block.device:
        message = "cudaMemset of memory that is not the card's"
        return refuse(s, codes.INVALID_VALUE, message, "memset is for the host", access="memset")
    if size > block.end - to or size < 0:
        message = f"cudaMemset of {size} bytes goes past the end of {describe(block)}"
        return refuse(s, codes.INVALID_VALUE, message, f"it has {block.end - to} bytes here", access="memset")
    s.memory.set(to, value, size)
    block.written = True
    s.cuda.computed(size / s.cuda.machine.bandwidth)
    return codes.SUCCESS


@runtime("__cuda_set2d")
def cuda_set2d(s: Session, to: int, pitch: int, value: int, width: int, height: int) -> int:
    if captured(s, lambda: cuda_set2d(s, to, pitch, value, width, height)):
        return codes.SUCCESS  # one node of the graph, however many rows
    for row in range(height):
        code = int(cuda_set(s, to + row * pitch, value, width))
        if code:
            return code
    return codes.SUCCESS


@runtime("__cuda_symbol")
def cuda_symbol(s: Session, symbol: int, size: int, offset: int, data: int, kind: int, to: int) -> int:
    block = s.memory.find(symbol)
    if block is None or block.kind != "__device__":
        message = f"{argument_name(s, 0 if to else 1)} is no __device__ or __constant__ variable"
        hint = "name the variable itself, not a pointer or its name in quotes"
        return refuse(s, codes.BAD_SYMBOL, message, hint, access="symbol")
    if offset + size > block.size:
        message = f"{size} bytes at {offset} do not fit {block.name} of {block.size} bytes"
        return refuse(s, codes.INVALID_VALUE, message, "sizes are in bytes", array=block.name, access="symbol")
    other = side(s, data)
    room = _bytes_left(s, data)
    if not other or size > room:
        message = f"the copy of {size} bytes goes past the end of {argument_name(s, 1 if to else 0)}"
        return refuse(s, codes.INVALID_VALUE, message, f"it has {room} bytes", access="symbol")
    if to:
        move(s, symbol + offset, data, size)
    else:
        move(s, data, symbol + offset, size)
        s.memory.change(data, size, give=INIT_BIT)  # device variables start at zero
        block.copied = True
    s.cuda.copied(size)
    return codes.SUCCESS


def synchronised(s: Session) -> None:
    """The host has synchronised with the card."""
    s.cuda.outstanding = 0
    s.cuda.unfinished.clear()
    for address in s.cuda.unsynchronised:
        block = s.memory.find(address)
        if block is not None and not block.freed:
            s.memory.change(address, block.size, keep=255 - BUSY)
    s.cuda.unsynchronised.clear()
