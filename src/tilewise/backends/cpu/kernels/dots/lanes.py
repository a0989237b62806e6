"""Horizontal sums of many vectors at once, and their stores: into P, added to P, or unrounded into the buffer that
`reduce` reads."""

from __future__ import annotations

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_llvm import Value, vector
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import load, store
from tilewise.system.llvm_text import IRFunction


def size_of(dtype: DType) -> str:
    """An LLVM type of the size of an element."""
    return f"[{dtype.itemsize} x i8]"


def store_cell(f: IRFunction, a: Arithmetic, total: Value, place: str, *, unrounded: bool = False) -> None:
    """Store to P, or add to it; or, where there is a parameter `unrounded` that is not 0, into a buffer of sums."""

    def write(value: Value) -> None:
        store(f, a.target, a.partial, a.result, value, place, 1)

    def onto() -> None:
        write(a.renderer(f, 1).value(a.add, load(f, a.target, a.result, a.partial, place, 1), total))

    def rounded() -> None:
        f.either(f.test("eq", "%onto", 0), lambda: write(total), onto)

    if unrounded:
        buffered = f.test("ne", "%unrounded", 0)
        f.either(buffered, lambda: store(f, a.target, a.partial, a.partial, total, place, 1), rounded)
    else:
        rounded()


def horizontal_sums(f: IRFunction, a: Arithmetic, totals: list[str]) -> list[str]:
    """The horizontal sum of each vector."""
    left, lanes = reduce_vectors(f, a, totals)
    return extract_lanes(f, a.kind, left, lanes, len(totals))


def reduce_vectors(f: IRFunction, a: Arithmetic, totals: list[str], sums: int = 1) -> tuple[list[str], int]:
    """The horizontal sums, packed into vectors of this many lanes; initially a vector holds the terms of `sums` sums.
    Two vectors are reduced together: the halves of one are added into the low half of the result, those of the other
    into its high half; so each round halves the number of vectors, and not only their lanes."""
    lanes, left = a.lanes, list(totals)
    while lanes > sums:
        pairs: list[tuple[str, str | None]] = [(left[0], None)]
        if len(left) > 1:
            pairs = list(zip(left[::2], [*left[1::2], left[-1]], strict=False))
        halves = [tuple(_picked(f, a, pair, (lanes, sums), half) for half in (0, 1)) for pair in pairs]
        lanes, sums = (lanes, 2 * sums) if len(left) > 1 else (lanes // 2, sums)
        left = [a.renderer(f, lanes).value(a.add, (low,), (high,))[0] for low, high in halves]
    return left, lanes


def extract_lanes(f: IRFunction, kind: str, registers: list[str], lanes: int, count: int) -> list[str]:
    """The first `count` lanes of some vectors as scalars."""
    if lanes == 1:
        return registers
    cells = [(register, lane) for register in registers for lane in range(lanes)]
    whole = vector(kind, lanes)
    return [f.op(f"extractelement {whole} {register}, i32 {lane}") for register, lane in cells[:count]]


def _picked(f: IRFunction, a: Arithmetic, pair: tuple[str, str | None], size: tuple[int, int], half: int) -> str:
    """Half of the terms of each sum in x, then of each in y."""
    (x, y), (lanes, sums) = pair, size
    each, kind = lanes // sums, f"<{lanes} x {a.kind}>"
    chosen = [sum_ * each + half * (each // 2) + i for sum_ in range(sums) for i in range(each // 2)]
    chosen += [lanes + lane for lane in chosen] if y else []
    if len(chosen) == 1:
        return f.op(f"extractelement {kind} {x}, i32 {chosen[0]}")
    return f.shuffle(kind, x, y or "poison", chosen)
