"""One launch of a kernel: its grid and block, and its `Run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any

import numpy as np

from tilewise.emulator.check.prepared import Prepared
from tilewise.emulator.check.simulate import Simulation
from tilewise.emulator.machine.findings import Basis, Finding, Severity
from tilewise.errors import UsageError
from tilewise.teaching.trace.rungs import RungText

Shape = tuple[int, int, int]
SCHEMA = 1
ENTRY = "main"  # the entry of the program's own run


@dataclass(frozen=True)
class Run:
    """One launch: its arguments, its counters and its findings."""

    file: str
    entry: str
    shape: Shape | None
    tile: int | None
    grid: tuple[int, int, int]  # (x, y, z), as CUDA writes it
    block: tuple[int, int, int]
    binding: tuple[str, ...]  # one line per argument: "d_M: M, 3x3 float"
    supplied: tuple[str, ...]  # names the file did not define and that were supplied: "TILE_WIDTH = 2"
    counters: Mapping[str, int]
    findings: tuple[Finding, ...]
    output: str = ""  # what printf wrote
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)  # bound arrays after the launch
    origin: str = "given"  # or "own", as main launches it, or "probe", a shape that finds bugs
    reading: str = ""  # the other product (transposed, column-major, another semiring) that P is

    @property
    def faults(self) -> tuple[Finding, ...]:
        """Faults, without those that depend on a launch which the file does not contain."""
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


def launch_for(
    rung: RungText | None, shape: Shape | None, grid: Sequence[int] | None, block: Sequence[int] | None
) -> tuple[Sequence[int] | None, Sequence[int] | None]:
    """Grid and block: those given, else a rung's geometry; a file has its own launch."""
    if rung is None or shape is None:
        return grid, block
    return grid or rung.grid(shape), block or rung.geometry.block


def as_shape(shape: Any) -> Shape | None:
    if shape is None:
        return None
    try:
        parts = tuple(index(x) for x in shape)
    except TypeError:
        parts = ()
    if len(parts) != 3 or min(parts) < 1:
        raise UsageError(f"a shape is three positive whole numbers (m, k, n), not {shape}")
    return parts


def copied(args: Mapping[str, Any] | None) -> dict[str, Any]:
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in (args or {}).items()}


def run_of(prepared: Prepared, done: Simulation, origin: str = "given") -> Run:
    counters = dict(done.outcome.counters)
    counters["phases"] = done.outcome.phases
    for buffer in done.bound.buffers.values():
        counters[f"loads of {buffer.name}"] = buffer.loads
        if buffer.stores:
            counters[f"stores to {buffer.name}"] = buffer.stores
    if done.bound.matrices is not None and done.shape is not None:
        m, k, n = done.shape
        counters["loads without tiles"] = 2 * m * k * n
    costs = done.outcome.costs
    counters["shared passes"] = sum(c.units for c in costs.shared.values())
    counters["shared requests"] = sum(c.requests for c in costs.shared.values())
    counters["global sectors"] = sum(c.units for c in costs.globals.values())
    counters["global requests"] = sum(c.requests for c in costs.globals.values())
    counters["split warps"] = sum(b[1] for b in costs.branches.values())
    order = {Severity.FAULT: 0, Severity.COST: 1, Severity.NOTE: 2}
    findings = sorted(done.findings, key=lambda f: (order[f.severity], f.line, str(f.kind)))
    supplied = [f"{name} = {text}" for name, text in done.program.supplied.items()]
    return Run(
        prepared.loaded.source.name, done.program.entry, done.shape, done.prepared.loaded.width, done.geometry.grid,
        done.geometry.block, tuple(done.bound.lines), (*supplied, *done.notes), counters, tuple(findings),
        "".join(done.outcome.output), dict(done.bound.arrays), origin, _reading(done),
    )  # fmt: skip


def _reading(done: Simulation) -> str:
    bound = done.bound
    if bound.reading is None or bound.matrices is None:
        return ""
    return bound.reading.describe({role: v.name for role, v in bound.matrices.items()})
