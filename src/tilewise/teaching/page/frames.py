"""The page's steps: the events of one block, divided into frames.

A frame is one step of an explanation: the block loads a tile (both branches of a boundary check), every thread computes
one product, the block is at a barrier, P is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tilewise.emulator.machine.events import EventKind, Events

LOAD, USE, BARRIER, STORE = "load", "use", "barrier", "store"


@dataclass(frozen=True)
class PageFrame:
    """Rows `first` to `last` (not included) of the block's events."""

    stage: str
    phase: int
    first: int
    last: int


@dataclass(frozen=True)
class _Step:
    stage: str
    phase: int
    first: int
    last: int
    target: int  # the array that is filled or written; -1: none
    touches: frozenset[tuple[int, int]]  # (thread, array touched); in loads and stores the array counts once
    sums: bool  # nothing but sums


def frames_of(events: Events) -> list[PageFrame]:
    """The frames of one block; `events` are that block's alone, in their order."""
    frames: list[PageFrame] = []
    target, touches, summed = -1, frozenset[tuple[int, int]](), False
    for step in _steps(events):
        last = frames[-1] if frames else None
        joins = last is not None and (last.stage, last.phase) == (step.stage, step.phase)
        if step.stage in (LOAD, STORE):
            joins = joins and step.target == target and not (touches & step.touches)
        elif step.stage == USE:
            joins = joins and (step.sums or (not summed and not touches & step.touches))
        else:
            joins = False
        if joins and last is not None:
            frames[-1] = PageFrame(last.stage, last.phase, last.first, step.last)
            touches, summed = touches | step.touches, summed or step.sums
        else:
            frames.append(PageFrame(step.stage, step.phase, step.first, step.last))
            target, touches, summed = step.target, step.touches, step.sums
    return frames


def _steps(events: Events) -> list[_Step]:
    """Simultaneous events as steps, each with its stage."""
    if not len(events):
        return []
    cuts = np.flatnonzero(np.diff(events.step)) + 1
    edges = [0, *cuts.tolist(), len(events)]
    steps = []
    for first, last in pairwise(edges):
        rows = slice(first, last)
        kinds = set(events.kind[rows].tolist())
        to = events.to_array[rows]
        stage, target = USE, -1
        if EventKind.BARRIER in kinds:
            stage = BARRIER
        elif EventKind.STORE in kinds:
            stage, target = STORE, int(events.array[first])
        elif EventKind.FILL in kinds:
            stage, target = LOAD, int(events.array[rows][events.kind[rows] == EventKind.FILL][0])
        elif EventKind.LOAD in kinds and (to >= 0).any():
            stage, target = LOAD, int(to[to >= 0][0])
        arrays = events.array[rows].tolist() if stage == USE else [target] * (last - first)
        touches = frozenset(zip(events.thread[rows].tolist(), arrays, strict=True))
        steps.append(_Step(stage, int(events.phase[first]), first, last, target, touches, kinds == {EventKind.SUM}))
    return steps
