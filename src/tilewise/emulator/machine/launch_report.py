"""The result of `simt.launch` besides the arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewise.emulator.machine.findings import Finding


@dataclass(frozen=True)
class Report:
    """Counters, findings and printed text of a launch."""

    counters: Mapping[str, int]
    findings: tuple[Finding, ...]
    output: str
