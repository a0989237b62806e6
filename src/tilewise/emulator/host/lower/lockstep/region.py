"""Regions: code that only the lanes run for which a condition holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.lockstep.wide import Region, lanes_of


@contextmanager
def region(b: Builder, condition: str) -> Iterator[Region]:
    """Only the lanes for which the condition holds; skipped where there is none."""
    lanes = lanes_of(b)
    truths = lanes.vector("i1")
    slot = b.alloca(truths)
    b.emit(f"store {truths} {b.make(f'and {truths} {lanes.mask(b)}, {condition}')}, ptr {slot}")
    made = Region(slot, b.label())
    lanes.regions.append(made)
    run = b.label()
    b.branch(lanes.any(b), run, made.exit)
    b.begin(run)
    yield made
    lanes.regions.pop()
    b.begin(made.exit)
    leave_if_empty(b, made)


def leave_if_empty(b: Builder, inner: Region) -> None:
    """Behind a region in which lanes left the one around it too: on only where some are still here."""
    lanes = lanes_of(b)
    if not inner.left:
        return
    on = b.label()
    b.branch(lanes.any(b), on, lanes.regions[-1].exit)
    b.begin(on)
