"""From a tile's sums on the stack to the cells of P that exist: for edge tiles, and all tiles with args."""

from __future__ import annotations

from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.to_llvm import Value, constant, vector
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.masks import load_cells, store_cells, vector_loop
from tilewise.backends.cpu.kernels.shared.tile import index_kind
from tilewise.system.llvm_text import IRFunction

PARAMS = "ptr sums, ptr counts, i64 width, i64 size, ptr P, i64 row_p, i64 plane, i64 rows, i64 cols, i1 first, i64 k0"


def merge_function(a: Arithmetic) -> IRFunction:
    return _with_args(a) if a.tracks_arg else _masked(a)


def _masked(a: Arithmetic) -> IRFunction:
    """Row by row, a vector at a time; lanes past P's edge are neither read nor written."""
    f = IRFunction("merge", PARAMS)
    with f.loop(0, "%rows") as row:
        line, cells = f.at(a.sum_kind, "%P", f.mul(row.index, "%row_p")), f.mul(row.index, "%width")

        def columns(col: str, lanes: int, mask: str | None) -> None:
            place = f.at(a.sum_kind, line, col)
            cell = f.at(a.kind, "%sums", cells, col)
            sums = tuple(
                f.load(vector(a.kind, lanes), f.at(a.kind, cell, f.mul("%size", number)), a.bytes)
                for number in range(a.parts)
            )

            def keep(values: Value) -> None:
                store_cells(f, a, a.canonical(f, values, lanes), place, lanes, mask)

            def onto() -> None:
                keep(a.renderer(f, lanes).value(a.add, load_cells(f, a, place, lanes, mask), sums))

            f.either("%first", lambda: keep(sums), onto)

        vector_loop(f, a, "%cols", columns)
    return f


def _with_args(a: Arithmetic) -> IRFunction:
    """Cell by cell: a sum that is better than those of earlier strips of k replaces them, and so does its k."""
    f = IRFunction("merge", PARAMS)
    zero, none = a.zeros(1)[0], constant(-1, DTYPES["int64"], 1)[0]
    args = f.op("getelementptr i8, ptr %P, i64 %plane")
    with f.loop(0, "%rows") as row, f.loop(0, "%cols") as col:
        at = f.add(f.mul(row.index, "%row_p"), col.index)
        cell, arg = f.at(a.kind, "%P", at), f.at("i64", args, at)
        inside = f.add(f.mul(row.index, "%width"), col.index)
        new = f.load(a.kind, f.at(a.kind, "%sums", inside))
        count = f.load(index_kind(a), f.at(index_kind(a), "%counts", inside))
        count = count if a.bytes == 8 else f.op(f"sext {index_kind(a)} {count} to i64")
        with f.when("%first"):
            f.store(a.kind, zero, cell)
            f.store("i64", none, arg)
        old = f.load(a.kind, cell)
        with f.when(a.better(f, new, old, 1)):
            f.store(a.kind, a.canonical(f, (new,), 1)[0], cell)
            f.store("i64", f.add(count, "%k0"), arg)
    return f
