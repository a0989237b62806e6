"""Loads of tiles from a packed panel of M, and prefetches of a row of P."""

from __future__ import annotations

from tilewise.algebra.to_llvm import Value, vector
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.system.llvm_text import IRFunction


def packed_element(f: IRFunction, a: Arithmetic, M: str, panel: int, k: str, row: int) -> Value:
    """M[row, k] broadcast, from a panel of this many rows."""
    if a.spread > 1:
        place = f.at("i32", M, f.mul(k, panel), row)
        lanes = a.lanes // a.spread
        wide = f.splat("i32", f.load("i32", place, 4), lanes)
        return (f.op(f"bitcast {vector('i32', lanes)} {wide} to {a.vector}"),)
    base = f.at(a.packed_m_kind, M, f.mul(k, panel * a.parts))
    places = [f.at(a.packed_m_kind, base, number * panel + row) for number in range(a.parts)]
    if a.repeats > 1:
        return tuple(f.load(a.vector, place, a.bytes) for place in places)
    loaded = [f.load(a.kind, place, a.bytes) for place in places]
    return tuple(f.splat(a.kind, x, a.lanes) for x in loaded)


def packed_vectors(f: IRFunction, a: Arithmetic, M: str, panel: int, k: str, rows: int) -> list[Value]:
    """The elements of `rows` rows as whole vectors, for NEON's multiply by lane. The last load may read past those
    rows, inside the panel's buffer."""
    base = f.at(a.kind, M, f.mul(k, panel * a.parts))
    return [
        tuple(f.load(a.vector, f.at(a.kind, base, number * panel + row), a.bytes) for number in range(a.parts))
        for row in range(0, rows, a.lanes)
    ]


def prefetch_row(
    f: IRFunction, a: Arithmetic, kind: str, size: int, line: str, vectors: int, ahead: int = 0, *, ends: bool
) -> None:
    """Prefetch the cells of this many vectors; `ends`: on NEON also the last one, because three short vectors may end
    in the next cache line."""
    for v in range(0, vectors, max(1, 64 // (a.lanes * size))):
        f.prefetch(f.at(kind, line, ahead + v * a.lanes))
    if a.target.by_lane and ends:
        f.prefetch(f.at(kind, line, vectors * a.lanes - 1))
