"""The texts of kernels that move rows by an index."""

from __future__ import annotations

from tilewise.algebra.dtypes import DType
from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import c_name, prelude
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.groups import offset_type
from tilewise.kernels.shared.text import assembled

CELLS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long", 16: "uint4"}


@KeyedRenderer
def render_take(cell_bytes: int, wide: bool) -> str:
    """`wide`: the index is of 64-bit integers."""
    return assembled(f"typedef {CELLS[cell_bytes]} Cell;", offset_type(wide), "transforms/take_rows.cu")


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
    return assembled(*_weighted(algebra, weight, wide, each), "transforms/take_weighted_rows.cu")


def _weighted(algebra: Algebra, weight: DType | None, wide: bool, each: int) -> tuple[str, ...]:
    own = weight == algebra.element
    return (
        f"#define WIDEN_WEIGHT(x) {'widen(x)' if own else 'x'}",
        f"#define EACH {each}",
        prelude(algebra),
        f"typedef {'Element' if own or weight is None else c_name(weight)} Weight;",
        offset_type(wide),
    )
