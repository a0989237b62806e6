"""From a tile's sums on the stack to the cells of P that exist: the edges, and whatever also wants its arg."""

from __future__ import annotations

from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.to_llvm import constant
from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.engines.cpu.kernels.shared.ir import Function
from tilewise.engines.cpu.kernels.shared.tile import index_kind, mask_below, masked_load, masked_store

PARAMS = [
    ("ptr", "sums"), ("ptr", "counts"), ("i64", "width"), ("i64", "size"), ("ptr", "P"), ("i64", "row_p"),
    ("i64", "plane"), ("i64", "rows"), ("i64", "cols"), ("i1", "first"), ("i64", "k0"),
]  # fmt: skip


def merge_function(a: Arithmetic) -> Function:
    return _with_args(a) if a.tracks_arg else _masked(a)


def _masked(a: Arithmetic) -> Function:
    """Row by row, a vector at a time; lanes past P's edge are neither read nor written."""
    f = Function("merge", PARAMS)
    with f.loop(0, "%rows") as row, f.loop(0, "%cols", a.lanes) as col:
        inside = mask_below(f, f.sub("%cols", col.index), a.lanes)
        real = f.at(a.kind, "%P", f.mul(row.index, "%row_p"), col.index)
        places = [real] if a.parts == 1 else [real, f.at(a.kind, real, "%plane")]
        cell = f.at(a.kind, "%sums", f.mul(row.index, "%width"), col.index)
        sums = tuple(
            f.op(f"load {a.vector}, ptr {f.at(a.kind, cell, f.mul('%size', number))}, align {a.bytes}")
            for number in range(a.parts)
        )
        fresh, onto, done = f.label("fresh"), f.label("onto"), f.label("done")
        f.do(f"br i1 %first, label %{fresh}, label %{onto}")
        f.start(onto)
        old = tuple(masked_load(f, a, place, inside) for place in places)
        for value, place in zip(a.renderer(f, a.lanes).value(a.add, old, sums), places, strict=True):
            masked_store(f, a, value, place, inside)
        f.do(f"br label %{done}")
        f.start(fresh)
        for value, place in zip(sums, places, strict=True):
            masked_store(f, a, value, place, inside)
        f.do(f"br label %{done}")
        f.start(done)
    return f


def _with_args(a: Arithmetic) -> Function:
    """Cell by cell: the new sum wins if it is better than what earlier strips of k left; then its k is the arg."""
    f = Function("merge", PARAMS)
    zero, none = a.zeros(1)[0], constant(-1, DTYPES["int64"], 1)[0]
    args = f.op("getelementptr i8, ptr %P, i64 %plane")
    with f.loop(0, "%rows") as row, f.loop(0, "%cols") as col:
        at = f.add(f.mul(row.index, "%row_p"), col.index)
        cell, arg = f.at(a.kind, "%P", at), f.at("i64", args, at)
        inside = f.add(f.mul(row.index, "%width"), col.index)
        new = f.op(f"load {a.kind}, ptr {f.at(a.kind, '%sums', inside)}")
        count = f.op(f"load {index_kind(a)}, ptr {f.at(index_kind(a), '%counts', inside)}")
        count = count if a.bytes == 8 else f.op(f"sext {index_kind(a)} {count} to i64")
        with f.when("%first"):
            f.do(f"store {a.kind} {zero}, ptr {cell}")
            f.do(f"store i64 {none}, ptr {arg}")
        old = f.op(f"load {a.kind}, ptr {cell}")
        with f.when(a.better(f, new, old, 1)):
            f.do(f"store {a.kind} {new}, ptr {cell}")
            f.do(f"store i64 {f.add(count, '%k0')}, ptr {arg}")
    return f
