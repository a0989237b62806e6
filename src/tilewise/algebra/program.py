"""Straight-line programs of structured values in SSA form: one operation a line, common subexpressions once.

A tree repeats a subexpression at every use; a sorting network would then be exponential. A program is a flat frozen
value: lines refer to earlier lines. `run` renders it for a target: NumPy, LLVM or CUDA, one file each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.algebra.expression import (
    COMPARISONS,
    LOGIC,
    Apply,
    Expression,
    Number,
    Variable,
    check_types,
    constant_over,
)
from tilewise.errors import DtypeError

TRUTH = DTYPES["bool"]


@dataclass(frozen=True)
class Operation:
    """An operation on earlier lines; or "input" with (operand, field), or "constant" with a Constant or an Extreme."""

    op: str
    args: tuple[int, ...] = ()
    leaf: Any = None


@dataclass(frozen=True)
class StraightLine:
    """The lines, and the indices of those that are the fields of the result."""

    lines: tuple[Operation, ...]
    outputs: tuple[int, ...]

    @property
    def operations(self) -> int:
        """The number of operations."""
        return sum(line.op not in ("input", "constant") for line in self.lines)


class _Builder:
    """Builds a program without repeating equal lines."""

    def __init__(self) -> None:
        self.lines: list[Operation] = []
        self._known: dict[Operation, int] = {}

    def put(self, line: Operation) -> int:
        if line not in self._known:
            self._known[line] = len(self.lines)
            self.lines.append(line)
        return self._known[line]

    def build(self, outputs: Sequence[int]) -> StraightLine:
        """The program without dead lines."""
        needed, number = set(outputs), {}
        for i in reversed(range(len(self.lines))):
            if i in needed:
                needed |= set(self.lines[i].args)
        kept: list[Operation] = []
        for i in sorted(needed):
            number[i] = len(kept)
            line = self.lines[i]
            kept.append(Operation(line.op, tuple(number[a] for a in line.args), line.leaf))
        return StraightLine(tuple(kept), tuple(number[i] for i in outputs))


def flattened(trees: Sequence[Expression]) -> StraightLine:
    """The program of trees whose variables x0, x1, …, y0, y1, … are the fields of the two operands."""
    builder, seen = _Builder(), {}

    def put(tree: Expression) -> int:
        if id(tree) not in seen:
            if isinstance(tree, Variable):
                line = Operation("input", (), (tree.name[0], int(tree.name[1:])))
            elif isinstance(tree, Apply):
                line = Operation(tree.op, tuple(put(arg) for arg in tree.args))
            else:
                line = Operation("constant", (), tree)
            seen[id(tree)] = builder.put(line)
        return seen[id(tree)]

    return builder.build([put(tree) for tree in trees])


def step_of(add: StraightLine, mul: StraightLine) -> StraightLine:
    """add(t, mul(x, y)): one step of a product; t is the accumulator."""
    builder = _Builder()

    def copied(program: StraightLine, inputs: dict[tuple[str, int], int]) -> list[int]:
        at: list[int] = []
        for line in program.lines:
            if line.op == "input" and line.leaf in inputs:
                at.append(inputs[line.leaf])
            else:
                at.append(builder.put(Operation(line.op, tuple(at[a] for a in line.args), line.leaf)))
        return [at[i] for i in program.outputs]

    products = copied(mul, {})
    fields = range(len(products))
    totals = {("x", i): builder.put(Operation("input", (), ("t", i))) for i in fields}
    return builder.build(copied(add, totals | {("y", i): products[i] for i in fields}))


@lru_cache(maxsize=256)
def typed(program: StraightLine, dtypes: tuple[DType, ...], what: str) -> list[DType | None]:
    """The dtype of each line: bool for a truth, None for a constant, which takes the dtype of the other operand.
    DtypeError where an operation mixes dtypes or is not defined for them."""
    kinds: list[DType | None] = []
    for line in program.lines:
        if line.op == "input":
            kinds.append(dtypes[line.leaf[1]])
        elif line.op == "constant":
            kinds.append(None)
        elif line.op in LOGIC:
            kinds.append(TRUTH)
        else:
            args = line.args[1:] if line.op == "where" else line.args
            met = {kind for kind in (kinds[a] for a in args) if kind is not None and kind is not TRUTH}
            if len(met) > 1:
                names = " and ".join(sorted(kind.name for kind in met))
                raise DtypeError(f"{what}: {line.op} meets fields of {names}; convert them to one dtype")
            if not met:
                raise DtypeError(f"{what}: {line.op} of constants and truths alone has no dtype: write its value")
            (dtype,) = met
            check_types(Apply(line.op, (Variable("x"),) * len(line.args)), dtype)
            kinds.append(TRUTH if line.op in COMPARISONS else dtype)
    for field, (i, dtype) in enumerate(zip(program.outputs, dtypes, strict=True)):
        if kinds[i] not in (None, TRUTH, dtype):
            raise DtypeError(f"{what}: field {field} would be {kinds[i]}, and it is {dtype}; convert one of them")
    return kinds


class ProgramTarget(Protocol):
    """Renders operations; the type of a value is up to the target."""

    def constant(self, value: Number, dtype: DType) -> Any: ...

    def operate(self, op: str, dtype: DType, args: list[Any]) -> Any: ...

    def compare(self, op: str, dtype: DType, a: Any, b: Any) -> Any: ...

    def logic(self, op: str, args: list[Any]) -> Any: ...

    def select(self, dtype: DType, truth: Any, a: Any, b: Any) -> Any: ...

    def number(self, truth: Any, dtype: DType) -> Any: ...

    def truth(self, value: Any, dtype: DType) -> Any: ...


def run(
    program: StraightLine, dtypes: Sequence[DType], inputs: Mapping[str, Sequence[Any]], to: ProgramTarget
) -> list[Any]:
    """Render the program; the fields of the result as values of the target."""
    kinds = typed(program, tuple(dtypes), "a structured semiring")
    values: list[Any] = []

    def number(i: int, dtype: DType) -> Any:
        line = program.lines[i]
        if line.op == "constant":
            return to.constant(constant_over(line.leaf, dtype), dtype)
        return to.number(values[i], dtype) if kinds[i] is TRUTH else values[i]

    def truth(i: int) -> Any:
        line, kind = program.lines[i], kinds[i]
        if line.op == "constant":
            return to.constant(bool(constant_over(line.leaf, DTYPES["float64"])), TRUTH)
        return values[i] if kind is TRUTH or kind is None else to.truth(values[i], kind)

    def value(line: Operation, dtype: DType | None) -> Any:
        if line.op == "input":
            return inputs[line.leaf[0]][line.leaf[1]]
        if line.op == "constant":
            return None  # rendered at each use, in the dtype it needs there
        if line.op in LOGIC:
            return to.logic(line.op, [truth(a) for a in line.args])
        if line.op in COMPARISONS:
            dtype = next(kind for kind in (kinds[a] for a in line.args) if kind is not None and kind is not TRUTH)
            return to.compare(line.op, dtype, *(number(a, dtype) for a in line.args))
        assert dtype is not None
        if line.op == "where":
            return to.select(dtype, truth(line.args[0]), *(number(a, dtype) for a in line.args[1:]))
        return to.operate(line.op, dtype, [number(a, dtype) for a in line.args])

    for line, kind in zip(program.lines, kinds, strict=True):
        values.append(value(line, kind))
    return [number(i, dtype) for i, dtype in zip(program.outputs, dtypes, strict=True)]
