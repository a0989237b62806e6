"""Issue slots of a semiring's multiply-add on plain cores."""

from __future__ import annotations

from functools import lru_cache

from tilewise.algebra.expression import Apply, Expression, Variable
from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine


def binary(tree: Expression) -> str | None:
    """The operation of an expression that is one operation on x and y, else None."""
    if isinstance(tree, Apply) and len(tree.args) == 2 and all(isinstance(a, Variable) for a in tree.args):
        names = {a.name for a in tree.args if isinstance(a, Variable)}
        return tree.op if len(names) == 2 else None
    return None


@lru_cache(maxsize=256)
def step_slots(algebra: Algebra, machine: Machine | None = None) -> float:
    """Issue slots of a step in float32 multiply-adds; min, max, compares and integer operations have half the rate,
    in a pipe of their own."""
    add, mul, partial = algebra.semiring.add, algebra.semiring.mul, algebra.partial
    double = 2.0 if machine is None else machine.step_rate("float32") / machine.step_rate("float64")
    if (binary(add), binary(mul)) == ("add", "mul"):
        if partial.kind in "fc":
            return (4.0 if partial.kind == "c" else 1.0) * (
                double if partial.name in ("float64", "complex128") else 1.0
            )
        return 10.0 if partial.itemsize == 8 else 2.0
    total, slow = 0.0, 0.0
    for op in _operations(add) + _operations(mul):
        if partial.kind == "f" and op in ("add", "sub", "mul", "neg"):
            total += 1
        elif op in ("div", "exp", "log", "log1p", "sqrt", "logaddexp"):
            total, slow = total + 10, slow + 10
        else:
            total, slow = total + 1, slow + 2
    wide = 1.0 if partial.itemsize <= 4 else 2.25 * double if partial.kind == "f" else 3.0
    return max(total, slow) * wide


def relative_slots(algebra: Algebra, machine: Machine) -> float:
    """Issue slots of a step in those of an addition and a minimum, 1 at least."""
    return max(1.0, step_slots(algebra, machine) / 2)


def _operations(tree: Expression) -> list[str]:
    if not isinstance(tree, Apply):
        return []
    return [tree.op, *(op for arg in tree.args for op in _operations(arg))]
