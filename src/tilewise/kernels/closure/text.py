"""The texts of a closure on the card, beside its products: how it starts, closes a block, improves and ends."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.expression import Number
from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import c_name, literal, prelude, widened
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.text import assembled

SIDE = 64  # nodes that one block closes


@dataclass(frozen=True)
class ClosureForm:
    """What the texts depend on: the algebra of the weights, the one D is kept in (another where reachability counts
    hops), and its values of the empty path and of no edge."""

    given: Algebra
    work: Algebra
    one: Number
    absent: Number
    tracks: bool

    @property
    def counts_hops(self) -> bool:
        return self.given.semiring != self.work.semiring


@KeyedRenderer
def render_closure(kernel: str, form: ClosureForm) -> str:
    """One of the kernels in `kernels/closure/`."""
    work, given, t = form.work, form.given, form.work.partial
    edge, result = "widen(x)", "narrow(value)"
    if form.counts_hops:
        truth = widened(given.element, DTYPES["bool"]) if given.element.kind != "b" else "x"
        edge, result = f"(({truth}) ? {literal(1, t)} : ZERO)", f"(value < {literal(work.zero, t)})"
    elif form.absent != work.zero:
        assert not isinstance(form.absent, complex)
        half = int(form.absent) // 2 if form.absent > 0 else -(-int(form.absent) // 2)
        result = f"narrow(value {'>' if form.absent > 0 else '<'} {literal(half, t)} ? ZERO : value)"
    defines: dict[str, object] = {
        "ONE": literal(form.one, t), "ABSENT": literal(form.absent, t), "BEFORE": form.tracks, "SIDE": SIDE,
        "EDGE(x)": edge, "TO_RESULT(value)": result,
    }  # fmt: skip
    return assembled(
        prelude(replace(work, result=given.result), encodes=False),
        f"typedef {c_name(given.element)} Given;  // {given.element}: a weight as it lies in W",
        defines,
        "",
        f"closure/{kernel}.cu",
    )
