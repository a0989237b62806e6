"""Limits of a run; each is an argument of `tw.trace` and `tw.check`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    steps: int = 2_000_000  # statements executed, each for all threads at once
    seconds: float = 20.0  # CPU time of the whole call, from reading to the last launch (`system.timing.Elapsed`)
    memory: int = 2 << 30  # bytes by which the process may grow; an allocation known to be larger is refused at once
    nesting: int = 60  # depth of brackets, blocks, macro expansions and device calls
    touches: int = 64  # threads listed for each finding; its count stays exact
    printf: int = 200  # lines that printf may add to the output
    tokens: int = 2_000_000  # of the source after its macros are expanded


DEFAULT = Limits()
