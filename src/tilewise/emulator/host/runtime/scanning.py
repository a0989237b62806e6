"""Input conversions of scanf."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

from tilewise.emulator.host.runtime.c_memory import put_text, writable
from tilewise.emulator.host.runtime.session import Session
from tilewise.emulator.machine.findings import Kind

SPEC = re.compile(rb"%(\*)?(\d+)?(hh|h|ll|l|z|L)?(\[\^?\]?[^]]*\]|.)", re.S)
NUMBER = {"d": rb"[-+]?\d*\Z", "f": rb"[-+]?(\d+\.?\d*|\.\d*)?([eE]?[-+]?\d*)?\Z", "x": rb"[-+]?(0[xX])?[0-9a-fA-F]*\Z"}


def scan(s: Session, format_: bytes, arguments: list[tuple[int, int]], take: Callable[[], bytes]) -> tuple[int, bytes]:
    """The number of converted values (-1 at the end of input), and the lookahead character."""
    lookahead = take()
    done, used, at = 0, 0, 0
    while at < len(format_):
        if format_[at : at + 1].isspace():
            while lookahead.isspace():
                lookahead = take()
            at += 1
            continue
        match = SPEC.match(format_, at)
        if format_[at : at + 1] != b"%" or match is None:
            if lookahead != format_[at : at + 1]:
                break
            lookahead = take()
            at += 1
            continue
        at = match.end()
        kind = match[4]
        if kind not in (b"c",) and not kind.startswith(b"["):
            while lookahead.isspace():
                lookahead = take()
        if not lookahead:
            return (done if done else -1), b""
        word, lookahead = _word(kind, int(match[2] or 1 << 20), lookahead, take)
        if not word:
            break
        if match[1]:
            continue
        if used >= len(arguments):
            break
        if not _store(s, kind, match[3] or b"", arguments[used], word):
            break
        used += 1
        done += 1
    return done, lookahead


def _word(kind: bytes, most: int, lookahead: bytes, take: Callable[[], bytes]) -> tuple[bytes, bytes]:
    if kind == b"c":
        most = 1 if most == 1 << 20 else most
        out = b""
        while lookahead and len(out) < most:
            out += lookahead
            lookahead = take()
        return out, lookahead
    good: Any
    if kind == b"s":
        good = lambda w: not w[-1:].isspace()  # noqa: E731
    elif kind.startswith(b"["):
        inside = re.compile(kind[:1] + kind[1:-1].replace(b"\\", b"\\\\") + b"]")
        good = lambda w: inside.match(w[-1:]) is not None  # noqa: E731
    else:
        family = "f" if kind in b"feEgG" else "x" if kind in b"xX" else "d"
        pattern = re.compile(NUMBER[family])
        good = lambda w: pattern.match(w) is not None  # noqa: E731
    out = b""
    while lookahead and len(out) < most and good(out + lookahead):
        out += lookahead
        lookahead = take()
    return out, lookahead


def _store(s: Session, kind: bytes, length: bytes, argument: tuple[int, int], word: bytes) -> bool:
    tag, address = argument
    if tag != 5:
        s.faults.add(
            Kind.FORMAT, s.line, "scanf needs addresses: an argument is a value", "write &name", access="scanf"
        )
        return False
    try:
        if kind in b"feEgG":
            data = struct.pack("<d", float(word)) if length == b"l" else struct.pack("<f", float(word))
        elif kind == b"c":
            data = word
        elif kind == b"s" or kind.startswith(b"["):
            put_text(s, address, word)
            return True
        else:
            size = {b"hh": 1, b"h": 2, b"l": 8, b"ll": 8, b"z": 8}.get(length, 4)
            number = int(word, 16 if kind in b"xX" else 10)
            data = (number & (1 << size * 8) - 1).to_bytes(size, "little")
    except (ValueError, OverflowError):
        return False
    if writable(s, address, len(data)):
        s.memory.put(address, data)
    return True
