"""Chains of the plain kernel: where their sums are until the last one.

Sums are in P where it has their dtype and its rows start on 16 bytes, else in scratch memory: a flush of a tile takes
as long as its loads are in flight, one row of 16-byte words after the other.
"""

from __future__ import annotations

from dataclasses import replace

from tilewise.algebra.builtin import is_plus_times
from tilewise.core.problem import Problem, row_major
from tilewise.core.recipe import Address
from tilewise.core.reproducible import CHAIN
from tilewise.kernels.shared.placed import Placed


def in_chains(p: Problem) -> bool:
    """Whether sums are those of chains, one added to the other."""
    return p.ordered and is_plus_times(p.semiring)


def on_quads(P: Placed, lead: int, word_bytes: int) -> bool:
    """Whether rows of P start where as many elements as a 16-byte word of the operands has can be stored at once."""
    quad = 16 // word_bytes * P.dtype.itemsize
    starts = (P.pointer.alignment, *(s * P.dtype.itemsize for s in (lead, *P.layout.stack)))
    return all(start % quad == 0 for start in starts)


def sums_apart(p: Problem, P: Placed, word_bytes: int) -> bool:
    """Whether sums of chains are in scratch memory."""
    alike = p.result == p.algebra.partial and on_quads(P, P.lead, word_bytes)
    return in_chains(p) and p.k > CHAIN and not alike


def sums_of_chains(p: Problem, P: Placed, apart: Address | None, lead: int) -> Placed | None:
    """Where the sums are, P or the scratch memory `apart` with rows `lead` apart; None without chains."""
    if not in_chains(p):
        return None
    if apart is None:
        return replace(P, layout=P.layout._replace(row=P.lead))
    return Placed(apart, p.algebra.partial, p.m, p.n, row_major(p.m, lead, p.stack))


def pointer_names(where: Placed | None, sums: Placed | None) -> tuple[str, ...]:
    """The kernel's pointers that a stack offsets."""
    return "M", "N", "P", *(["Pwhere"] if where is not None else []), *(["sums"] if sums is not None else [])
