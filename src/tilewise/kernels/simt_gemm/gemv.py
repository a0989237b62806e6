"""Matrix–vector products and few rows or columns: the long operand is read once, at the memory's speed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.errors import DtypeError
from tilewise.kernels.capabilities import Capabilities
from tilewise.kernels.family import Family, Offer, own_tiles
from tilewise.kernels.shared.halves import onto
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.simt_gemm import skinny as model
from tilewise.kernels.simt_gemm.skinny_recipe import launches
from tilewise.kernels.simt_gemm.text import every_skinny
from tilewise.kernels.transforms.sums import render_combine

DEEP = 512  # k of a stack's members from which the model is right


class Gemv(Family):
    name = "gemv"
    kernels: ClassVar = model.IDEAS
    can = Capabilities(one_dtype=True, few=model.FEW, tracks_arg=True, precisions=("ieee",))

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        why = super().refusal(problem, machine, kernel)
        if why is not None or model.skinny_choices(problem, machine, kernel):
            return why
        return f"kernel={kernel!r} reads contiguous rows or columns of the longer operand: leave kernel= out"

    def takes(self, problem: Problem, machine: Machine) -> bool:
        p, fits = problem, machine.tuned is not None and machine.tuned.fits
        # In stacks, members with little k leave most of a block's threads idle: up to 40 times what the model expects.
        idle = p.members > 1 and p.k < DEEP and not p.return_arg and not fits
        return not idle and bool(model.competing(problem, machine))

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        if problem.return_arg and problem.k >= 2**31:
            raise DtypeError(f"return_arg=True knows k below 2³¹, and k is {problem.k}")
        choices = None if kernel else model.competing(problem, machine)
        seconds, chosen = min(choices or model.skinny_choices(problem, machine, kernel), key=model.SECONDS)
        length = problem.m if chosen.swapped else problem.n
        pieces = model.skinny_pieces(chosen, length, problem.k, machine, problem.members)
        limits = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        plan = own_tiles(
            self, problem, machine, chosen.kernel, tile, chosen.geometry, seconds, limits, (), packs=(), config=chosen,
            passes=int(pieces > 1),
        )  # fmt: skip
        requested = "the kernel was requested" if kernel else f"{chosen.kernel} has the least expected time"
        return plan.but(why=f"{requested}; steps: {chosen.config.idea}; {plan.grid[0]}x{plan.grid[1]} tiles")

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        seconds, chosen = min(model.competing(problem, machine), key=model.SECONDS)
        floor, _ = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        length = problem.m if chosen.swapped else problem.n
        pieces = model.skinny_pieces(chosen, length, problem.k, machine, problem.members)
        return Offer(problem, machine, chosen.kernel, max(seconds, floor), floor, int(pieces > 1))

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        yield from every_skinny(problem.algebra, machine, model.dots_held(problem, machine))
        for accumulate, share in product(onto(problem, machine), (1, 8)):
            yield render_combine.named(problem.algebra, accumulate, share)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)
