"""CUDA C with no GPU: lexer, parser, vectorised machine, shadow memory, findings and events.

`launch` runs one kernel on NumPy arrays in place; `tilewise.trace` and `tilewise.check` build on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewise.emulator.limits import DEFAULT, Limits
from tilewise.emulator.machine.findings import Finding
from tilewise.emulator.machine.launch_report import Report


def launch(
    source: str,
    entry: str,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[Any] | Mapping[str, Any],
    *,
    defines: Mapping[str, str | int] | None = None,
    checks: bool = False,
    limits: Limits = DEFAULT,
    shared: int = 0,
) -> Report:
    """Run `entry` of a CUDA text. `args` are NumPy arrays, changed in place where the kernel stores to them, and
    numbers, in the order of the parameters or by name. An array's dtype must be that of the parameter (complex
    arrays for `float2`, raw 16-bit arrays for `__half` and `__nv_bfloat16`). `shared`: bytes of extern __shared__
    memory, the third argument of a launch."""
    from tilewise.emulator.launching import launch_text

    return launch_text(source, entry, grid, block, args, defines=defines, checks=checks, limits=limits, shared=shared)


__all__ = ["Finding", "Limits", "Report", "launch"]
