"""Reads of tiles whose guarded load has no fill: which of them are faults.

Such a load leaves cells uninitialised, or with what an earlier phase stored there. Where a result is wrong, both are
its cause; where threads read these cells and store nothing, neither is a fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewise.emulator.check.roles import assign_matrices, names_other_work
from tilewise.emulator.machine.findings import STALE, Finding, Kind
from tilewise.emulator.machine.leaves import dtypes_of
from tilewise.emulator.machine.program import Program
from tilewise.emulator.parse.types import innermost


def unfilled_reads(
    findings: Sequence[Finding], program: Program, stored: Sequence[np.ndarray], wrong: bool | None
) -> list[Finding]:
    """The findings without reads whose values were not used. `stored`: what the kernel stored; uninitialised elements
    of floating tiles are NaN. `wrong`: whether the product is; None where that is not known."""
    reads = [f for f in findings if f.kind is Kind.UNINITIALISED_READ]
    stale = {f.array for f in reads if f.hazard == STALE}
    tiles = {name for name, type_, *_ in program.shared if dtypes_of(innermost(type_))[0].kind == "f"}
    used = not stored or any(v.dtype.kind != "f" or np.isnan(v).any() for v in stored)
    used_of = {f.array for f in reads if used or f.array not in tiles or (wrong is not False and f.array in stale)}
    kept = [f for f in reads if f.hazard != STALE and f.array in used_of]
    named = {(f.line, f.array) for f in kept}
    kept += [f for f in reads if f.hazard == STALE and wrong and (f.line, f.array) not in named]
    return [f for f in findings if f.kind is not Kind.UNINITIALISED_READ or any(f is one for one in kept)]


def reads_of_launch(findings: list[Finding], given: Any) -> list[Finding]:
    """The findings of a program's own launch. `given`: its arguments (`host.runtime.cuda_arguments`)."""
    if not any(f.kind is Kind.UNINITIALISED_READ for f in findings):
        return findings
    program: Program = given.program
    product = assign_matrices(program, True) is not None and not names_other_work(program.function.short)
    buffers = [buffer for _, buffer in given.blocks.values() if product]
    stored = [b.data for b in buffers if b.shadow is not None and b.shadow.written]
    return unfilled_reads(findings, program, stored, None)
