"""malloc, free, memcpy, strlen and similar functions, with checks of their arguments."""

from __future__ import annotations

from tilewise.emulator.host.runtime.host_faults import report_access
from tilewise.emulator.host.runtime.memory import INIT
from tilewise.emulator.host.runtime.releases import assigned_name, release
from tilewise.emulator.host.runtime.session import Session, runtime

PIECE = 1 << 20  # bytes of a range whose states are inspected one by one
ALLOCATED = ("malloc", "calloc", "realloc", "strdup")


def readable(s: Session, address: int, size: int) -> bool:
    """Whether all bytes are the host's and initialised; else a fault is reported."""
    return _range(s, address, size, "read", INIT)


def writable(s: Session, address: int, size: int) -> bool:
    return _range(s, address, size, "write", 1)


def addressable(s: Session, address: int, size: int) -> bool:
    """Whether all bytes are the host's, initialised or not; else a read of them is reported."""
    return _range(s, address, size, "read", 1)


def _range(s: Session, address: int, size: int, access: str, wanted: int) -> bool:
    if size == 0:
        return True
    memory = s.memory
    if size < 0:  # a size_t above 2^63
        size += 1 << 64
    if memory.inside(address, size):
        if memory.has(address, size, wanted):
            return True
        while size > PIECE and memory.has(address, PIECE, wanted):
            address, size = address + PIECE, size - PIECE
        size = min(size, PIECE)
        state = memory.state(address, size)
        bad = (state & wanted) != wanted
        first = int(bad.argmax())
        if wanted == INIT and (state & 1).all():
            report_access(s, address + first, 1, s.line, access)
            return True
        hard = (state & 1) != 1
        if hard.any():
            first = int(hard.argmax())
        report_access(s, address + first, min(size - first, 4), s.line, access)
        return False
    report_access(s, address, size, s.line, access)
    return False


def string(s: Session, address: int, most: int = 1 << 20) -> bytes:
    """A string argument up to its zero, or its first `most` bytes, checked."""
    most &= (1 << 63) - 1  # a size_t
    literals: dict[int, bytes] | None = s.state.get("literals")
    if literals is None:
        literals = s.state["literals"] = {at: text.partition(b"\0")[0] for text, at in s.program.texts.items()}
    if address in literals:
        return literals[address][:most]
    if address == 0 or not s.memory.inside(address):
        report_access(s, address, 1, s.line, "read")
        return b""
    data = s.memory.text(address, most)
    readable(s, address, min(len(data) + 1, most))
    return data


@runtime("malloc")
def malloc(s: Session, size: int) -> int:
    if size < 0:
        return 0
    return s.memory.allocate(max(1, size), "malloc", s.line, assigned_name(s, s.line)).address


@runtime("calloc")
def calloc(s: Session, count: int, size: int) -> int:
    if count < 0 or size < 0:
        return 0
    return s.memory.allocate(max(1, count * size), "calloc", s.line, assigned_name(s, s.line), state=INIT).address


@runtime("aligned_alloc")
def aligned_alloc(s: Session, align: int, size: int) -> int:
    made = s.memory.allocate(max(1, size), "malloc", s.line, assigned_name(s, s.line), align=max(16, align))
    return made.address


@runtime("posix_memalign")
def posix_memalign(s: Session, pointer: int, align: int, size: int) -> int:
    if writable(s, pointer, 8):
        s.memory.put(pointer, aligned_alloc(s, align, size).to_bytes(8, "little"))
    return 0


@runtime("realloc")
def realloc(s: Session, old: int, size: int) -> int:
    made = s.memory.allocate(max(1, size), "realloc", s.line, assigned_name(s, s.line))
    if old:
        block = s.memory.find(old)
        if block is None or block.freed or block.address != old:
            release(s, old, "realloc", ALLOCATED, s.line)
            return made.address
        keep = min(size, block.size)
        s.memory.move(made.address, old, keep)
        release(s, old, "realloc", ALLOCATED, s.line)
    return made.address


@runtime("free")
def free(s: Session, address: int) -> None:
    release(s, address, "free", ALLOCATED, s.line)


@runtime("memset")
def memset(s: Session, to: int, value: int, size: int) -> int:
    if writable(s, to, size):
        s.memory.set(to, value, size, keep=0, give=INIT)
    return to


@runtime("memcpy", "memmove")
def memcpy(s: Session, to: int, source: int, size: int) -> int:
    memory = s.memory
    if size == 0:
        return to
    inside = size > 0 and memory.inside(source, size) and memory.has(source, size, 1)
    if not inside:
        report_access(s, source, size if size > 0 else size + (1 << 64), s.line, "read")
        return to
    if writable(s, to, size):
        memory.move(to, source, size)
    return to


@runtime("memcmp")
def memcmp(s: Session, a: int, b: int, size: int) -> int:
    if not (readable(s, a, size) and readable(s, b, size)):
        return 0
    one, two = s.memory.view(a, size).tobytes(), s.memory.view(b, size).tobytes()
    return (one > two) - (one < two)


@runtime("strlen")
def strlen(s: Session, address: int) -> int:
    return len(string(s, address))


@runtime("strcmp")
def strcmp(s: Session, a: int, b: int) -> int:
    one, two = string(s, a), string(s, b)
    return (one > two) - (one < two)


@runtime("strcasecmp")
def strcasecmp(s: Session, a: int, b: int) -> int:
    one, two = string(s, a).lower(), string(s, b).lower()
    return (one > two) - (one < two)


@runtime("strncmp")
def strncmp(s: Session, a: int, b: int, n: int) -> int:
    one, two = string(s, a, n), string(s, b, n)
    return (one > two) - (one < two)


def put_text(s: Session, to: int, data: bytes) -> None:
    if writable(s, to, len(data) + 1):
        s.memory.put(to, data + b"\0")


@runtime("strcpy")
def strcpy(s: Session, to: int, source: int) -> int:
    put_text(s, to, string(s, source))
    return to


@runtime("strncpy")
def strncpy(s: Session, to: int, source: int, n: int) -> int:
    if writable(s, to, n):
        s.memory.put(to, string(s, source, n).ljust(n, b"\0"))
    return to


@runtime("strcat")
def strcat(s: Session, to: int, source: int) -> int:
    data = string(s, source)
    put_text(s, to + len(string(s, to)), data)
    return to


@runtime("strchr")
def strchr(s: Session, text: int, c: int) -> int:
    data = string(s, text) + b"\0"
    at = data.find(bytes([c & 255]))
    return text + at if at >= 0 else 0


@runtime("strrchr")
def strrchr(s: Session, text: int, c: int) -> int:
    at = string(s, text).rfind(bytes([c & 255]))
    return text + at if at >= 0 else 0


@runtime("strstr")
def strstr(s: Session, text: int, part: int) -> int:
    at = string(s, text).find(string(s, part))
    return text + at if at >= 0 else 0


@runtime("strtok")
def strtok(s: Session, text: int, marks: int) -> int:
    at = text or s.state.get("strtok", 0)
    if not at:
        return 0
    stop = string(s, marks)
    data = string(s, at)
    start = len(data) - len(data.lstrip(stop)) if stop else 0
    if start >= len(data):
        s.state["strtok"] = 0
        return 0
    end = next(
        (i for i in range(start, len(data)) if data[i : i + 1] in [stop[j : j + 1] for j in range(len(stop))]), -1
    )
    if end < 0:
        s.state["strtok"] = 0
    else:
        s.memory.put(at + end, b"\0")
        s.state["strtok"] = at + end + 1
    return int(at + start)


@runtime("strdup")
def strdup(s: Session, text: int) -> int:
    data = string(s, text)
    made = s.memory.allocate(len(data) + 1, "strdup", s.line)
    s.memory.put(made.address, data + b"\0")
    return made.address
