"""How a semiring's multiply-add is computed on plain cores: the packing of elements into words, and a step's cost.

One element a word, two halves or shorts stepped as a pair, 32 truths as bits; integers by the instruction that adds and
compares at once, floats from 0 up compared as integers, three at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tilewise.algebra.no_edge import no_edge_of
from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine, arch_number
from tilewise.kernels.shared.steps import binary, step_slots


@dataclass(frozen=True)
class Config:
    """A step algorithm. `slots`: issue slots of a step, in float32 multiply-adds."""

    name: str  # a key of CONFIGS
    word_bytes: int
    per_word: int  # elements along k that a word holds
    sum_words: int  # 4-byte registers of one sum
    slots: float
    converts: bool = False  # words are wider than the elements, or contain several
    enters: bool = False  # integers' "no edge" is another value in accumulators

    @property
    def packs(self) -> bool:
        """Whether words differ from the elements, so that operands are packed first."""
        return self.converts or self.enters

    @property
    def idea(self) -> str:
        return CONFIGS[self.name]


CONFIGS = {
    "each": "one element of k",
    "fused": "one element of k, add and min in one instruction",
    "three": "two elements of k, compared as integers, three at a time",
    "pairs": "two halves of k in one word",
    "shorts": "two shorts of k in one word, add and min in one instruction",
    "bits": "32 truths of k in one word",
    "online": "one element of k, onto the largest so far and a sum beside it",
    "where": "one element of k, and which k it was",
}


@lru_cache(maxsize=1024)
def config_of(
    algebra: Algebra, machine: Machine, nonnegative: bool = False, return_arg: bool = False, ordered: bool = False
) -> Config:
    """The fastest algorithm on this card with the specified bits; `ordered`: with those of every machine."""
    add, mul = binary(algebra.semiring.add), binary(algebra.semiring.mul)
    element, partial, number = algebra.element, algebra.partial, arch_number(machine.arch)
    size = max(4, element.itemsize)
    small = element.itemsize < 4
    slots, enters = step_slots(algebra, machine), no_edge_of(algebra) is not None
    if return_arg:
        words = partial.itemsize // 4 + 1 if partial.itemsize >= 4 else 2
        return Config("where", size, 1, words, slots + 3, small, enters)
    if ordered:
        return Config("each", size, 1, max(1, partial.itemsize // 4), slots, small, enters)
    if partial.kind == "b" and (add, mul) in BIT_OPERATIONS:
        return Config("bits", 4, 32, 1, 2 / 32, True)
    if add in ("min", "max") and element.itemsize == 2 and element.kind == "f":
        # min and max of rounded values are the rounded min and max, and float32 rounds no half's sum or product twice
        exact = ("add", "min", "max", "mul") if element.name == "float16" else ("add", "min", "max")
        if mul in exact and number >= (80 if element.name == "float16" else 90):
            return Config("pairs", 4, 2, 1, slots / 2, True)
    if add in ("min", "max") and mul == "add" and element.is_integer and element.itemsize == 2 and number >= 90:
        return Config("shorts", 4, 2, 1, 1.0, True, enters)
    if add in ("min", "max") and mul == "add" and element.is_integer and element.itemsize == 4 and number >= 90:
        return Config("fused", 4, 1, 1, 2.0, enters=enters)
    if (
        nonnegative
        and element.name == "float32"
        and number >= 90
        and ((add == "min" and mul in ("add", "mul", "min", "max")) or (add == "max" and mul in ("add", "min", "max")))
    ):
        return Config("three", 4, 1, 1, 0.75 * slots)
    if add == "logaddexp" and partial.kind == "f":
        return Config("online", size, 1, partial.itemsize // 2, slots, small)
    return Config("each", size, 1, max(1, partial.itemsize // 4), slots, small, enters)


INFINITE, LARGEST = 0x7F800000, 0x7F7FFFFF  # the bits of infinity, and of the largest finite float32


@lru_cache(maxsize=1024)
def config_if_found(algebra: Algebra, machine: Machine) -> tuple[Config, int] | None:
    """A faster algorithm for operands whose words, as unsigned integers, do not exceed a limit (no negative, no NaN),
    and the limit. Where ∞ times 0 would be NaN, it excludes ∞."""
    promised = config_of(algebra, machine, nonnegative=True)
    if promised.name == "three":
        return promised, INFINITE
    ring = (binary(algebra.semiring.add), binary(algebra.semiring.mul))
    if ring == ("max", "mul") and algebra.element.name == "float32" and arch_number(machine.arch) >= 90:
        return Config("three", 4, 1, 1, 0.75 * promised.slots), LARGEST
    return None


# over truths, 32 a word: the bit operations of add and mul, and the initial value of a sum
BIT_OPERATIONS = {
    **{(a, m): ("|", "&", "0u") for a in ("or", "add", "max") for m in ("and", "mul", "min")},
    **{(a, m): ("&", "|", "0xffffffffu") for a in ("and", "mul", "min") for m in ("or", "add", "max")},
}
