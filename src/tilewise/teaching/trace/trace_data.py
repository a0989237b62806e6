"""The data of a traced launch, which texts, pages and pictures show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from tilewise.emulator.machine.events import Events
from tilewise.emulator.machine.findings import Finding
from tilewise.teaching.trace.launch import SCHEMA, Run
from tilewise.teaching.trace.strict_json import strict


@dataclass(frozen=True)
class Matrix:
    """M, N or P of a launch: its name in `TraceData.names`, its values after the launch (which changes only P)."""

    name: str
    values: np.ndarray = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        rows, cols = self.values.shape
        values = [None if v != v else v for v in self.values.astype(np.float64).ravel().tolist()]
        return {"name": self.name, "rows": rows, "cols": cols, "values": values}


@dataclass(frozen=True, repr=False)
class TraceData:
    """A launch with its events. `names` are the arrays and registers that the event columns number."""

    run: Run
    events: Events
    names: tuple[str, ...]
    blocks: tuple[int, ...]  # linear numbers of the blocks recorded
    source: str = ""  # the text that ran; events refer to its line numbers
    matrices: Mapping[str, Matrix] = field(default_factory=dict)  # M, N and P of a matmul-like binding
    shared: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # shared arrays as they are declared
    failing: TraceData | None = None  # the same launch in an order of threads that gives a wrong P, where one was found
    wrong: tuple[tuple[int, int], ...] = ()  # of a failing order: the cells of P that are not the product

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.run.findings

    @property
    def counters(self) -> Mapping[str, int]:
        return self.run.counters

    @property
    def phases(self) -> int:
        """The number of phases of the recorded blocks."""
        return int(self.events.phase.max()) + 1 if len(self.events) else 0

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON, with a schema version."""
        made = {
            "schema": SCHEMA,
            **self.run.to_json(),
            "blocks": list(self.blocks),
            "names": list(self.names),
            "source": self.source,
            "matrices": {role: matrix.to_json() for role, matrix in self.matrices.items()},
            "shared": {name: list(dims) for name, dims in self.shared.items()},
            "events": self.events.to_json(),
        }
        return cast(dict[str, Any], strict(made))
