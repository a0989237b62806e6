"""`reproducible=`: what fixes the bits of a product, as plain values.

"batch": a row of P depends on that row of M, on N, k, dtype, precision and epilogue alone, on one kind of machine.
"everywhere": every bit of P follows from the operands alone, by the definition in `docs/how/same-bits.md`:
    chains of fused multiply-adds over CHAIN consecutive k, each from +0 in the order of k; their sums added in order.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from tilewise.algebra.dtypes import DType
from tilewise.algebra.expression import is_plain
from tilewise.algebra.semiring import Semiring
from tilewise.errors import UsageError

LEVELS = ("batch", "everywhere")
Level: TypeAlias = Literal["batch", "everywhere"] | None
DEFINITION = 1  # of the bits of "everywhere": another number wherever a product has other bits
CHAIN = 512  # k of a chain


def check_reproducible(level: object) -> str | None:
    """The level, or None; an error for any other value."""
    if level is None or (isinstance(level, str) and level in LEVELS):
        return level
    raise UsageError(
        f"reproducible={level!r} is not known; known are {', '.join(map(repr, LEVELS))}, and None for neither"
    )


def check_defined(ring: Semiring, sums: DType, dtype: DType) -> bool:
    """Whether a level specifies an order of sums: integers and truths need none. Refuses what has no definition."""
    if sums.kind not in "fc":
        return False
    sum_of_products = is_plain(ring.add, "add") and is_plain(ring.mul, "mul")
    extreme = any(is_plain(ring.add, op) for op in ("min", "max"))
    if sums.name.endswith("longdouble") or not (
        sum_of_products or (extreme and any(is_plain(ring.mul, op) for op in ("add", "mul", "min", "max")))
    ):
        raise UsageError(
            f"reproducible= has no defined bits for {ring} over {dtype}: it has for plus_times, and for min and max of "
            "sums, products, minima or maxima; leave it out"
        )
    return True


def order_note(ring: Semiring) -> str:
    """The order of sums, for people who read a plan."""
    if is_plain(ring.add, "add"):
        return f"chains of {CHAIN} fused multiply-adds in the order of k, added in order: the same bits everywhere"
    return "a min or max of any order; zeros are +0: the same bits everywhere"


BATCH_NOTE = (
    "chains of tensor-core instructions that k and n alone decide, for any number of rows: the same bits in every batch"
)
