"""`bits`: semirings whose add is OR and whose mul is AND, on booleans packed into bits; any strides."""

from __future__ import annotations

from tilewise.algebra.expression import Apply, Variable
from tilewise.backends.cpu.family import View, is_dot
from tilewise.backends.cpu.kernels.packed.model import tasks
from tilewise.core.blocking import RegisterTile
from tilewise.core.problem import Problem

IDEA = "truth values, eight columns to a byte"

__all__ = ["IDEA", "suits", "takes", "tasks"]


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return is_or_and(problem, tile)


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    return "or and and over truth values work on bits" if view.preferred and not is_dot(view) else ""


def is_or_and(problem: Problem, tile: RegisterTile) -> bool:
    add, mul, both = problem.semiring.add, problem.semiring.mul, {Variable("x"), Variable("y")}
    return (
        problem.algebra.partial.kind == "b"
        and not problem.return_arg
        and isinstance(add, Apply)
        and isinstance(mul, Apply)
        and add.op in ("or", "add", "max")
        and mul.op in ("and", "mul", "min")
        and set(add.args) == set(mul.args) == both
    )
