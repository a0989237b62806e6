"""The exception in flight, and the one that is being handled."""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.emulator.host.runtime.host_faults import throw, throw_what
from tilewise.emulator.host.runtime.session import Session, runtime

ANY = -1


@dataclass
class Raised:
    address: int
    parts: dict[int, int]  # offsets of its class and bases, by their numbers
    type_id: int
    what: int
    line: int


@dataclass
class Exceptions:
    in_flight: Raised | None = None
    caught: Raised | None = None


def _state(s: Session) -> Exceptions:
    found: Exceptions = s.state.setdefault("exceptions", Exceptions())
    return found


@runtime("rt_exception_memory")
def exception_memory(s: Session, size: int) -> int:
    return s.memory.allocate(max(1, size), "exception", s.line).address


@runtime("rt_raise")
def raise_(s: Session, address: int, thrown: int, type_id: int, what: int, line: int) -> None:
    parts: dict[int, int] = {}
    for number, offset in s.program.thrown[thrown]:
        parts.setdefault(number, offset)
    _state(s).in_flight = Raised(address, parts, type_id, what, line)


@runtime("rt_rethrow")
def rethrow(s: Session, line: int) -> None:
    state = _state(s)
    if state.caught is None:
        s.console.error(b"terminate called without an active exception\n")
        s.finish(134, "abort", f"line {line}: throw; where no exception is being handled")
    state.in_flight = state.caught


@runtime("rt_catch")
def catch(s: Session, number: int) -> int:
    """The address of the exception, or its base, for a handler of this type; 0 if the handler does not match."""
    state = _state(s)
    raised = state.in_flight
    if raised is None or (number != ANY and number not in raised.parts):
        return 0
    state.in_flight, state.caught = None, raised
    return raised.address + (0 if number == ANY else raised.parts[number])


@runtime("rt_uncaught")
def uncaught(s: Session) -> None:
    """After main: an uncaught exception ends the program."""
    raised = _state(s).in_flight
    if raised is None:
        return
    if raised.what:
        throw_what(s, raised.type_id, raised.what, raised.line)
    else:
        throw(s, raised.type_id, raised.line)
