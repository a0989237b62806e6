"""What compute-sanitizer is given: small products by every family of the registry, in configs drawn from a seed."""

from __future__ import annotations

import random

from tilewise.bench.drawn_problems import KINDS
from tilewise.core.problem import problem_of_shape
from tilewise.kernels.registry import FAMILIES

CONFIGS = 1  # of each family for each of these; its own choice where it offers none
PRODUCTS = (  # edges on all sides; few rows, lines on 16 bytes and on none; few columns; a short k; a long one, cut
    (129, 65, 257), (5, 536, 304), (5, 531, 301), (300, 33, 7), (70, 3, 90), (64, 4104, 64),
)  # fmt: skip


def cases(seed, machine):
    """(problem, family, config): each product in each dtype by every family that takes it, configs drawn."""
    rng = random.Random(seed)
    for m, k, n in PRODUCTS:
        for kind, precision in KINDS.items():
            dtype = kind if kind in ("bfloat16", "float16", "float64") else "float32"
            problem = problem_of_shape(m, k, n, dtype, precision=precision)
            for family in FAMILIES:
                if family.refusal(problem, machine) is None:
                    choice = list(family.configurations(problem, machine)) or [None]
                    yield from ((problem, family, config) for config in rng.sample(choice, min(CONFIGS, len(choice))))
