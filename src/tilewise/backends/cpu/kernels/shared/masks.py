"""Partial vectors: by masks where the target has them, else whole vectors and single elements for the remainder."""

from __future__ import annotations

from collections.abc import Callable

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_llvm import Value, scalar_kind, vector
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import alternating, every_other, load, narrow, store, widen
from tilewise.system.llvm_text import IRFunction


def vector_loop(f: IRFunction, a: Arithmetic, count: str, body: Callable[[str, int, str | None], None]) -> None:
    """body(index, lanes, mask) for elements from 0 to `count`: masked vectors, or bare vectors and then single ones."""
    if a.target.masks:
        with f.loop(0, count, a.lanes) as i:
            body(i.index, a.lanes, mask_below(f, f.sub(count, i.index), a.lanes))
        return
    whole = f.mul(f.div(count, a.lanes), a.lanes)
    with f.loop(0, whole, a.lanes) as i:
        body(i.index, a.lanes, None)
    with f.loop(whole, count) as i:
        body(i.index, 1, None)


def load_lanes(f: IRFunction, a: Arithmetic, place: str, lanes: int, mask: str | None) -> str:
    if mask is not None:
        return masked_load(f, a, place, mask, lanes)
    return f.load(vector(a.kind, lanes), place, a.bytes)


def store_lanes(f: IRFunction, a: Arithmetic, value: str, place: str, lanes: int, mask: str | None) -> None:
    if mask is not None:
        masked_store(f, a, value, place, mask)
    else:
        f.store(vector(a.kind, lanes), value, place, a.bytes)


def load_cells(f: IRFunction, a: Arithmetic, place: str, lanes: int, mask: str | None = None) -> Value:
    """`lanes` cells of `partial`; the parts of complex numbers are interleaved in memory."""
    if a.parts == 1:
        return (load_lanes(f, a, place, lanes, mask),)
    if mask is None:
        return load(f, a.target, a.partial, a.partial, place, lanes)
    kind = vector(a.kind, 2 * lanes)
    to: list[tuple[str, str | int]] = [("ptr", place), ("i32", a.bytes), _of_parts(f, mask, lanes)]
    name = f"llvm.masked.load.{vector_suffix(a, 2 * lanes)}.p0"
    return every_other(f, f.call(kind, name, [*to, (kind, "zeroinitializer")]), a.kind, lanes)


def store_cells(f: IRFunction, a: Arithmetic, value: Value, place: str, lanes: int, mask: str | None = None) -> None:
    if a.parts == 1:
        store_lanes(f, a, value[0], place, lanes, mask)
    elif mask is None:
        store(f, a.target, a.partial, a.partial, value, place, lanes)
    else:
        real, imaginary = value
        both = f.shuffle(vector(a.kind, lanes), real, imaginary, alternating(lanes))
        to: list[tuple[str, str | int]] = [("ptr", place), ("i32", a.bytes), _of_parts(f, mask, lanes)]
        f.call("void", f"llvm.masked.store.{vector_suffix(a, 2 * lanes)}.p0", [(vector(a.kind, 2 * lanes), both), *to])


def _of_parts(f: IRFunction, mask: str, lanes: int) -> tuple[str, str]:
    """A mask of complex numbers as one of their parts."""
    return vector("i1", 2 * lanes), f.shuffle(vector("i1", lanes), mask, "poison", [i // 2 for i in range(2 * lanes)])


def mask_below(f: IRFunction, count: str, lanes: int) -> str:
    """Which lanes are below `count`."""
    limit = f.splat("i32", f.op(f"trunc i64 {count} to i32"), lanes)
    counting = ", ".join(f"i32 {lane}" for lane in range(lanes))
    return f.op(f"icmp slt {vector('i32', lanes)} <{counting}>, {limit}")


def masked_load(f: IRFunction, a: Arithmetic, place: str, mask: str, lanes: int = 0) -> str:
    """Load the lanes under the mask; the others are 0 and their memory is not accessed. `lanes`: not a vector's."""
    lanes = lanes or a.lanes
    kind = vector(a.kind, lanes)
    to: list[tuple[str, str | int]] = [("ptr", place), ("i32", a.bytes), (vector("i1", lanes), mask)]
    return f.call(kind, f"llvm.masked.load.{vector_suffix(a, lanes)}.p0", [*to, (kind, "zeroinitializer")])


def masked_source(f: IRFunction, a: Arithmetic, source: DType, place: str, mask: str) -> str:
    """The same for elements of `source`, converted to `partial`."""
    if source == a.partial:
        return masked_load(f, a, place, mask)
    kind, align = vector(scalar_kind(source), a.lanes), source.itemsize
    to: list[tuple[str, str | int]] = [("ptr", place), ("i32", align), (vector("i1", a.lanes), mask)]
    name = f"llvm.masked.load.v{a.lanes}{scalar_kind(source)}.p0"
    return widen(f, a.target, source, a.partial, f.call(kind, name, [*to, (kind, "zeroinitializer")]), a.lanes)[0]


def masked_store(f: IRFunction, a: Arithmetic, value: str, place: str, mask: str) -> None:
    to: list[tuple[str, str | int]] = [("ptr", place), ("i32", a.bytes), (vector("i1", a.lanes), mask)]
    f.call("void", f"llvm.masked.store.{vector_suffix(a)}.p0", [(a.vector, value), *to])


def masked_result(f: IRFunction, a: Arithmetic, value: str, place: str, mask: str) -> None:
    """Store the lanes under the mask as P's elements."""
    store_rounded(f, a, narrow(f, a.target, a.partial, a.result, value, a.lanes, clear=a.ordered), place, mask)


def store_rounded(f: IRFunction, a: Arithmetic, raw: str, place: str, mask: str) -> None:
    """Store the lanes under the mask, which are P's elements already."""
    kind = vector(a.element_p, a.lanes)
    to: list[tuple[str, str | int]] = [("ptr", place), ("i32", a.result.itemsize), (vector("i1", a.lanes), mask)]
    suffix = {"float": "f32", "double": "f64"}.get(a.element_p, a.element_p)
    f.call("void", f"llvm.masked.store.v{a.lanes}{suffix}.p0", [(kind, raw), *to])


def vector_suffix(a: Arithmetic, lanes: int = 0) -> str:
    return f"v{lanes or a.lanes}" + {"float": "f32", "double": "f64"}.get(a.kind, a.kind)
