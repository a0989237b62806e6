"""Floyd–Warshall on a square that fits the first cache, in place: what a blocked closure does on its diagonal."""

from __future__ import annotations

from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.engines.cpu.kernels.shared.ir import Function, module
from tilewise.engines.cpu.kernels.shared.tile import mask_below, masked_load, masked_store


def floyd_module(a: Arithmetic) -> str:
    """for k: for i: D[i] = add(D[i], mul(D[i, k], D[k])), a vector of columns at a time."""
    f = Function("floyd", [("ptr", "D"), ("i64", "n"), ("i64", "row")], public=True)
    render = a.renderer(f, a.lanes)
    with f.loop(0, "%n") as k, f.loop(0, "%n") as i:
        row_k, row_i = (f.at(a.kind, "%D", f.mul(at.index, "%row")) for at in (k, i))
        x = f.op(f"load {a.kind}, ptr {f.at(a.kind, row_i, k.index)}")
        one = f.op(f"insertelement {a.vector} poison, {a.kind} {x}, i32 0")
        x = f.op(f"shufflevector {a.vector} {one}, {a.vector} poison, <{a.lanes} x i32> zeroinitializer")
        with f.loop(0, "%n", a.lanes) as j:
            mask = mask_below(f, f.sub("%n", j.index), a.lanes)
            y = masked_load(f, a, f.at(a.kind, row_k, j.index), mask)
            place = f.at(a.kind, row_i, j.index)
            total = masked_load(f, a, place, mask)
            masked_store(f, a, render.accumulate(a.add, a.mul, (total,), (x,), (y,))[0], place, mask)
    return module([f])
