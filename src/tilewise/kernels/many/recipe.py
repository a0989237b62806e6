"""Unrelated products in as few launches as their jobs fit a launch's parameters: text and launches of `many.cu`."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import prelude
from tilewise.core.recipe import Launch, Recipe
from tilewise.kernels.grouped.model import SIDE, THREADS
from tilewise.kernels.keys import Written
from tilewise.kernels.shared.text import defined, kernel_text

JOBS = 40  # of a launch, whose parameters have 4 KiB
SMALL = 2**23  # steps: larger products are better off by themselves, with tiles and pipelines of their own


class Job(ctypes.Structure):
    """The kernel's `Job`."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("M", "N", "P")),
        *((name, ctypes.c_longlong) for name in ("m_row", "m_col", "n_row", "n_col", "p_row", "p_col")),
        *((name, ctypes.c_int) for name in ("m", "k", "n", "first")),
    )

    @property
    def blocks(self) -> int:
        made: int = math.ceil(self.m / SIDE) * math.ceil(self.n / SIDE)
        return made


@Written
def render_many(algebra: Algebra) -> str:
    head = (*defined({"JOBS": JOBS}), prelude(algebra, accumulate=False))
    return "\n".join((*head, kernel_text("grouped/tile.cuh"), kernel_text("many/many.cu")))


def many_recipe(algebra: Algebra, jobs: Sequence[Job]) -> Recipe:
    """All of them; their addresses are known. A P without cells has no blocks."""
    busy, made = [job for job in jobs if job.blocks], []
    for start in range(0, len(busy), JOBS):
        some, first = busy[start : start + JOBS], 0
        for job in some:
            job.first = first
            first += job.blocks
        table = (Job * JOBS)(*some)
        made.append(
            Launch.of(render_many.named(algebra), "many", (first,), (THREADS,), (table, ctypes.c_int(len(some))))
        )
    return Recipe(tuple(made))
