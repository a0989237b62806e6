"""Hints from the whole kernel and its launch: a block that differs from the tile, parameters that are never read."""

from __future__ import annotations

from tilewise.emulator.machine.findings import Finding, Kind
from tilewise.emulator.machine.lanes import Geometry
from tilewise.emulator.machine.program import Program
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.parse.tree import Function
from tilewise.system.quantities import extent


def explain(findings: list[Finding], function: Function, program: Program, geometry: Geometry) -> None:
    """Improve hints by facts about the launch and the kernel."""
    tiles = {name: dims for name, _, dims, external in program.shared if not external and len(dims) == 2}
    bx, by, _ = geometry.block
    for finding in findings:
        dims = tiles.get(finding.array)
        if dims is not None and finding.kind in (Kind.UNINITIALISED_READ, Kind.OUT_OF_BOUNDS, Kind.SILENT_OVERRUN):
            square = dims[0] * dims[1]
            if by > 1 and dims != (by, bx) and dims != (by, bx + 1) and square != bx * by:
                threads = extent(geometry.block)
                finding.hint = (
                    f"blocks have {threads} threads, but the tile {finding.array} is {dims[0]} x {dims[1]}: launch "
                    f"blocks as large as the tile, or let every thread load several cells; {finding.hint}"
                )
        elif finding.kind is Kind.WRONG_PRODUCT:
            unread = never_read(function)
            if unread:
                one = f"; the parameter {unread[0]} is never read"
                finding.hint += one if len(unread) == 1 else f"; the parameters {', '.join(unread)} are never read"


def never_read(function: Function) -> list[str]:
    texts = {t.text for t in tokens_of(function.tokens or [])}
    return [p.name for p in function.parameters if p.name not in texts and not p.name.startswith("<")]
