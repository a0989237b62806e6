"""Launches that gather rows by an index, and that add rows up where an index says: M, P, `offsets` for the index."""

from __future__ import annotations

import ctypes
import math
from functools import lru_cache

from tilewise.algebra.dtypes import DType
from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import c_name, prelude
from tilewise.core.problem import Layout
from tilewise.core.recipe import Address, Launch, Recipe, Scratch
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.groups import OFFSETS, offset_type
from tilewise.kernels.shared.text import assembled

CELLS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long", 16: "uint4"}


@KeyedRenderer
def render_take(cell_bytes: int, wide: bool) -> str:
    """`wide`: the index is of 64-bit integers."""
    head = f"typedef {CELLS[cell_bytes]} Element;"
    return assembled(head, {"WEIGHTED": 0, "EACH": 1}, offset_type(wide), "transforms/take_rows.cu")


@KeyedRenderer
def render_link(wide: bool) -> str:
    return assembled(offset_type(wide), "transforms/link_rows.cu")


@KeyedRenderer
def render_add(algebra: Algebra, weight: DType | None, wide: bool, each: int = 1) -> str:
    """`weight`: the dtype of weights, the rows' own or that of their sums; `each`: elements of a word."""
    head = {"WEIGHTED": weight is not None}
    return assembled(head, *_weighted(algebra, weight, wide, each), "transforms/add_rows.cu")


@KeyedRenderer
def render_weighted_take(algebra: Algebra, weight: DType, wide: bool, each: int) -> str:
    return assembled({"WEIGHTED": 1}, *_weighted(algebra, weight, wide, each), "transforms/take_rows.cu")


def _weighted(algebra: Algebra, weight: DType | None, wide: bool, each: int) -> tuple[str, ...]:
    own = weight == algebra.element
    return (
        f"#define WIDEN_WEIGHT(x) {'widen(x)' if own else 'x'}",
        f"#define EACH {each}",
        prelude(algebra),
        f"typedef {'Element' if own or weight is None else c_name(weight)} Weight;",
        offset_type(wide),
    )


def take_recipe(
    count: int, length: int, available: int, itemsize: int, layout: Layout, lead: int, wide: bool
) -> Recipe:
    """Lines `lead` apart, of the lines that the index names."""
    cell = itemsize
    if layout.col == 1 or length <= 1:  # lines side by side travel in the widest words that fit all of them
        cell = math.gcd(16, layout.misalignment or 16, *(x * itemsize for x in (layout.row, lead, length)))
    each, col = cell // itemsize, 1 if cell > itemsize else layout.col
    source = render_take.key(cell, wide)
    return _taking(source, count, length // each, available, (layout.row // each, col, lead // each))


def weighted_take_recipe(
    algebra: Algebra, count: int, length: int, available: int, layout: Layout, lead: int, weight: DType, wide: bool
) -> Recipe:
    """The same, each line times its weight (`scale_m`)."""
    each = _elements_of_a_word(algebra, length, layout, lead)
    source = render_weighted_take.key(algebra, weight, wide, each)
    return _taking(source, count, length // each, available, (layout.row, layout.col, lead), Address("scale_m"))


@lru_cache(maxsize=1024)
def _taking(source: str, count: int, words: int, available: int, strides: tuple[int, ...], *weights: Address) -> Recipe:
    """One launch: `words` of each line."""
    arguments = (
        *(Address("M"), Address("P"), OFFSETS, *weights, ctypes.c_longlong(count)),
        *(ctypes.c_int(words), *map(ctypes.c_longlong, (available, *strides))),
    )
    launch = Launch.of(source, "take_rows", (math.ceil(count / 8),), (256,), arguments)
    return Recipe((launch,) if count and words else ())


def _elements_of_a_word(algebra: Algebra, length: int, layout: Layout, lead: int) -> int:
    """Of the widest words that fit all lines, of those that are read and of fresh ones `lead` apart."""
    size = algebra.element.itemsize
    if layout.col != 1 or algebra.result.itemsize != size:
        return 1
    return max(1, math.gcd(16, layout.misalignment or 16, *(x * size for x in (layout.row, length, lead))) // size)


@lru_cache(maxsize=1024)
def add_recipe(
    algebra: Algebra, lines: int, n: int, count: int, layout: Layout, to: Layout, weight: DType | None, wide: bool
) -> Recipe:
    """`count` lines, each the sum of those that the index sends to it, times their weights (`scale_m`)."""
    scratch = Scratch()
    heads, following = scratch.take(4 * count), scratch.take(4 * lines)
    link, sizes = render_link.key(wide), (ctypes.c_int(lines), ctypes.c_int(count))
    each = _elements_of_a_word(algebra, n, layout, to.row) if to.col == 1 and not to.misalignment else 1
    steps = [
        Launch.of(link, "no_rows", (math.ceil(count / 256),), (256,), (heads, sizes[1])),
        Launch.of(link, "link_rows", (math.ceil(lines / 256),), (256,), (OFFSETS, heads, following, *sizes)),
        Launch.of(
            render_add.key(algebra, weight, wide, each),
            "add_rows",
            (count,),
            (128,),
            (
                *(Address("M"), Address("P"), Address("scale_m"), OFFSETS, heads, following, sizes[0]),
                ctypes.c_int(n // each),
                *(ctypes.c_longlong(x) for x in (layout.row, layout.col, to.row, to.col)),
            ),
        ),
    ]
    if not lines:
        del steps[1]
    return Recipe(tuple(steps) if count and n else (), scratch.size)
