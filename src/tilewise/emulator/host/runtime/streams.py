"""C++ streams: output formatted with width, precision and flags; input."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from tilewise.emulator.host.runtime.c_memory import addressable, string, writable
from tilewise.emulator.host.runtime.program_files import opened, put
from tilewise.emulator.host.runtime.session import Session, runtime
from tilewise.emulator.machine.formatting import check_places, real
from tilewise.errors import EngineError


@dataclass
class OutputStream:
    """State of an output stream; `target`: 1 (stdout), 2 (stderr), or its own number."""

    target: int
    width: int = 0
    precision: int = 6
    fill: bytes = b" "
    fixed: str = ""  # "f" or "e"
    base: int = 10
    align: int = 0  # 1 left, 2 internal
    boolalpha: bool = False
    plus: bool = False
    point: bool = False
    upper: bool = False
    showbase: bool = False
    buffer: bytearray | None = None
    handle: object = None
    read_from: str = ""  # the file of a std::fstream that is open for reading: writing is refused


SETTINGS: tuple[tuple[str, Callable[[int], object]], ...] = (  # by their numbers in streams.h
    ("width", int), ("precision", int), ("fill", lambda v: bytes([v & 255])), ("fixed", lambda v: ("", "f", "e")[v]),
    ("base", int), ("align", int), ("boolalpha", bool), ("plus", bool), ("point", bool), ("upper", bool),
    ("showbase", bool),
)  # fmt: skip


def out(s: Session, number: int) -> OutputStream:
    known: dict[int, OutputStream] = s.state.setdefault("out", {1: OutputStream(1), 2: OutputStream(2)})
    return known.get(number) or OutputStream(number, buffer=bytearray())


def write_padded(s: Session, o: OutputStream, data: bytes) -> None:
    if o.width > len(data):
        check_places(o.width)
        pad = o.fill * (o.width - len(data))
        if o.align == 1:
            data += pad
        elif o.align == 2 and data[:1] in (b"-", b"+"):
            data = data[:1] + pad + data[1:]
        else:
            data = pad + data
    o.width = 0
    if o.read_from:
        raise EngineError(
            f"std::fstream: {o.read_from} is open for reading, and writing into the midst of it is not supported: "
            "open it with std::ios::out, or std::ios::app to write at its end"
        )
    if o.buffer is not None:
        o.buffer += data
    elif o.handle is not None:
        put(s, o.handle, data)
    elif o.target == 1:
        s.console.write(data)
    else:
        s.console.error(data)


@runtime("__os_i")
def os_integer(s: Session, number: int, value: int, size: int) -> None:
    o = out(s, number)
    if o.base == 10:
        text = f"{value:+d}" if o.plus else str(value)
    else:
        value &= (1 << 8 * (size & 15)) - 1
        text = f"{value:x}" if o.base == 16 else f"{value:o}"
        if o.showbase:
            text = ("0x" if o.base == 16 else "0") + text
        text = text.upper() if o.upper else text
    write_padded(s, o, text.encode())


@runtime("__os_u")
def os_unsigned(s: Session, number: int, value: int, size: int) -> None:
    os_integer(s, number, value & (1 << 8 * (size & 15)) - 1, size)


@runtime("__os_d")
def os_real(s: Session, number: int, value: float) -> None:
    o = out(s, number)
    write_padded(s, o, real_text(o, value))


def real_text(o: OutputStream, value: float) -> bytes:
    places = o.precision if o.precision >= 0 else 6  # a negative precision is ignored, as by printf
    check_places(places)
    kind = o.fixed or "g"
    flags = (b"+" if o.plus else b"") + (b"#" if o.point and kind == "g" else b"")
    text = real(flags, 0, places or int(kind == "g"), kind.encode(), value)
    return text.upper() if o.upper else text


@runtime("__os_s")
def os_string(s: Session, number: int, text: int) -> None:
    write_padded(s, out(s, number), string(s, text) if text else b"")


@runtime("__os_n")
def os_bytes(s: Session, number: int, text: int, size: int) -> None:
    write_padded(s, out(s, number), _bytes(s, text, size))


def _bytes(s: Session, address: int, size: int) -> bytes:
    return s.memory.view(address, size).tobytes() if size and addressable(s, address, size) else b""


@runtime("__os_c")
def os_character(s: Session, number: int, c: int) -> None:
    write_padded(s, out(s, number), bytes([c & 255]))


@runtime("__os_b")
def os_boolean(s: Session, number: int, value: int) -> None:
    o = out(s, number)
    write_padded(s, o, (b"true" if value else b"false") if o.boolalpha else (b"1" if value else b"0"))


@runtime("__os_p")
def os_pointer(s: Session, number: int, value: int) -> None:
    write_padded(s, out(s, number), f"{value:#x}".encode() if value else b"0")


@runtime("__os_set")
def os_set(s: Session, number: int, what: int, value: int) -> int:
    """Set a member of SETTINGS; the old value of width or precision, else 0."""
    o = out(s, number)
    name, kind = SETTINGS[what]
    old = getattr(o, name)
    setattr(o, name, kind(value))
    return int(old) if what < 2 else 0


@runtime("__os_flush")
def os_flush(s: Session, number: int) -> None:
    o = out(s, number)
    if o.target == 1 and o.buffer is None:
        s.console.flush_requested()


@runtime("__os_new")
def os_new(s: Session) -> int:
    out(s, 1)
    known = s.state["out"]
    number = len(known) + 1
    known[number] = OutputStream(number, buffer=bytearray())
    return number


@runtime("__os_size")
def os_size(s: Session, number: int) -> int:
    return len(out(s, number).buffer or b"")


@runtime("__os_copy")
def os_copy(s: Session, number: int, to: int) -> None:
    s.memory.put(to, bytes(out(s, number).buffer or b""))


@runtime("__os_clear")
def os_clear(s: Session, number: int, text: int, size: int) -> None:
    out(s, number).buffer = bytearray(_bytes(s, text, size))


@runtime("__os_file")
def os_file(s: Session, number: int, name: int, mode: int) -> int:
    from tilewise.emulator.host.runtime.c_stdio import open_file

    if mode == 8:
        out(s, number).read_from = string(s, name).decode("utf-8", "replace")
        return 1
    address = open_file(s, string(s, name).decode("utf-8", "replace"), "a" if mode else "w")
    if not address:
        return 0
    o = out(s, number)
    o.buffer, o.handle = None, s.state["streams"][address].handle
    return 1


# -- input


class InputStream:
    def __init__(self, data: bytes | None) -> None:
        self.data = data  # None: the program's stdin
        self.at = 0
        self.good = True

    def all(self, s: Session, pause: bool = False) -> bytes:
        if self.data is None:
            s.console.flush()
            self.data = sys.stdin.buffer.read()
        if self is source(s, 0) and not self.data:
            s.misses_input(pause)
        return self.data

    def take(self, s: Session, pause: bool = False) -> bytes:
        self.at += 1
        return self.all(s, pause)[self.at - 1 : self.at]


def source(s: Session, number: int) -> InputStream:
    known: dict[int, InputStream] = s.state.setdefault("in", {0: InputStream(None)})
    found = known.get(number)
    if found is None:  # a file that could not be opened
        found = InputStream(b"")
        found.good = False
    return found


@runtime("__is_new")
def is_new(s: Session, text: int, size: int) -> int:
    source(s, 0)
    known = s.state["in"]
    known[len(known)] = InputStream(_bytes(s, text, size))
    return len(known) - 1


@runtime("__is_file")
def is_file(s: Session, name: int) -> int:
    handle = opened(s, string(s, name).decode("utf-8", "replace"), "r")
    if handle is None:
        return -1
    source(s, 0)
    known = s.state["in"]
    with handle:
        known[len(known)] = InputStream(handle.read())
    return len(known) - 1


@runtime("__is_word")
def is_word(s: Session, number: int, kind: int) -> int:
    """Extract a word (0), line (1), character (2) or non-space character (3); its length, -1 at the end of input."""
    i = source(s, number)
    c = i.take(s, pause=kind > 1)
    if kind in (0, 3):
        while c.isspace():
            c = i.take(s)
    if not c:
        i.good = False
        if s.wanted == "input" and not i.data and kind < 2:
            s.lacks_input()
        return -1
    word = b""
    while c and ((kind == 1 and c != b"\n") or (kind == 0 and not c.isspace()) or (kind > 1 and not word)):
        word += c
        c = i.take(s)
    if c and kind != 1:
        i.at -= 1
    s.state["word"] = word
    return len(word)


@runtime("__is_number")
def is_number(s: Session, number: int, kind: int) -> int:
    """Extract the text of a number: 1 if there is one."""
    import re

    i = source(s, number)
    data = i.all(s)
    pattern = rb"\s*([-+]?\d+)" if kind == 0 else rb"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    match = re.compile(pattern).match(data, i.at)
    if match is None:
        i.good = False
        if s.wanted == "input" and not data:
            s.lacks_input()
        return 0
    i.at = match.end()
    s.state["word"] = match[1]
    return 1


@runtime("__is_integer")
def is_integer(s: Session) -> int:
    return max(-(1 << 63), min((1 << 63) - 1, int(s.state["word"])))


@runtime("__is_real")
def is_real(s: Session) -> float:
    return float(s.state["word"])


@runtime("__is_copy")
def is_copy(s: Session, to: int) -> None:
    word = s.state["word"]
    if writable(s, to, len(word)):
        s.memory.put(to, word)


@runtime("__is_good")
def is_good(s: Session, number: int) -> int:
    return int(source(s, number).good)


@runtime("__is_at")
def is_at(s: Session, number: int, to: int, origin: int) -> int:
    """tellg (to = -1), peek (to = -2), else seekg to `to` behind the begin (0), here (1) or the end (2)."""
    i = source(s, number)
    data = i.all(s)
    if to == -2:
        return data[i.at] if i.at < len(data) else -1
    if to != -1 or origin:
        i.at = max(0, min(len(data), to + (0, i.at, len(data))[origin]))
    return min(i.at, len(data))


@runtime("__is_mend")
def is_clear(s: Session, number: int) -> None:
    """The end of input was met after something had been read: no failure yet."""
    source(s, number).good = True
