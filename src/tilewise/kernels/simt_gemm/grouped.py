"""`grouped`: groups of rows whose sizes are data on the card, over any algebra, layout and dtype. `many`: lists of
unrelated products, passed as launch parameters. Both compute 64×64 of P a block by one tile loop."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, ClassVar, NamedTuple

from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Groups, Problem
from tilewise.core.recipe import Launch, Recipe, Scratch
from tilewise.kernels.by_configs import Tabled
from tilewise.kernels.capabilities import Capabilities, Condition
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.family import Searched, numbered, of_other_dtypes
from tilewise.kernels.shared.groups import OFFSETS, expected_tiles, most_tiles, render_walk, walk_launch
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.stack_launches import along_k, strides
from tilewise.kernels.shared.steps import relative_slots
from tilewise.kernels.shared.structs import struct_of
from tilewise.kernels.simt_gemm.text import render_grouped, render_many
from tilewise.system.machine_code import Formula, Row, Rows

SIDE, PHASE, THREADS = 64, 16, 256
GRID_Y = 65535
JOBS = 40  # of a launch, whose parameters are limited to 4 KiB
SMALL = 2**23  # steps: larger products are faster as launches of their own


class Figures(NamedTuple):
    """What times depend on besides sizes: a kind of groups on a card."""

    rate: float  # steps a second
    bandwidth: float  # bytes a second that are reached
    start: float  # seconds of a launch
    by_rows: bool  # groups along rows; else along k


def takes(p: Problem, f: Figures) -> bool:
    return f.by_rows or p.group_count <= GRID_Y


def given_of(p: Problem, f: Figures) -> Row:
    """Seconds: of a launch, of the steps of whole tiles, of the bytes."""
    tiles = expected_tiles(p, SIDE) if f.by_rows else float(-(-p.m // SIDE))
    work = tiles * SIDE * -(-p.n // SIDE) * SIDE * p.k
    return f.start, work / f.rate, p.least_bytes / f.bandwidth


def expected(row: Row, given: Row) -> float:
    return given[0] + max(given[1], given[2])


EXPECTED, ONE_ROW = Formula(expected, given_of, takes), Rows([(0.0,)])
MEMBERS = Condition(
    lambda p: p.groups is not None and (p.groups.along == "rows" or p.groups.count <= GRID_Y),
    f"makes up to {GRID_Y:,} members of P along k",
)


class Grouped(Tabled):
    name = "grouped"
    kernels: ClassVar = {
        name: "blocks find their group's rows on the card and make 64x64 of P by tiles in shared memory, any algebra"
    }
    can = Capabilities(
        groups=("rows", "k"), only_groups=True, unrounded=False, problem=(MEMBERS,),
        precisions=("ieee", "high"),  # float32 is added up one after the other
    )  # fmt: skip

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        f, by_rows = coefficients("grouped"), problem.groups is not None and problem.groups.along == "rows"
        rate = machine.step_rate("float32") * f.rate / relative_slots(problem.algebra, machine)
        figures = Figures(rate, f.reading * machine.bandwidth, f.start, by_rows)
        return [Searched(EXPECTED, ONE_ROW, figures, numbered((None,)))]

    def configurations(self, problem: Problem, machine: Machine) -> tuple[None, ...]:
        return ()

    def packs(self, problem: Problem, config: None) -> tuple[str, ...]:
        return of_other_dtypes(problem)

    def geometry(self, problem: Problem, machine: Machine, config: None) -> Geometry:
        shared = (SIDE * (PHASE + 1) + PHASE * (SIDE + 1)) * problem.algebra.partial.itemsize
        return Geometry((THREADS, 1), SIDE, SIDE, PHASE, shared)

    def tiles(self, problem: Problem, machine: Machine, config: None) -> str:
        return f"{problem.groups.count if problem.groups else 0:,} groups"

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        assert problem.groups is not None
        yield render_walk.key(problem.groups.wide)
        for along in product((False, True), (False, True)):
            yield grouped_text(problem.algebra, problem.groups, along)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
        """M, N and P have any strides; the tiles of groups of rows are listed by a launch before."""
        p = plan.problem
        assert p.groups is not None
        by_k = p.groups.along == "k"
        source = grouped_text(p.algebra, p.groups, along_k(given))
        made, groups, down = [], OFFSETS, math.ceil(p.m / SIDE)
        if not by_k:
            walk, groups = walk_launch(p, SIDE, scratch)
            made, down = [walk], most_tiles(p, SIDE)
        arguments = (
            *(x.pointer for x in (given.M, given.N, given.P)),
            groups,
            *(ctypes.c_int(x) for x in (p.m, p.k, p.n)),
            *strides(given),
            ctypes.c_longlong(0 if by_k else given.N.layout.stack[0]),
            ctypes.c_longlong(given.P.layout.stack[0] if by_k else 0),
        )
        grid = (down * math.ceil(p.n / SIDE), p.groups.count if by_k else 1)
        return [*made, Launch.of(source, self.name, grid, (THREADS,), arguments)]


def grouped_text(algebra: Algebra, groups: Groups, k_along: tuple[bool, bool]) -> str:
    """The key of its text; the number of groups is an argument."""
    by_k = groups.along == "k"
    return render_grouped.key(algebra, by_k, groups.wide and by_k, k_along)


Job = struct_of("Job", "simt_gemm/many.cu")


def many_recipe(algebra: Algebra, jobs: Sequence[Any]) -> Recipe:
    """The launches of all jobs (`Job`), with addresses. An empty P has no blocks."""
    busy, made, text = [job for job in jobs if job.m and job.n], [], render_many.key(algebra, JOBS)
    for start in range(0, len(busy), JOBS):
        some, first = busy[start : start + JOBS], 0
        for job in some:
            job.first = first
            first += math.ceil(job.m / SIDE) * math.ceil(job.n / SIDE)
        table = (Job * JOBS)(*some)
        made.append(Launch.of(text, "many", (first,), (THREADS,), (table, ctypes.c_int(len(some)))))
    return Recipe(tuple(made))
