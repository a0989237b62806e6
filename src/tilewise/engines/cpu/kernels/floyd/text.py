"""Floyd–Warshall on a square that fits the first cache, in place: what a blocked closure does on its diagonal."""

from __future__ import annotations

from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.engines.cpu.kernels.shared.ir import Function, module
from tilewise.engines.cpu.kernels.shared.masks import along, everywhere, load_lanes, store_lanes


def floyd_module(a: Arithmetic) -> str:
    """for k: for i: D[i] = add(D[i], mul(D[i, k], D[k])), a vector of columns at a time."""
    f = Function("floyd", [("ptr", "D"), ("i64", "n"), ("i64", "row")], public=True)
    with f.loop(0, "%n") as k, f.loop(0, "%n") as i:
        row_k, row_i = (f.at(a.kind, "%D", f.mul(at.index, "%row")) for at in (k, i))
        element = f.op(f"load {a.kind}, ptr {f.at(a.kind, row_i, k.index)}")
        x = everywhere(f, a, element, a.lanes)

        def columns(j: str, lanes: int, mask: str | None) -> None:
            y = load_lanes(f, a, f.at(a.kind, row_k, j), lanes, mask)
            place = f.at(a.kind, row_i, j)
            total = load_lanes(f, a, place, lanes, mask)
            one = x if lanes > 1 else element
            better = a.renderer(f, lanes).accumulate(a.add, a.mul, (total,), (one,), (y,))[0]
            store_lanes(f, a, better, place, lanes, mask)

        along(f, a, "%n", columns)
    return module([f])
