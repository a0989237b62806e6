"""Sums across the lanes of vectors, many at once, and where they go: into P, onto it, or unrounded into a place that
`reduce` reads."""

from __future__ import annotations

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_llvm import Value, vector
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import load, store
from tilewise.system.llvm_text import IRFunction


def size_of(dtype: DType) -> str:
    """A type of an element's size."""
    return f"[{dtype.itemsize} x i8]"


def keep(f: IRFunction, a: Arithmetic, total: Value, place: str, *, planes: bool = False) -> None:
    """Into P, or onto what it holds; with `planes`, perhaps unrounded into a place of its own, imaginary parts `plane`
    behind the real ones."""

    def write(value: Value) -> None:
        store(f, a.target, a.partial, a.result, value, place, 1)

    def onto() -> None:
        write(a.renderer(f, 1).value(a.add, load(f, a.target, a.result, a.partial, place, 1), total))

    def rounded() -> None:
        f.either(f.test("eq", "%onto", 0), lambda: write(total), onto)

    def apart() -> None:
        for i, x in enumerate(total):
            f.store(a.kind, x, f.at(a.kind, place, f.mul("%plane", i)), a.bytes)

    if planes:
        f.either(f.test("eq", "%plane", 0), rounded, apart)
    else:
        rounded()


def across(f: IRFunction, a: Arithmetic, totals: list[str]) -> list[str]:
    """The sum over each vector's lanes."""
    left, lanes = added_up(f, a, totals)
    return apart(f, a.kind, left, lanes, len(totals))


def added_up(f: IRFunction, a: Arithmetic, totals: list[str], sums: int = 1) -> tuple[list[str], int]:
    """Those sums, `sums` in each vector, one after the other in vectors of so many lanes. Two vectors are halved
    together: one's halves are added in the low half of a third, the other's in its high half; so their number halves
    with every round, and not only their lanes."""
    lanes, left = a.lanes, list(totals)  # a vector holds what is still to be added of `sums` sums
    while lanes > sums:
        pairs: list[tuple[str, str | None]] = [(left[0], None)]
        if len(left) > 1:
            pairs = list(zip(left[::2], [*left[1::2], left[-1]], strict=False))
        halves = [tuple(_picked(f, a, pair, (lanes, sums), half) for half in (0, 1)) for pair in pairs]
        lanes, sums = (lanes, 2 * sums) if len(left) > 1 else (lanes // 2, sums)
        left = [a.renderer(f, lanes).value(a.add, (low,), (high,))[0] for low, high in halves]
    return left, lanes


def apart(f: IRFunction, kind: str, registers: list[str], lanes: int, count: int) -> list[str]:
    """The first `count` lanes of some vectors, each by itself."""
    if lanes == 1:
        return registers
    cells = [(register, lane) for register in registers for lane in range(lanes)]
    whole = vector(kind, lanes)
    return [f.op(f"extractelement {whole} {register}, i32 {lane}") for register, lane in cells[:count]]


def _picked(f: IRFunction, a: Arithmetic, pair: tuple[str, str | None], size: tuple[int, int], half: int) -> str:
    """One half of what each sum in x has lanes for, and then of each in y."""
    (x, y), (lanes, sums) = pair, size
    each, kind = lanes // sums, f"<{lanes} x {a.kind}>"
    chosen = [sum_ * each + half * (each // 2) + i for sum_ in range(sums) for i in range(each // 2)]
    chosen += [lanes + lane for lane in chosen] if y else []
    if len(chosen) == 1:
        return f.op(f"extractelement {kind} {x}, i32 {chosen[0]}")
    return f.shuffle(kind, x, y or "poison", chosen)
