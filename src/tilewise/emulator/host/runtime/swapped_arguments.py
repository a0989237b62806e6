"""Swapped arguments of a launch: `f<<<…>>>(a, rows, cols)` of a kernel f(a, cols, rows).

A transpose may intend it, so it is a fault only if the same launch has other faults, else a note."""

from __future__ import annotations

import struct
from typing import Any

from tilewise.emulator.host.runtime.session import Session
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.parse.types import Scalar

WENT_WRONG = frozenset({Kind.OUT_OF_BOUNDS, Kind.UNINITIALISED_READ, Kind.RACE, Kind.SILENT_OVERRUN, Kind.NULL_POINTER})


def swapped(s: Session, site: Any, arguments: int) -> list[tuple[str, str, int, int]]:
    """Pairs of arguments that have the name of each other's parameter, and different values."""
    names = [p.name.lower() for p in site.kernel.parameters]
    texts = [text.strip().lower() for text in site.node.written]
    found = []
    for i in range(min(len(names), len(texts))):
        for j in range(i + 1, min(len(names), len(texts))):
            if texts[i] == names[j] and texts[j] == names[i] and names[i] != names[j]:
                one, two = (_integer(s, site, arguments, k) for k in (i, j))
                if one is not None and two is not None and one != two:
                    found.append((site.node.written[i].strip(), site.node.written[j].strip(), one, two))
    return found


def _integer(s: Session, site: Any, arguments: int, which: int) -> int | None:
    type_ = site.parameters[which]
    if not isinstance(type_, Scalar) or type_.kind != "int":
        return None
    data = s.memory.view(arguments + site.offsets[which], type_.size).tobytes()
    return int(struct.unpack("<" + {1: "b", 2: "h", 4: "i", 8: "q"}[type_.size], data)[0])


def report_swapped(s: Session, site: Any, arguments: int, before: set[int]) -> None:
    """After a launch; `before`: ids of the findings before it."""
    for one, two, first, second in swapped(s, site, arguments):
        name, line = site.kernel.name, site.node.line
        message = f"{name} takes ({two}, {one}) here and is given ({one}, {two}), that is {first} and {second}"
        if any(f.kind in WENT_WRONG and id(f) not in before for f in s.faults.all()):
            s.faults.add(Kind.ARGUMENT, line, message, f"exchange {one} and {two}", array=one, access="launch")
        else:
            note = f"line {line}: {message}: the other way round, if it is not meant"
            if note not in s.faults.notes:
                s.faults.notes.append(note)
