"""Programmatic dependent launch: which launches may start while the one queued before them ends.

Those whose kernel begins by waiting for it: nothing that the kernel before writes is read, and nothing that it reads is
written, until it has completed. What overlaps is the latency of the launch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from tilewise.core.machine import has_dependent_launch
from tilewise.core.recipe import Launch, Step
from tilewise.kernels.keys import KernelKey, text_of

WAITS = (
    "wait_on_dependent_grids();",
    "// make_tile waits for the kernel before, before its first read",
)
FIRST_LINES = 40  # of a kernel, which contain the wait if it has one
_OPENING = re.compile(r"\)\s*{\n")
LAUNCHES = "launch_dependent_grids();"


def early(steps: Sequence[Step], arch: str) -> tuple[Step, ...]:
    """The steps, with overlap=True where their kernel allows it on this arch."""
    if not has_dependent_launch(arch):
        return tuple(steps)
    return tuple(
        step._replace(overlap=True)
        if isinstance(step, Launch) and not step.overlap and _waits(step.source, step.name)
        else step
        for step in steps
    )


def _waits(source: str, name: str) -> bool:
    """`waits_first` of a launch's text. All texts of one renderer begin alike: only one of them is rendered."""
    if source.__class__ is not KernelKey:
        return waits_first(source, name)
    assert isinstance(source, KernelKey)
    found = _known.get((source.renderers, name))
    if found is None:
        found = _known[source.renderers, name] = waits_first(text_of(source), name)
    return found


_known: dict[tuple[str, str], bool] = {}


@lru_cache(maxsize=1024)
def waits_first(source: str, name: str) -> bool:
    """Whether the kernel's first statement waits, apart from a stack's offsets and the launch of dependents."""
    _, _, kernel = source.partition(f" {name}(")
    body = _OPENING.split(kernel, maxsplit=1)[-1]
    for line in body.split("\n", FIRST_LINES):
        if " += blockIdx." not in line and line.strip() != LAUNCHES:
            return line.strip() in WAITS
    return False
