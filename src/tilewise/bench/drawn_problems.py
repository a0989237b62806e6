"""Random problems from a seed: dtypes, layouts, strides, offsets, stacks, epilogues, groups, semirings."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.dtypes import DTYPES, FLOAT8, dtype_named
from tilewise.bench.random_shapes import log_uniform
from tilewise.core.epilogue import ACTIVATIONS, epilogue_of
from tilewise.core.problem import Groups, Layout, Problem, problem_of_shape, row_major

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
        if rng.random() < 0.1:  # elements with a stride of 2
            step, lead = 2, 2 * lead
    return Layout(lead, step, (), misalignment) if letter == "N" else Layout(step, lead, (), misalignment)


def _stacked(rng: random.Random, p: Problem) -> Problem:
    """A stack of contiguous members; N may be the same for all."""
    small = problem_of_shape(p.m % 500 + 1, p.k % 500 + 1, p.n % 500 + 1, p.dtype, precision=p.precision)
    each = (small.m * small.k, rng.choice((0, small.k * small.n)), small.m * small.n)
    layouts = (small.layout_m, small.layout_n, small.layout_p)
    m, n, made = (stacked(layout, step) for layout, step in zip(layouts, each, strict=True))
    return replace(small, stack=(rng.randint(2, 40),), layout_m=m, layout_n=n, layout_p=made, epilogue=p.epilogue)


def stacked(layout: Layout, step: int) -> Layout:
    """A layout with `step` elements between members; by fields, because `kernel_goldens` runs on older versions too."""
    return Layout(layout.row, layout.col, (step,), layout.misalignment, layout.spare)


# --- every kind of product ---

RANGES = {  # of m, k and n
    "tiny": ((1, 64), (1, 64), (1, 64)),
    "skinny": ((1, 32), (16, 65536), (16, 32768)),
    "thin": ((16, 32768), (1, 128), (16, 32768)),
    "k_pack": ((1, 512), (2048, 2**20), (1, 512)),
    "any": ((1, 16384), (16, 16384), (16, 16384)),
}
SIZES = ("tiny", "skinny", "thin", "k_pack", "power", "any", "any", "any")
MOST_STEPS, MOST_CELLS, STACK_CELLS = 2e11, 5e8, 4e8
OTHER_DTYPES = ("int8", "uint8", "int16", "int32", "int64", "bool", "float8_e4m3fn")


def random_problem(rng: random.Random) -> Problem:
    """A single product, a stack or groups, of any dtype, semiring and size."""
    p = _of_any_dtype(rng)
    form = rng.choices(("single", "stack", "rows", "k"), (6, 3, 1.2, 0.4))[0]
    if form == "single" and rng.random() < 0.4:
        odd, size = rng.random() < 0.5, p.dtype_m.itemsize
        m, n = _layout(rng, p.m, p.k, rng.choice("NT"), size, odd), _layout(rng, p.k, p.n, rng.choice("NT"), size, odd)
        return _with_more(rng, replace(p, layout_m=m, layout_n=n))
    count = 1
    if form == "stack":
        count, sides = log_uniform(rng, 2, 4096), [min(x, 2048) for x in (p.m, p.k, p.n)]
        p = replace(p, m=sides[0], k=sides[1], n=sides[2])
        count = max(2, min(count, int(STACK_CELLS / (p.m * p.k + p.k * p.n + p.m * p.n))))
    letters = rng.choice(("NN", "NN", "NT", "TN", "TT"))
    m, n = _plain(p.m, p.k, letters[0]), _plain(p.k, p.n, letters[1])
    p = replace(p, layout_m=m, layout_n=n, layout_p=row_major(p.m, p.n))
    if form == "stack":
        shared = rng.random() < 0.25
        m, n = stacked(m, p.m * p.k), stacked(n, 0 if shared else p.k * p.n)
        made = stacked(p.layout_p, p.m * p.n)
        return _with_more(rng, replace(p, stack=(count,), layout_m=m, layout_n=n, layout_p=made))
    if form == "rows":
        count = max(1, min(rng.choice((1, 4, 16, 64, 256)), int(MOST_CELLS / (p.k * p.n))))
        return replace(p, layout_n=stacked(n, p.k * p.n), groups=Groups(count, "rows", rng.random() < 0.3))
    if form == "k":
        count = max(1, min(rng.choice((1, 4, 16, 64)), int(MOST_CELLS / (p.m * p.n))))
        of_p = row_major(p.m, p.n, (count,))
        m, n = stacked(m, 0), stacked(n, 0)
        return replace(p, stack=(count,), layout_m=m, layout_n=n, layout_p=of_p, groups=Groups(count, "k"))
    return _with_more(rng, p)


def _of_any_dtype(rng: random.Random) -> Problem:
    """A single row-major product."""
    while True:
        m, k, n = _extents(rng, rng.choice(SIZES))
        if m * k * n < MOST_STEPS and max(m * k, k * n, m * n) < MOST_CELLS:
            break
    what = rng.choices(("usual", "dtype", "semiring"), (8, 1, 2))[0]
    if what == "usual":
        kind = rng.choice(list(KINDS))
        return problem_of_shape(m, k, n, kind if kind in DTYPES else "float32", precision=KINDS[kind])
    if what == "dtype":
        name = rng.choice(OTHER_DTYPES)
        made = problem_of_shape(m, k, n, FLOAT8[name] if name in FLOAT8 else dtype_named(name))
        return replace(made, requested=DTYPES["float32"]) if name in FLOAT8 else made
    ring = rng.choice([name for name in SEMIRINGS if name != "plus_times"])
    dtype = rng.choice(("float32", "float32", "float64", "int32", "float16", "int16"))
    return problem_of_shape(m, k, n, dtype, ring)


def _extents(rng: random.Random, sort: str) -> tuple[int, int, int]:
    if sort == "power":
        made = [2 ** rng.randrange(3, 14) + rng.choice((-1, 0, 1, 1)) for _ in range(3)]
    else:
        made = [log_uniform(rng, low, high) for low, high in RANGES[sort]]
    if sort == "skinny" and rng.random() < 0.5:
        made.reverse()
    if rng.random() < 0.3:
        made = [max(8, x // 8 * 8) for x in made]
    m, k, n = made
    return m, k, n


def _plain(rows: int, cols: int, letter: str) -> Layout:
    return Layout(cols, 1) if letter == "N" else Layout(1, rows)


def _with_more(rng: random.Random, p: Problem) -> Problem:
    """The problem, sometimes with accumulate or an epilogue."""
    if rng.random() < 0.07:
        return replace(p, accumulate=True)
    if rng.random() < 0.08 and p.semiring.name == "plus_times" and p.dtype.kind == "f":
        bias = rng.choice((None, DTYPES["float32"], p.dtype))
        return replace(p, epilogue=epilogue_of(rng.choice((1.0, 0.5)), bias, rng.choice((None, *ACTIVATIONS))))
    return p
