"""An epilogue as LLVM IR: activation(alpha · sums + P + bias), stored over the sums.

Each step is rounded to the dtype of the sums, as NumPy rounds it; erf, exp and tanh are the C library's, in double.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import numpy as np

from tilewise.core.epilogue import Epilogue
from tilewise.system.llvm_text import FIRST_FIELD, IRFunction, module

LIBM = {"gelu": "erf", "gelu_tanh": "tanh", "silu": "exp"}  # the C library's function that an activation calls
PARAMS = "ptr record, ptr sums, ptr bias, ptr P"


def epilogue_module(epilogue: Epilogue, dtype: str, onto: bool) -> str:
    """`finish(record, sums, bias, P)`; the last three are array objects with contiguous elements; the record holds the
    numbers of rows and columns, and alpha."""
    cells = _Cells({"float32": "float", "float64": "double"}[dtype], epilogue.bias is not None, onto)

    def finished(x: str, i: str, j: str, at: str) -> str:
        if epilogue.alpha != 1.0:
            x = cells.op("fmul", x, cells.alpha)
        if onto:
            x = cells.op("fadd", x, cells.element(cells.P, at))
        if epilogue.bias is not None:
            x = cells.op("fadd", x, cells.element(cells.bias, j))
        return x if epilogue.activation is None else cells.activated(epilogue.activation, x)

    return cells.module(finished)


def scaling_module(rows: bool, columns: bool) -> str:
    """`finish(record, sums, columns, rows, factor)` for scales of float32 sums: by `factor`, a float object, then by
    one scale for each row and one for each column."""
    cells = _Cells("float", columns, rows, factor=True)

    def scaled(x: str, i: str, j: str, at: str) -> str:
        x = cells.op("fmul", x, cells.alpha)
        if rows:
            x = cells.op("fmul", x, cells.element(cells.P, i))
        return cells.op("fmul", x, cells.element(cells.bias, j)) if columns else x

    return cells.module(scaled)


class _Cells:
    """`finish` being emitted, with the values that all cells use. `bias`, `P`: whether those are read; `factor`:
    whether alpha is a separate argument."""

    def __init__(self, kind: str, bias: bool, P: bool, factor: bool = False) -> None:
        self.kind = kind
        self.f = f = IRFunction("finish", f"{PARAMS}, ptr factor" if factor else PARAMS, public=True)
        self.rows, self.cols = (f.load("i64", f.at("i64", "%record", number)) for number in range(2))
        wide = f.load("double", f.at("i8", "%factor", FIRST_FIELD) if factor else f.at("i64", "%record", 2))
        self.alpha = wide if kind == "double" else f.op(f"fptrunc double {wide} to float")
        (self.sums,) = f.data_of("sums")
        self.bias, self.P = ("".join(f.data_of(name) if read else ()) for name, read in (("bias", bias), ("P", P)))

    def module(self, cell: Callable[[str, str, str, str], str]) -> str:
        """With every cell x as `cell(x, row, column, number)`."""
        f = self.f
        with f.loop(0, self.rows) as i:
            start = f.mul(i.index, self.cols)
            with f.loop(0, self.cols) as j:
                at = f.add(start, j.index)
                f.store(
                    self.kind, cell(self.element(self.sums, at), i.index, j.index, at), f.at(self.kind, self.sums, at)
                )
        return module([f])

    def element(self, base: str, index: str) -> str:
        return self.f.load(self.kind, self.f.at(self.kind, base, index))

    def op(self, name: str, x: str, y: str) -> str:
        return self.f.op(f"{name} {self.kind} {x}, {y}")

    def constant(self, value: float) -> str:
        """A number of this kind, spelled by its bits."""
        near = float(np.float32(value)) if self.kind == "float" else value
        return f"0x{struct.pack('>d', near).hex().upper()}"

    def libm(self, name: str, x: str) -> str:
        """erf, exp or tanh of x."""
        if self.kind == "double":
            return self.f.call("double", name, [("double", x)])
        made = self.f.call("double", name, [("double", self.f.op(f"fpext float {x} to double"))])
        return self.f.op(f"fptrunc double {made} to float")

    def activated(self, activation: str, x: str) -> str:
        op, number = self.op, self.constant
        if activation == "relu":
            return self.f.select(self.f.op(f"fcmp olt {self.kind} {x}, 0.0"), self.kind, "0.0", x)
        if activation == "silu":
            made = self.libm("exp", self.f.op(f"fneg {self.kind} {x}"))
            return op("fdiv", x, op("fadd", made, number(1.0)))
        if activation == "gelu":
            made = self.libm("erf", op("fmul", x, number(math.sqrt(0.5))))
        else:
            cube = op("fmul", op("fmul", op("fmul", x, number(0.044715)), x), x)
            made = self.libm("tanh", op("fmul", op("fadd", x, cube), number(math.sqrt(2 / math.pi))))
        one_more = op("fadd", made, number(1.0))
        return op("fmul", op("fmul", x, number(0.5)), one_more)
