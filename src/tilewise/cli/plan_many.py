"""`tilewise plan --members` and `--groups`: many products at once."""

from __future__ import annotations

from dataclasses import replace

from tilewise.core.machine import Machine
from tilewise.core.problem import Groups, Problem, row_major
from tilewise.errors import UsageError


def many(problem: Problem, members: int | None, groups: int | None, machine: Machine) -> Problem:
    """The same product as a stack of fresh members, or of rows in groups of unknown sizes."""
    for name, count in (("--members", members), ("--groups", groups)):
        if count is not None and count < 1:
            raise UsageError(f"{name} {count} must be 1 or more")
    if members is not None and groups is not None:
        raise UsageError("--members and --groups exclude each other: rows in groups are one matrix")
    p = problem
    if groups is not None:
        if machine.kind != "cuda":
            raise UsageError("--groups plans for a card, for example --device h200: on the host groups come one by one")
        return replace(p, layout_n=row_major(p.k, p.n, (groups,)), groups=Groups(groups))
    if members is None:
        return p
    stack = (members,)
    sides = {"layout_m": (p.m, p.k), "layout_n": (p.k, p.n), "layout_p": (p.m, p.n)}
    return replace(p, stack=stack, **{name: row_major(*side, stack) for name, side in sides.items()})  # type: ignore[arg-type]
