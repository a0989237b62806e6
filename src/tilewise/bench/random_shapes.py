"""Random products: m, k and n log-uniform, layouts at random, drawn from a seed."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from tilewise.algebra.dtypes import ABBREVIATIONS
from tilewise.bench.suites import Shape
from tilewise.errors import UsageError

LARGEST = dict.fromkeys(("float32", "float64", "complex64", "complex128"), 8192)  # extents; 16384 for the others
STEPS = (1e6, 4e11)  # of a product: no fewer, no more
KINDS = {**ABBREVIATIONS, "tf32": "tf32", "c64": "complex64", "c128": "complex128"}


@dataclass(frozen=True)
class RandomProduct:
    """A product, or a stack of several."""

    m: int
    k: int
    n: int
    layouts: str  # N or T, for M and for N
    dtype: str
    precision: str = "high"
    members: int = 1

    @property
    def shape(self) -> Shape:
        return self.m, self.k, self.n

    @property
    def kind(self) -> str:
        """The dtype; tf32 for float32 with that precision."""
        return "tf32" if self.precision == "tf32" else self.dtype

    @property
    def name(self) -> str:
        stack = f"{self.members}·" if self.members > 1 else ""
        return f"{self.kind} {stack}{self.m}x{self.k}x{self.n} {self.layouts}"


def log_uniform(rng: random.Random, low: float, high: float) -> int:
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))


def draw(rng: random.Random, kinds: tuple[str, ...]) -> RandomProduct:
    """m log-uniform from 1, k and n from 16; three of ten in multiples of 8; two of five row-major on both sides."""
    while True:
        kind = rng.choice(kinds)
        m, k, n = _extents(rng, (1, 16, 16), LARGEST.get(kind, 16384))
        if STEPS[0] < m * k * n < STEPS[1]:
            return _product(kind, (m, k, n), rng.choice(("NN", "NN", "NT", "TN", "TT")))


def _extents(rng: random.Random, least: tuple[int, ...], most: int) -> Shape:
    m, k, n = (log_uniform(rng, low, most) for low in least)
    return (max(8, m // 8 * 8), max(8, k // 8 * 8), max(8, n // 8 * 8)) if rng.random() < 0.3 else (m, k, n)


def _product(kind: str, shape: Shape, layouts: str, members: int = 1) -> RandomProduct:
    dtype, precision = ("float32", "tf32") if kind == "tf32" else (kind, "high")
    return RandomProduct(*shape, layouts, dtype, precision, members)


def kinds_given(text: str) -> tuple[str, ...]:
    """`bf16,fp32` or `bfloat16,float32` → the names that `draw` takes."""
    found = []
    for given in filter(None, (part.strip() for part in text.split(","))):
        name = KINDS.get(given, given)
        if name not in KINDS.values():
            raise UsageError(f"--dtypes {text!r}: {given!r} is not known; known are {', '.join(KINDS)}")
        found.append(name)
    if not found:
        raise UsageError(f"--dtypes {text!r} names none; known are {', '.join(KINDS)}")
    return tuple(dict.fromkeys(found))


def drawn(count: int, seed: int, kinds: tuple[str, ...]) -> list[RandomProduct]:
    """`count` products of every kind; the products of a kind do not depend on the other kinds."""
    return [draw(rng, (kind,)) for kind in kinds for rng in [random.Random(f"{seed} {kind}")] for _ in range(count)]
