"""Random problems: every dtype of plus_times, layout, stride, offset, stack, epilogue; from a seed."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from tilewise.algebra.dtypes import DTYPES
from tilewise.core.epilogue import ACTIVATIONS, epilogue_of
from tilewise.core.problem import Layout, Problem, problem_of_shape

KINDS = {
    "bfloat16": "high",
    "float16": "high",
    "float32": "high",
    "tf32": "tf32",
    "ieee": "ieee",
    "float64": "high",
}


def drawn_problem(rng: random.Random, kind: str, most: int = 16384) -> Problem:
    """Extents log-uniform from 1; two of three contiguous, the others strided, shifted or stacked."""
    dtype = kind if kind in DTYPES else "float32"
    m, k, n = (round(math.exp(rng.uniform(0, math.log(most)))) for _ in range(3))
    if rng.random() < 0.3:
        m, k, n = (max(8, extent // 8 * 8) for extent in (m, k, n))
    p = problem_of_shape(m, k, n, dtype, precision=KINDS[kind])
    odd = rng.random() < 0.35
    p = replace(
        p,
        layout_m=_layout(rng, m, k, rng.choice("NT"), p.dtype.itemsize, odd),
        layout_n=_layout(rng, k, n, rng.choice("NT"), p.dtype.itemsize, odd),
        layout_p=_layout(rng, m, n, "N", p.dtype.itemsize, odd),
        accumulate=rng.random() < 0.1,
    )
    if rng.random() < 0.1:
        bias = rng.choice((None, DTYPES["float32"], p.dtype))
        p = replace(p, epilogue=epilogue_of(rng.choice((1.0, 0.5)), bias, rng.choice((None, *ACTIVATIONS))))
    return _stacked(rng, p) if rng.random() < 0.1 else p


def _layout(rng: random.Random, rows: int, cols: int, letter: str, size: int, odd: bool) -> Layout:
    lead, step, misalignment = (cols if letter == "N" else rows), 1, 0
    if odd:
        lead += rng.choice((0, 1, 3, 8, 64))
        misalignment = rng.randrange(0, 16, size)
        if rng.random() < 0.1:  # elements apart
            step, lead = 2, 2 * lead
    return Layout(lead, step, (), misalignment) if letter == "N" else Layout(step, lead, (), misalignment)


def _stacked(rng: random.Random, p: Problem) -> Problem:
    """Members one behind the other, one operand perhaps the same for all."""
    small = problem_of_shape(p.m % 500 + 1, p.k % 500 + 1, p.n % 500 + 1, p.dtype, precision=p.precision)
    each = (small.m * small.k, rng.choice((0, small.k * small.n)), small.m * small.n)
    layouts = (small.layout_m, small.layout_n, small.layout_p)
    m, n, made = (stacked(layout, step) for layout, step in zip(layouts, each, strict=True))
    return replace(small, stack=(rng.randint(2, 40),), layout_m=m, layout_n=n, layout_p=made, epilogue=p.epilogue)


def stacked(layout: Layout, step: int) -> Layout:
    """A layout of members so far apart, made by its fields: `kernel_goldens` also runs on versions before this one."""
    return Layout(layout.row, layout.col, (step,), layout.misalignment, layout.spare)
