"""How far a kernel's model is off on stacks of products: a line through what was measured, bent where sides get long.

Members, rows, columns and k of a stack are drawn from a thousand-fold range each: classes of them would have a sample
or two. So the logarithm of measured over expected time is fitted, for each kernel and dtype, by the logarithms of these
extents and of the expected time, each with bends; `tilewise tune --calibrate` fits it, a plan's time is mended by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from operator import mul

from tilewise.core.problem import Problem
from tilewise.core.tuning import StackFit

BENDS = {"m": (2, 4, 6, 8), "n": (2, 4, 6, 8), "k": (2, 4, 6, 8), "time": (2, 4, 7), "members": (4, 8)}  # octaves
SHORT_BEND = 4  # of the shorter of m and n,
CELL_BENDS, STEP_BENDS = (12, 15, 18, 21), (16, 20, 24, 28)  # and of all that a stack has of cells, and of steps
PULL = 5.0  # towards no error at all, in samples
FAR = 0.3  # an error beyond it counts less, the farther the less
FEWEST = 6  # samples of a kernel: fewer say nothing
ROUNDS = 5
FROM_TIME = 1 + sum(1 + len(BENDS[name]) for name in ("m", "n", "k", "members")) + 5 + len(CELL_BENDS) + len(STEP_BENDS)
PASSED = 2  # terms behind those of the time


def terms(problem: Problem, aligned: bool, predicted: float, passes: int) -> list[float]:
    """What the error of a plan's time is a sum of, each times its weight."""
    made, time = list(_of_problem(problem, aligned)), math.log2(max(predicted * 1e6, 0.1))
    made += _bent(time, BENDS["time"])
    made += (float(passes > 0), float(passes > 1))
    return made


@lru_cache(maxsize=64)
def _of_problem(p: Problem, aligned: bool) -> tuple[float, ...]:
    m, n, k, members = (math.log2(max(extent, 1)) for extent in (p.m, p.n, p.k, p.members))
    made = [1.0]
    for name, value in (("m", m), ("n", n), ("k", k), ("members", members)):
        made += _bent(value, BENDS[name])
    short, cells = min(m, n), members + m + n
    made += (float(aligned), short, max(0.0, short - SHORT_BEND), min(k, n), min(k, m))
    return (*made, *_bent(cells, CELL_BENDS)[1:], *_bent(cells + k, STEP_BENDS)[1:])


def _bent(value: float, bends: Sequence[int]) -> list[float]:
    return [value, *(max(0.0, value - bend) for bend in bends)]


def rises(line: StackFit) -> bool:
    """Whether a longer expected time never means a shorter one after mending."""
    slopes = line.weights[FROM_TIME : FROM_TIME + 1 + len(BENDS["time"])]
    return all(slope >= -math.log(2) for slope in accumulate(slopes))


def least_error(line: StackFit, p: Problem, aligned: bool, least: float) -> float:
    """What the error of a line that rises is at least, for any plan of a product that takes `least` seconds or more,
    but for what the time itself grows by."""
    passed = line.weights[FROM_TIME + 1 + len(BENDS["time"]) :]
    if len(passed) != PASSED:  # of another version
        return 0.0
    time = _bent(math.log2(max(least * 1e6, 0.1)), BENDS["time"])
    made: float = sum(map(mul, line.weights, (*_of_problem(p, aligned), *time))) + min(0.0, *accumulate(passed))
    return min(line.most, max(line.least, made))


def error(line: StackFit, values: Sequence[float]) -> float:
    """The logarithm of measured over expected time; never beyond what the line was fitted to."""
    if len(line.weights) != len(values):  # of another version
        return 0.0
    made: float = sum(map(mul, line.weights, values))
    return min(line.most, max(line.least, made))


def fitted(samples: Sequence[tuple[Sequence[float], float]]) -> StackFit | None:
    """The line through (terms, logarithm of measured over expected time); None where there are too few."""
    if len(samples) < FEWEST:
        return None
    import numpy as np

    values, wanted = np.array([v for v, _ in samples]), np.array([e for _, e in samples])
    middle, spread = values.mean(0), values.std(0)
    middle[0], spread[spread < 1e-9] = 0.0, 1.0
    scaled, pull = (values - middle) / spread, PULL * np.eye(values.shape[1])
    pull[0, 0] = 0.0
    weights = np.zeros(values.shape[1])
    for _ in range(ROUNDS):  # samples far from the line count less each time
        counts = 1 / np.maximum(1.0, np.abs(wanted - scaled @ weights) / FAR)
        weighed = scaled * counts[:, None]
        weights = np.linalg.solve(weighed.T @ scaled + pull, weighed.T @ wanted)
    made = scaled @ weights
    weights = weights / spread
    weights[0] -= middle @ weights
    return StackFit(
        tuple(round(float(w), 5) for w in weights), round(float(made.min()), 4), round(float(made.max()), 4)
    )
