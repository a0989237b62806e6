"""Collects findings of many lanes: grouped by kind and place, with exact counts and the first touches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.findings import Finding, Kind, Touch
from tilewise.emulator.machine.lanes import Lanes
from tilewise.emulator.source.source import Source, Span


class Collector:
    def __init__(self, source: Source, limits: Limits) -> None:
        self.source = source
        self.limits = limits
        self.found: dict[tuple[Any, ...], Finding] = {}

    def add(
        self,
        c: Lanes,
        kind: Kind,
        span: Span,
        lanes: np.ndarray,
        *,
        array: str = "",
        access: str = "",
        hazard: str = "",
        scope: str = "",
        requested: list[np.ndarray] | None = None,
        reached: list[np.ndarray] | None = None,
        outside: np.ndarray | None = None,
        others: np.ndarray | None = None,
        other_span: Span | None = None,
        message: str = "",
    ) -> Finding:
        """`lanes` are lane numbers of the batch. The other arrays have at least the first `limits.touches` of them:
        coordinates requested and reached, whether the place is outside, and the other thread of a race as
        block * threads + thread."""
        key = (kind, span.line, span.column, array, access, hazard, scope)
        finding = self.found.get(key)
        if finding is None:
            place = self.source.place(span.line, span.column, span.length)
            other = None
            if other_span is not None:
                other = self.source.place(other_span.line, other_span.column, other_span.length)
            finding = Finding(kind, message, place, array, access, hazard, scope, other_place=other)
            self.found[key] = finding
        finding.count += len(lanes)
        room = self.limits.touches - len(finding.touches)
        geometry = c.geometry
        for i in range(min(room, len(lanes))):
            lane = int(lanes[i])
            other_party = None
            if others is not None and int(others[i]) >= 0:
                block, thread = divmod(int(others[i]), geometry.threads)
                other_party = (geometry.block_name(block), geometry.thread_name(thread))
            out = outside is not None and bool(outside[i])
            finding.touches.append(
                Touch(
                    geometry.block_name(int(c.block[lane])),
                    geometry.thread_name(int(c.thread[lane])),
                    c.phase,
                    None if requested is None else tuple(int(a[i]) for a in requested),
                    None if reached is None or out else tuple(int(r[i]) for r in reached),
                    other_party,
                )
            )
        return finding

    def findings(self) -> list[Finding]:
        return list(self.found.values())
