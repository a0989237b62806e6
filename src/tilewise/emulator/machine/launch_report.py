"""What one launch leaves beside its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewise.emulator.machine.findings import Finding


@dataclass(frozen=True)
class Report:
    """What a launch counted and found."""

    counters: Mapping[str, int]
    findings: tuple[Finding, ...]
    output: str
