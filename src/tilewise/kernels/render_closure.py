"""The texts of a closure on the card, beside its products: how it starts, closes a block, improves and ends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tilewise.algebra.expression import Number
from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import literal, prelude
from tilewise.kernels.render import kernel_text
from tilewise.kernels.render_plain import defined

SIDE = 64  # nodes that one block closes


@dataclass(frozen=True)
class ClosureForm:
    """What the texts depend on beside the algebra of the weights: `work` is the algebra that D is kept in (another one
    where reachability counts hops), `one` and `absent` its values of the empty path and of no edge."""

    given: Algebra
    work: Algebra
    one: Number
    absent: Number
    tracks: bool

    @property
    def counts_hops(self) -> bool:
        return self.given.partial != self.work.partial


@lru_cache(maxsize=256)
def render_closure(kernel: str, form: ClosureForm) -> str:
    """One of the kernels in `kernels/closure/`."""
    work, given, t = form.work, form.given, form.work.partial
    handed = "narrow(value)"
    if form.counts_hops:
        handed = f"(value < {literal(work.zero, t)})"
    elif form.absent != work.zero:
        assert not isinstance(form.absent, complex)
        half = int(form.absent) // 2 if form.absent > 0 else -(-int(form.absent) // 2)
        far = f"value > {literal(half, t)}" if form.absent > 0 else f"value < {literal(half, t)}"
        handed = f"narrow({far} ? ZERO : value)"
    # weights come in as the given algebra has them, D is in the working one
    text = prelude(given)
    edge = "widen(x)"
    if form.counts_hops:
        widened = next(line for line in text.splitlines() if " widen(Element x)" in line)
        text = prelude(work).replace("typedef float Element;", "typedef float Weight;")
        text += f"typedef {_element(given)} Given;\n" + widened.replace("Partial widen(Element", "bool is_edge(Given")
        text = text.replace("typedef float Result;", "typedef bool Result;")
        text = "\n".join(line for line in text.splitlines() if "widen(" not in line and "narrow(" not in line)
        text += "\n#define Element Given\n"
        edge = f"(is_edge(x) ? {literal(1, t)} : ZERO)"
    defines: dict[str, object] = {
        "ONE": literal(form.one, t), "ABSENT": literal(form.absent, t), "BEFORE": int(form.tracks), "SIDE": SIDE,
        "EDGE(x)": edge, "HANDED(value)": handed,
    }  # fmt: skip
    return "\n".join((text, *defined(defines), "", kernel_text(f"closure/{kernel}.cu")))


def _element(algebra: Algebra) -> str:
    from tilewise.algebra.to_cuda import c_name

    return c_name(algebra.element)
