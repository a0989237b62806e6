"""An epilogue as LLVM IR: activation(alpha · sums + what P holds + bias), written over the sums.

Each step is rounded to the dtype of the sums, as NumPy rounds it; erf, exp and tanh are the C library's, in double.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from tilewise.core.epilogue import Epilogue
from tilewise.system.llvm_text import FIRST_FIELD

OUTSIDE = {"gelu": "erf", "gelu_tanh": "tanh", "silu": "exp"}  # the C library's function that an activation calls


def epilogue_module(epilogue: Epilogue, dtype: str, onto: bool) -> str:
    """`finish(record, sums, bias, P)`, the last three array objects whose elements lie in rows; the record holds how
    many rows and columns there are, and alpha."""
    kind = {"float32": "float", "float64": "double"}[dtype]
    step = _CellSteps(kind)
    steps = []
    if epilogue.alpha != 1.0:
        steps.append(step.then("fmul", "%alpha"))
    if onto:
        steps.append(_loaded("held", "%P.data", "%at", kind) + step.then("fadd", "%held"))
    if epilogue.bias is not None:
        steps.append(_loaded("added", "%bias.data", "%j", kind) + step.then("fadd", "%added"))
    if epilogue.activation is not None:
        steps.append(step.activated(epilogue.activation))
    outside = OUTSIDE.get(epilogue.activation or "")
    declared = f"declare double @{outside}(double)\n" if outside else ""
    return declared + _over_cells(step, "".join(steps), epilogue.bias is not None, onto)


def scaling_module(rows: bool, columns: bool) -> str:
    """`finish(record, sums, columns, rows, factor)` for scales of float32 sums: by the number that the last, a float
    object, holds where an array has its elements' address, then by one for each row and one for each column."""
    step = _CellSteps("float")
    steps = step.then("fmul", "%alpha")
    if rows:
        steps += _loaded("held", "%P.data", "%i", "float") + step.then("fmul", "%held")
    if columns:
        steps += _loaded("added", "%bias.data", "%j", "float") + step.then("fmul", "%added")
    return _over_cells(step, steps, columns, rows, factor=True)


def _over_cells(step: _CellSteps, steps: str, bias: bool, P: bool, factor: bool = False) -> str:
    """`finish`: the steps for every cell, from row %i and column %j; `bias`, `P`: whether those are read; `factor`:
    whether alpha is an argument of its own."""
    kind = step.kind
    alpha = f"i8, ptr %factor, i64 {FIRST_FIELD}" if factor else "i64, ptr %record, i64 2"
    narrowed = "fptrunc double %wide to float" if kind == "float" else "fadd double %wide, -0.0"
    return f"""
define void @finish(ptr %record, ptr %sums, ptr %bias, ptr %P{", ptr %factor" if factor else ""}) {{
entry:
  %rows = load i64, ptr %record
  %cols.at = getelementptr i64, ptr %record, i64 1
  %cols = load i64, ptr %cols.at
  %alpha.at = getelementptr {alpha}
  %wide = load double, ptr %alpha.at
  %alpha = {narrowed}
{_elements("sums")}{_elements("bias") if bias else ""}\
{_elements("P") if P else ""}  br label %row
row:
  %i = phi i64 [0, %entry], [%i.next, %next]
  %more = icmp slt i64 %i, %rows
  br i1 %more, label %begin, label %done
begin:
  %start = mul i64 %i, %cols
  br label %column
column:
  %j = phi i64 [0, %begin], [%j.next, %cell]
  %inside = icmp slt i64 %j, %cols
  br i1 %inside, label %cell, label %next
cell:
  %at = add i64 %start, %j
  %x.at = getelementptr {kind}, ptr %sums.data, i64 %at
  %x0 = load {kind}, ptr %x.at
{steps}  store {kind} {step.value}, ptr %x.at
  %j.next = add i64 %j, 1
  br label %column
next:
  %i.next = add i64 %i, 1
  br label %row
done:
  ret void
}}
"""


def _elements(name: str) -> str:
    """Where an array object's elements are."""
    return (
        f"  %{name}.at = getelementptr i8, ptr %{name}, i64 {FIRST_FIELD}\n  %{name}.data = load ptr, ptr %{name}.at\n"
    )


def _loaded(name: str, base: str, index: str, kind: str) -> str:
    return (
        f"  %{name}.place = getelementptr {kind}, ptr {base}, i64 {index}\n  %{name} = load {kind}, ptr %{name}.place\n"
    )


class _CellSteps:
    """A value that one instruction after another changes."""

    def __init__(self, kind: str) -> None:
        self.kind, self.value, self._count = kind, "%x0", 0

    def op(self, text: str) -> str:
        """An instruction; what it gives is the value from now on."""
        self._count += 1
        self.value = f"%x{self._count}"
        return f"  {self.value} = {text}\n"

    def then(self, name: str, other: str) -> str:
        return self.op(f"{name} {self.kind} {self.value}, {other}")

    def constant(self, value: float) -> str:
        """A number of this kind, spelled by its bits."""
        near = float(np.float32(value)) if self.kind == "float" else value
        return f"0x{struct.pack('>d', near).hex().upper()}"

    def outside(self, name: str) -> str:
        """erf, exp or tanh of the value."""
        if self.kind == "double":
            return self.op(f"call double @{name}(double {self.value})")
        widened = self.op(f"fpext float {self.value} to double")
        called = self.op(f"call double @{name}(double {self.value})")
        return widened + called + self.op(f"fptrunc double {self.value} to float")

    def activated(self, activation: str) -> str:
        x, number = self.value, self.constant
        if activation == "relu":
            below = self.op(f"fcmp olt {self.kind} {x}, 0.0")
            return below + self.op(f"select i1 {self.value}, {self.kind} 0.0, {self.kind} {x}")
        if activation == "silu":
            text = self.op(f"fneg {self.kind} {x}") + self.outside("exp") + self.then("fadd", number(1.0))
            return text + self.op(f"fdiv {self.kind} {x}, {self.value}")
        if activation == "gelu":
            text = self.then("fmul", number(math.sqrt(0.5))) + self.outside("erf")
        else:
            text = self.then("fmul", number(0.044715)) + "".join(self.then("fmul", x) for _ in "xx")
            text += self.op(f"fadd {self.kind} {x}, {self.value}")
            text += self.then("fmul", number(math.sqrt(2 / math.pi))) + self.outside("tanh")
        text += self.then("fadd", number(1.0))
        one_more = self.value
        text += self.op(f"fmul {self.kind} {x}, {number(0.5)}")
        return text + self.then("fmul", one_more)
