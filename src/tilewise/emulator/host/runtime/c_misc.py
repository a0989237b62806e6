"""The rest of the C library: deterministic clocks, conversion of text to numbers, exit."""

from __future__ import annotations

import re
import struct
import time

from tilewise.emulator.host.runtime.c_memory import string, writable
from tilewise.emulator.host.runtime.session import Session, runtime
from tilewise.emulator.machine.findings import Kind

START = 1_700_000_000_000_000_000  # nanoseconds: the first value of the deterministic clock
TICK = 1_000  # added by every call, so that no difference is zero


def now(s: Session) -> int:
    if s.options.real_time:
        return time.time_ns()
    moved = s.state.get("clock", 0) + TICK
    s.state["clock"] = moved
    card = s.cuda.nanoseconds if s.cuda is not None else 0
    return START + int(moved) + int(card)


@runtime("__now_ns")
def now_ns(s: Session) -> int:
    return now(s)


@runtime("time")
def time_(s: Session, pointer: int) -> int:
    seconds = now(s) // 1_000_000_000
    if pointer and writable(s, pointer, 8):
        s.memory.put(pointer, seconds.to_bytes(8, "little"))
    return seconds


@runtime("clock")
def clock(s: Session) -> int:
    return (now(s) - START) // 1000 if not s.options.real_time else time.process_time_ns() // 1000


@runtime("sleep", "usleep")
def sleep(s: Session, duration: int) -> int:
    return 0


@runtime("exit")
def exit_(s: Session, status: int) -> None:
    s.gave_up = status != 0
    with s.memory.running():
        s.leave(status)


@runtime("_exit", "_Exit", "quick_exit")
def exit_at_once(s: Session, status: int) -> None:
    s.finish(status)


@runtime("abort")
def abort(s: Session) -> None:
    s.finish(134, "abort", f"line {s.line}: abort")


@runtime("atexit")
def atexit(s: Session, function: int) -> int:
    s.at_exit.append((function, None))
    return 0


@runtime("rt_static_destructor")
def static_object(s: Session, destroyer: int, address: int) -> None:
    s.at_exit.append((destroyer, address))


@runtime("getenv")
def getenv(s: Session, name: int) -> int:
    string(s, name)
    return 0


@runtime("system")
def system(s: Session, command: int) -> int:
    text = string(s, command).decode("utf-8", "replace")
    s.faults.notes.append(f"line {s.line}: system({text!r}) was not run: programs here start no others")
    return 0


@runtime("__assert_failed")
def assert_failed(s: Session, text: int, file: int, line: int) -> None:
    condition = string(s, text).decode("utf-8", "replace")
    name = string(s, file).decode("utf-8", "replace")
    s.wanted = s.wanted or s.not_given()
    if not s.wanted:  # else it says that something is missing
        s.faults.add(Kind.ASSERTION, s.line, f"assert({condition}) does not hold", access="assert")
    s.console.error(f"{name}:{line}: Assertion `{condition}' failed.\n".encode())
    s.finish(134, "abort", f"line {s.line}: an assertion failed")


INTEGER = re.compile(rb"\s*([-+]?)(0[xX](?=[0-9a-fA-F]))?([0-9a-zA-Z]*)")
FLOAT = re.compile(rb"\s*([-+]?(?:inf(?:inity)?|nan|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?))", re.I)


def _integer(data: bytes, base: int) -> tuple[int, int]:
    """The value and the end of its text, as strtol defines them."""
    match = INTEGER.match(data)
    assert match is not None
    sign, prefix, digits = match.groups()
    if prefix and base in (0, 16):
        base = 16
    elif prefix:
        digits = b"0"
        prefix = None
    elif base == 0:
        base = 8 if digits.startswith(b"0") and len(digits) > 1 else 10
    taken = 0
    while taken < len(digits) and int(chr(digits[taken]), 36) < base:
        taken += 1
    if not taken:
        return 0, 0
    value = int(digits[:taken], base)
    return (-value if sign == b"-" else value), match.start(3) + taken


def _store_end(s: Session, pointer: int, address: int) -> None:
    if pointer and writable(s, pointer, 8):
        s.memory.put(pointer, address.to_bytes(8, "little"))


@runtime("atoi")
def atoi(s: Session, text: int) -> int:
    value = _integer(string(s, text), 10)[0]
    return (max(-(1 << 63), min((1 << 63) - 1, value)) + (1 << 31)) % (1 << 32) - (1 << 31)


@runtime("atol", "atoll")
def atol(s: Session, text: int) -> int:
    return max(-(1 << 63), min((1 << 63) - 1, _integer(string(s, text), 10)[0]))


@runtime("strtol", "strtoll")
def strtol(s: Session, text: int, end: int, base: int) -> int:
    value, at = _integer(string(s, text), base)
    _store_end(s, end, text + at)
    return max(-(1 << 63), min((1 << 63) - 1, value))


@runtime("strtoul", "strtoull")
def strtoul(s: Session, text: int, end: int, base: int) -> int:
    value, at = _integer(string(s, text), base)
    _store_end(s, end, text + at)
    value = min((1 << 64) - 1, value) & (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _real(data: bytes) -> tuple[float, int]:
    match = FLOAT.match(data)
    return (float(match[1]), match.end()) if match else (0.0, 0)


@runtime("atof")
def atof(s: Session, text: int) -> float:
    return _real(string(s, text))[0]


@runtime("strtod")
def strtod(s: Session, text: int, end: int) -> float:
    value, at = _real(string(s, text))
    _store_end(s, end, text + at)
    return value


@runtime("strtof")
def strtof(s: Session, text: int, end: int) -> float:
    return float(struct.unpack("<f", struct.pack("<f", strtod(s, text, end)))[0])


@runtime("strerror")
def strerror(s: Session, code: int) -> int:
    return s.memory.constant(b"Success\0" if code == 0 else f"error {code}\0".encode())


@runtime("__builtin_inff", "__builtin_inf")
def infinity(s: Session) -> float:
    return float("inf")


@runtime("__builtin_nanf")
def not_a_number(s: Session) -> float:
    return float("nan")
