"""`simt.launch`: run a kernel's text on arrays in place; the last 64 compiled programs are cached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.emulator.check.binding import bind
from tilewise.emulator.check.loading import Loaded, choose, compile_entry, load, template_values
from tilewise.emulator.check.simulate import triple
from tilewise.emulator.check.wording import describe
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.collector import Collector
from tilewise.emulator.machine.execute import Launch, execute
from tilewise.emulator.machine.lanes import Geometry
from tilewise.emulator.machine.launch_report import Report
from tilewise.emulator.machine.program import Program
from tilewise.errors import UsageError


@lru_cache(maxsize=64)
def _program(
    source: str, entry: str, defines: tuple[tuple[str, str | int], ...], limits: Limits
) -> tuple[Loaded, Program]:
    loaded = load(source, dict(defines), None, limits)
    function = choose(loaded, entry)[0]
    return loaded, compile_entry(loaded, function, template_values(loaded, function, []))


def launch_text(
    source: str,
    entry: str,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[Any] | Mapping[str, Any],
    *,
    defines: Mapping[str, str | int] | None,
    checks: bool,
    limits: Limits,
    shared: int,
) -> Report:
    loaded, program = _program(source, entry, tuple(sorted((defines or {}).items())), limits)
    names = [v.name for v in program.parameters]
    if not isinstance(args, Mapping):
        if len(args) != len(names):
            raise UsageError(f"{entry} takes {len(names)} arguments, {len(args)} are given")
        args = dict(zip(names, args, strict=True))
    for name, value in args.items():
        if isinstance(value, np.ndarray) and not value.flags.c_contiguous:
            raise UsageError(f"{name}: simt works on contiguous arrays")
    bound = bind(program, None, args, {}, limits, None, False, checks)
    bound.dynamic = program.dynamic(shared)
    full_grid, full_block = triple(grid, "grid"), triple(block, "block")
    assert full_grid is not None
    assert full_block is not None
    collector = Collector(loaded.source, limits)
    geometry = Geometry(full_grid, full_block)
    outcome = execute(
        Launch(program, geometry, bound.arguments, bound.symbols, collector, limits, shared, checks, checks)
    )
    findings = collector.findings()
    for finding in findings:
        describe(finding, bound)
    return Report(outcome.counters, tuple(findings), "".join(outcome.output))
