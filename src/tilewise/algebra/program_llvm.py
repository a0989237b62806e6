"""Programs as LLVM IR over vectors: a value is a register, a truth is a mask."""

from __future__ import annotations

from tilewise.algebra.dtypes import DType
from tilewise.algebra.expression import Apply, Number, Variable
from tilewise.algebra.program import TRUTH
from tilewise.algebra.to_llvm import Renderer, Writer, constant, scalar_kind, splat, vector


class Registers:
    """Values are registers of `lanes` lanes, written into `writer`. Multiplications and additions may be contracted."""

    def __init__(self, writer: Writer, lanes: int) -> None:
        self.writer, self.lanes, self.mask = writer, lanes, vector("i1", lanes)

    def constant(self, value: Number, dtype: DType) -> str:
        if dtype.kind == "b":
            return splat("true" if value else "false", "i1", self.lanes)
        return constant(value, dtype, self.lanes)[0]

    def _kind(self, dtype: DType) -> str:
        return vector(scalar_kind(dtype), self.lanes)

    def _renderer(self, dtype: DType) -> Renderer:
        return Renderer(self.writer, dtype, self.lanes)

    def operate(self, op: str, dtype: DType, args: list[str]) -> str:
        if op in ("min", "max"):
            return self.select(dtype, self.compare("lt" if op == "min" else "gt", dtype, *args), *args)
        if dtype.kind == "f" and op in ("add", "sub", "mul"):
            return self.writer.op(f"f{op} contract {self._kind(dtype)} {args[0]}, {args[1]}")
        tree = Apply(op, (Variable("x"), Variable("y"))[: len(args)])
        return self._renderer(dtype).value(tree, (args[0],), (args[-1],))[0]

    def compare(self, op: str, dtype: DType, a: str, b: str) -> str:
        return self._renderer(dtype).compare(op, (a,), (b,))

    def logic(self, op: str, args: list[str]) -> str:
        return self._renderer(TRUTH).logic(op, args, self.mask)

    def select(self, dtype: DType, truth: str, a: str, b: str) -> str:
        kind = self._kind(dtype)
        return self.writer.op(f"select {self.mask} {truth}, {kind} {a}, {kind} {b}")

    def number(self, truth: str, dtype: DType) -> str:
        return self._renderer(dtype).number((truth,))[0]

    def truth(self, value: str, dtype: DType) -> str:
        return self._renderer(dtype).nonzero((value,))
