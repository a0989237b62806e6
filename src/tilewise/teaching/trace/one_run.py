"""What came of one launch of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.emulator.machine.findings import Basis, Finding, Severity

Shape = tuple[int, int, int]
SCHEMA = 1


@dataclass(frozen=True)
class Run:
    """One launch: what was bound to what, what it counted, what it found."""

    file: str
    entry: str
    shape: Shape | None
    tile: int | None
    grid: tuple[int, int, int]  # (x, y, z), as CUDA writes it
    block: tuple[int, int, int]
    binding: tuple[str, ...]  # one line an argument: "d_M: M, 3x3 float"
    supplied: tuple[str, ...]  # names the file did not define and that were supplied: "TILE_WIDTH = 2"
    counters: Mapping[str, int]
    findings: tuple[Finding, ...]
    output: str = ""  # what printf wrote
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)  # bound arrays afterwards
    origin: str = "given"  # or "own", as main launches it, or "probe", a shape that finds bugs
    reading: str = ""  # under which other reading P is right

    @property
    def faults(self) -> tuple[Finding, ...]:
        """What was found wrong; not what hangs on a launch that nobody wrote."""
        return tuple(f for f in self.findings if f.severity is Severity.FAULT and f.basis is not Basis.UNDECIDED)

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "entry": self.entry,
            "shape": list(self.shape) if self.shape else None,
            "tile": self.tile,
            "grid": list(self.grid),
            "block": list(self.block),
            "binding": list(self.binding),
            "supplied": list(self.supplied),
            "counters": dict(self.counters),
            "findings": [f.to_json() for f in self.findings],
            "output": self.output,
            "origin": self.origin,
            "reading": self.reading,
        }
