"""`check` for editors: diagnostics by line, and the memory traffic of every line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.events import NONE, EventKind
from tilewise.emulator.machine.findings import Basis, Finding, Severity
from tilewise.emulator.source.source import read_source
from tilewise.errors import KernelError, TilewiseError
from tilewise.i18n.messages import say
from tilewise.teaching.trace import check, trace
from tilewise.teaching.trace.findings_text import change_of, evidence_of, message_of
from tilewise.teaching.trace.grouping import by_place
from tilewise.teaching.trace.trace_data import TraceData

LEVELS = {Basis.SEEN: "error", Basis.OTHER_SIZES: "warning", Basis.UNDECIDED: "information"}


def diagnosed(text: str, path: Path | None, language: str, limits: Limits) -> dict[str, Any]:
    """`diagnostics` and `hovers` (by line) of a text. If the file has the same text it is checked instead, so that
    headers beside it are found."""
    kernel: str | Path = text if "__global__" in text else f"{text}\n// __global__"
    try:
        if path is not None and read_source(path).text == text:
            kernel = path
    except TilewiseError:
        pass  # not saved yet
    try:
        report = check(kernel, limits=limits)
    except KernelError as error:
        return {"diagnostics": [_refused(str(error).splitlines()[0], error.line, error.column)], "hovers": {}}
    except TilewiseError as error:
        return {"diagnostics": [_refused(str(error), None, None)], "hovers": {}}
    found = [_diagnostic(one.finding, language) for one in by_place(report.runs, tuple(Severity))]
    try:
        hovers = traffic_of(trace(kernel, limits=limits, blocks="all"), language)
    except TilewiseError:
        hovers = {}
    return {"diagnostics": found, "hovers": hovers}


def traffic_of(made: TraceData, language: str = "en") -> dict[int, str]:
    """By line: the number of elements of each array that its threads load or store, and of distinct ones."""
    texts: dict[int, list[str]] = {}
    shape = "x".join(map(str, made.run.shape)) if made.run.shape else "–"
    for kind, key in ((EventKind.LOAD, "load"), (EventKind.STORE, "store"), (EventKind.USE, "use")):
        events = made.events.of(kind)
        places = np.stack([events.line, events.array], dtype=np.int64)
        for line, array in np.unique(places, axis=1).T.tolist():
            mine = events.where((events.line == line) & (events.array == array))
            row, col = (mine.got_row, mine.got_col) if kind != EventKind.USE else (mine.row, mine.col)
            cells = np.stack([mine.block if kind == EventKind.USE else np.zeros_like(row), row, col])
            distinct = len(np.unique(cells[:, row != NONE], axis=1).T)
            values = {"count": len(mine), "cells": distinct, "ratio": f"{len(mine) / max(1, distinct):.3g}"}
            texts.setdefault(line, []).append(say(language, f"hover.{key}", array=made.names[array], **values))
    return {line: "\n\n".join([say(language, "hover.at", shape=shape), *lines]) for line, lines in texts.items()}


def _diagnostic(f: Finding, language: str) -> Mapping[str, Any]:
    level = LEVELS[f.basis] if f.severity is Severity.FAULT else "hint"
    text = "\n".join(filter(None, (message_of(f, language), evidence_of(f, language), change_of(f, language))))
    place = f.place
    return {
        "line": place.line if place else 1, "column": place.column if place else 1,
        "length": max(1, place.length) if place else 1, "level": level, "code": str(f.kind), "message": text,
    }  # fmt: skip


def _refused(text: str, line: int | None, column: int | None) -> dict[str, Any]:
    return {"line": line or 1, "column": column or 1, "length": 1, "level": "error", "code": "refused", "message": text}
