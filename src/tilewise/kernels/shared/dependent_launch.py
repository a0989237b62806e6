"""Launches that may start while the one queued before them ends: those whose kernel begins by waiting for it.

Nothing of the kernel before is read, and nothing it reads is written, until it is done: what overlaps is a launch's own
latency, its blocks being there already (programmatic dependent launch).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from tilewise.core.machine import has_dependent_launch
from tilewise.core.recipe import Launch, Step
from tilewise.kernels.keys import Named, words

WAITS = (
    "wait_for_kernel_before();",
    "// make_tile waits for the one before, before it reads anything",
)
FIRST_LINES = 40  # of a kernel, among which the wait stands if there is one
_OPENING = re.compile(r"\)\s*{\n")
BEFORE = "let_next_kernel_start();"


def early(steps: Sequence[Step], arch: str) -> tuple[Step, ...]:
    """The steps, each as early as its kernel allows on such a card."""
    if not has_dependent_launch(arch):
        return tuple(steps)
    return tuple(
        step._replace(overlap=True)
        if isinstance(step, Launch) and not step.overlap and _waits(step.source, step.name)
        else step
        for step in steps
    )


def _waits(source: str, name: str) -> bool:
    """How a kernel begins, all texts of one writer have in common: one of them is written to see it."""
    if source.__class__ is not Named:
        return begins_by_waiting(source, name)
    assert isinstance(source, Named)
    found = _known.get((source.writer, name))
    if found is None:
        found = _known[source.writer, name] = begins_by_waiting(words(source), name)
    return found


_known: dict[tuple[str, str], bool] = {}


@lru_cache(maxsize=1024)
def begins_by_waiting(source: str, name: str) -> bool:
    """Whether the kernel's first statement waits, pointers that step to a member of a stack aside."""
    _, _, kernel = source.partition(f" {name}(")
    body = _OPENING.split(kernel, maxsplit=1)[-1]
    for line in body.split("\n", FIRST_LINES):
        if " += blockIdx." not in line and line.strip() != BEFORE:
            return line.strip() in WAITS
    return False
