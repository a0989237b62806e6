"""Shapes that nobody chose: m, k and n log-uniform, layouts at random, drawn from a seed."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from tilewise.algebra.dtypes import SHORT
from tilewise.errors import UsageError

LARGEST = {"float32": 8192, "float64": 8192}  # extents; 16384 for the others
STEPS = (1e6, 4e11)  # of a product: no fewer, no more
STACK_CELLS = 7e8  # of a stack and its product
KINDS = {**SHORT, "tf32": "tf32"}


@dataclass(frozen=True)
class Shape:
    """A product that nobody chose."""

    m: int
    k: int
    n: int
    layouts: str  # N or T, for M and for N
    dtype: str
    precision: str = "high"
    members: int = 1

    @property
    def kind(self) -> str:
        """The dtype as people say it: float32 by tf32 is a kind of its own."""
        return "tf32" if self.precision == "tf32" else self.dtype

    @property
    def name(self) -> str:
        stack = f"{self.members}·" if self.members > 1 else ""
        return f"{self.kind} {stack}{self.m}x{self.k}x{self.n} {self.layouts}"


def draw(rng: random.Random, dtypes: tuple[str, ...]) -> Shape:
    """m log-uniform from 1, k and n from 16; three of ten in multiples of 8; two of five with both in rows."""
    while True:
        dtype = rng.choice(dtypes)
        name = "float32" if dtype == "tf32" else dtype
        most = LARGEST.get(dtype, 16384)
        m, k, n = (round(math.exp(rng.uniform(math.log(least), math.log(most)))) for least in (1, 16, 16))
        if rng.random() < 0.3:
            m, k, n = (max(8, extent // 8 * 8) for extent in (m, k, n))
        if STEPS[0] < m * k * n < STEPS[1]:
            layouts = rng.choice(("NN", "NN", "NT", "TN", "TT"))
            return Shape(m, k, n, layouts, name, "tf32" if dtype == "tf32" else "high")


def draw_stack(rng: random.Random, dtypes: tuple[str, ...]) -> Shape:
    """2 to 4,096 members of sides 2 to 2,048, log-uniform; three of ten in multiples of 8."""
    while True:
        dtype = rng.choice(dtypes)
        members = round(math.exp(rng.uniform(math.log(2), math.log(4096))))
        m, k, n = (round(math.exp(rng.uniform(math.log(2), math.log(2048)))) for _ in range(3))
        if rng.random() < 0.3:
            m, k, n = (max(8, extent // 8 * 8) for extent in (m, k, n))
        fits = members * (m * k + k * n + m * n) < STACK_CELLS
        if fits and STEPS[0] / 10 < members * m * k * n < STEPS[1]:
            name, layouts = "float32" if dtype == "tf32" else dtype, rng.choice(("NN", "NN", "NT", "TN"))
            return Shape(m, k, n, layouts, name, "tf32" if dtype == "tf32" else "high", members)


def kinds_given(text: str) -> tuple[str, ...]:
    """`bf16,fp32` or `bfloat16,float32` → the names that `draw` knows."""
    found = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        name = KINDS.get(word, word)
        if name not in KINDS.values():
            raise UsageError(f"--dtypes {text!r}: {word!r} is not known; known are {', '.join(KINDS)}")
        found.append(name)
    if not found:
        raise UsageError(f"--dtypes {text!r} names none; known are {', '.join(KINDS)}")
    return tuple(dict.fromkeys(found))


def drawn(count: int, seed: int, kinds: tuple[str, ...]) -> list[Shape]:
    """So many shapes of every kind; those of one do not depend on which others are asked for."""
    if count < 1:
        raise UsageError(f"--count {count} must be 1 or more")
    return [draw(rng, (kind,)) for kind in kinds for rng in [random.Random(f"{seed} {kind}")] for _ in range(count)]
