"""A small product modulo p as LLVM IR: N's remainders are laid out in rows of whole vectors, sums of products stay
below 2⁶⁴, and only they are reduced again."""

from __future__ import annotations

from tilewise.algebra.dtypes import DType
from tilewise.system.llvm_text import IRFunction, module

RECORD = ("m", "k", "n", "row_m", "col_m", "row_n", "col_n", "p")  # its fields; strides in elements
LANES = 8
FEW = 1024  # most cells of an operand, with rows of N padded to whole vectors
NARROW, SUMS = f"<{LANES} x i32>", f"<{LANES} x i64>"


def modular_module(m: DType, n: DType, result: DType) -> str:
    """`multiply(record, M, N, P)` of array objects; P lies in rows."""
    f = IRFunction("multiply", "ptr record, ptr M, ptr N, ptr P", public=True)
    fields = {name: f.load("i64", f.at("i64", "%record", at)) for at, name in enumerate(RECORD)}
    M, N, P = f.data_of("M", "N", "P")
    right, sums = f.op(f"alloca i32, i64 {FEW}, align 64"), f.op(f"alloca i64, i64 {FEW}, align 64")
    width = f.mul(f.div(f.add(fields["n"], LANES - 1), LANES), LANES)
    with f.loop(0, f.mul(fields["k"], width), LANES) as v:
        f.store(NARROW, "zeroinitializer", f.at("i32", right, v.index), 4)
    with f.loop(0, fields["k"]) as r, f.loop(0, fields["n"]) as j:
        at = f.at(_kind(n), N, f.mul(r.index, fields["row_n"]), f.mul(j.index, fields["col_n"]))
        left = f.op(f"trunc i64 {_remainder(f, at, n, fields['p'])} to i32")
        f.store("i32", left, f.at("i32", right, f.mul(r.index, width), j.index))
    with f.loop(0, fields["m"]) as i:
        _row(f, f.at(_kind(m), M, f.mul(i.index, fields["row_m"])), m, fields, right, sums, width)
        with f.loop(0, fields["n"]) as j:
            total = f.load("i64", f.at("i64", sums, j.index))
            rest = f.op(f"urem i64 {total}, {fields['p']}")
            kept = rest if _kind(result) == "i64" else f.op(f"trunc i64 {rest} to {_kind(result)}")
            to = f.at(_kind(result), P, f.mul(i.index, fields["n"]), j.index)
            f.store(_kind(result), kept, to)
    return module([f])


def _row(f: IRFunction, M: str, dtype: DType, fields: dict[str, str], right: str, sums: str, width: str) -> None:
    """One row of sums before the reduction."""
    with f.loop(0, width, LANES) as v:
        f.store(SUMS, "zeroinitializer", f.at("i64", sums, v.index), 8)
    with f.loop(0, fields["k"]) as r:
        x = _remainder(f, f.at(_kind(dtype), M, f.mul(r.index, fields["col_m"])), dtype, fields["p"])
        all_x = f.splat("i64", x, LANES)
        row = f.at("i32", right, f.mul(r.index, width))
        with f.loop(0, width, LANES) as v:
            narrow = f.load(NARROW, f.at("i32", row, v.index), 4)
            y = f.op(f"zext {NARROW} {narrow} to {SUMS}")
            place = f.at("i64", sums, v.index)
            held, made = f.load(SUMS, place, 8), f.op(f"mul {SUMS} {all_x}, {y}")
            f.store(SUMS, f.op(f"add {SUMS} {held}, {made}"), place, 8)


def _kind(dtype: DType) -> str:
    return f"i{8 * dtype.itemsize}"


def _remainder(f: IRFunction, at: str, dtype: DType, p: str) -> str:
    """An element modulo p, from 0 to p - 1, as i64."""
    x = f.load(_kind(dtype), at)
    signed = dtype.kind == "i"
    if _kind(dtype) != "i64":
        x = f.op(f"{'sext' if signed else 'zext'} {_kind(dtype)} {x} to i64")
    if not signed:
        return f.op(f"urem i64 {x}, {p}")
    rest = f.op(f"srem i64 {x}, {p}")
    return f.select(f.test("slt", rest, 0), "i64", f.add(rest, p), rest)
