"""An epilogue as LLVM IR: activation(alpha · sums + P + bias), stored over the sums, by vectors.

Vectors and the cells that are left over take the same steps, so a cell's value does not depend on its column.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import numpy as np

from tilewise.algebra.llvm_exponentials import Exponentials
from tilewise.algebra.to_llvm import splat
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.core.epilogue import Epilogue
from tilewise.system.llvm_text import FIRST_FIELD, IRFunction, module

ROWS = "ptr sums, ptr bias, ptr P, double alpha, i64 rows, i64 cols"  # of `rows`, with contiguous elements
ARRAYS = "ptr record, ptr sums, ptr bias, ptr P"
KINDS = {"float32": "float", "float64": "double"}


def epilogue_module(epilogue: Epilogue, dtype: str, onto: bool, vector_bytes: int) -> str:
    """`finish(record, sums, bias, P)`: the last three are array objects with contiguous elements; the record holds the
    numbers of rows and columns, and alpha. `finish_rows`: a task of a job with the addresses M, N, P of the same, that
    of alpha in `arg`, and `task_m` of its m rows of n columns."""
    kind = KINDS[dtype]

    def finished(c: _Cells, i: str, j: str, at: str) -> str:
        x = c.load("%sums", at)
        if epilogue.alpha != 1.0:
            x = c.op("fmul", x, c.alpha)
        if onto:
            x = c.op("fadd", x, c.load("%P", at))
        if epilogue.bias is not None:
            x = c.op("fadd", x, c.load("%bias", j))
        return x if epilogue.activation is None else c.activated(epilogue.activation, x)

    rows = _rows(kind, vector_bytes, finished)
    return module([rows, _of_arrays(epilogue.bias is not None, onto), _of_job(kind)])


def scaling_module(rows: bool, columns: bool, vector_bytes: int) -> str:
    """`finish(record, sums, columns, rows, factor)` for scales of float32 sums: by `factor`, a float object, then by
    one scale for each row and one for each column."""

    def scaled(c: _Cells, i: str, j: str, at: str) -> str:
        x = c.op("fmul", c.load("%sums", at), c.alpha)
        if rows:
            x = c.op("fmul", x, c.every_lane(c.f.load(c.kind, c.f.at(c.kind, "%P", i))))
        return c.op("fmul", x, c.load("%bias", j)) if columns else x

    return module([_rows("float", vector_bytes, scaled), _of_arrays(columns, rows, factor=True)])


def _rows(kind: str, vector_bytes: int, cell: Callable[[_Cells, str, str, str], str]) -> IRFunction:
    """`rows`: every cell x of some rows as `cell(cells, row, column, number)`."""
    f = IRFunction("rows", ROWS)
    lanes = vector_bytes // (4 if kind == "float" else 8)
    alpha = "%alpha" if kind == "double" else f.op("fptrunc double %alpha to float")
    by_vectors, one_by_one = _Cells(f, kind, lanes, alpha), _Cells(f, kind, 1, alpha)
    vectors = f.mul(f.div("%cols", lanes), lanes)
    with f.loop(0, "%rows") as i:
        start = f.mul(i.index, "%cols")
        for cells, first, last in ((by_vectors, "0", vectors), (one_by_one, vectors, "%cols")):
            with f.loop(first, last, cells.lanes) as j:
                at = f.add(start, j.index)
                cells.store(cell(cells, i.index, j.index, at), at)
    return f


def _of_arrays(bias: bool, P: bool, factor: bool = False) -> IRFunction:
    """`finish`. `bias`, `P`: whether those are read; `factor`: whether alpha is a separate argument."""
    f = IRFunction("finish", f"{ARRAYS}, ptr factor" if factor else ARRAYS, public=True)
    rows, cols = (f.load("i64", f.at("i64", "%record", number)) for number in range(2))
    alpha = f.load("double", f.at("i8", "%factor", FIRST_FIELD) if factor else f.at("i64", "%record", 2))
    given = {name: f.data_of(name)[0] if read else "null" for name, read in (("bias", bias), ("P", P))}
    f.invoke("rows", ROWS, sums=f.data_of("sums")[0], alpha=alpha, rows=rows, cols=cols, **given)
    return f


def _of_job(kind: str) -> IRFunction:
    """`finish_rows`."""
    f = IRFunction("finish_rows", TASK_PARAMS, public=True)
    job = JobReader(f)
    sums, bias, P = (job.pointer(name) for name in "MNP")
    m, cols, each = job.fields("m", "n", "task_m")
    top = f.mul("%task", each)
    before = f.mul(top, cols)
    f.invoke(
        "rows", ROWS, sums=f.at(kind, sums, before), bias=bias, P=f.at(kind, P, before),
        alpha=f.load("double", job.pointer("arg")), rows=f.lower(f.sub(m, top), each), cols=cols,
    )  # fmt: skip
    return f


class _Cells:
    """So many cells of a row at once, being emitted."""

    def __init__(self, f: IRFunction, kind: str, lanes: int, alpha: str) -> None:
        self.f, self.kind, self.lanes = f, kind, lanes
        self.type = kind if lanes == 1 else f"<{lanes} x {kind}>"
        self.suffix = ("" if lanes == 1 else f"v{lanes}") + ("f32" if kind == "float" else "f64")
        self.alpha = self.every_lane(alpha)
        self.exponentials = Exponentials(kind, lanes, f.op, self.fma, self.number)

    def every_lane(self, value: str) -> str:
        return self.f.splat(self.kind, value, self.lanes)

    def load(self, base: str, index: str) -> str:
        return self.f.load(self.type, self.f.at(self.kind, base, index), 4 if self.kind == "float" else 8)

    def store(self, value: str, index: str) -> None:
        self.f.store(self.type, value, self.f.at(self.kind, "%sums", index), 4 if self.kind == "float" else 8)

    def op(self, name: str, x: str, y: str) -> str:
        return self.f.op(f"{name} {self.type} {x}, {y}")

    def fma(self, a: str, b: str, c: str) -> str:
        return self.f.call(self.type, f"llvm.fmuladd.{self.suffix}", [(self.type, x) for x in (a, b, c)])

    def number(self, value: float) -> str:
        """A constant of this kind for every lane, spelled by its bits."""
        near = float(np.float32(value)) if self.kind == "float" else value
        return splat(f"0x{struct.pack('>d', near).hex().upper()}", self.kind, self.lanes)

    def activated(self, activation: str, x: str) -> str:
        op, number, select = self.op, self.number, self.exponentials.select
        negative = self.f.op(f"fcmp olt {self.type} {x}, {number(0.0)}")
        if activation == "relu":
            return select(negative, number(0.0), x)
        if activation == "gelu":  # x · (1 + erf(x / √2)) / 2
            half = op("fmul", number(0.5), self.exponentials.erfc(op("fmul", self._size(x), number(math.sqrt(0.5)))))
            return op("fmul", x, select(negative, half, op("fsub", number(1.0), half)))
        y = x
        if activation == "gelu_tanh":  # (1 + tanh(z)) / 2 is the logistic function of 2z
            y = self.fma(op("fmul", op("fmul", x, x), x), number(0.044715), x)
            y = op("fmul", y, number(math.sqrt(8 / math.pi)))
        return op("fmul", x, self.exponentials.logistic(y, self._size(y)))

    def _size(self, x: str) -> str:
        return self.f.call(self.type, f"llvm.fabs.{self.suffix}", [(self.type, x)])
