"""What P must be: over a semiring, by the lecturer's Python function, or by the lecturer's own kernel."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.errors import UsageError
from tilewise.teaching.course.assignment import Assignment, Shape

TOLERANCE = {2: 2e-2, 4: 1e-4, 8: 1e-10}


def expected(assignment: Assignment, shape: Shape, M: np.ndarray, N: np.ndarray, seed: int) -> np.ndarray:
    """P for these operands, which are the grader's own copies: a kernel that writes to M or N changes nothing here."""
    file, _, name = assignment.reference.partition(":")
    if file.endswith(".py"):
        return np.asarray(_function(assignment.folder / file, name)(M.copy(), N.copy()))
    if file.endswith(".cu"):
        return by_kernel(assignment, assignment.folder / file, shape, seed)
    if assignment.reference == "plus_times" and M.dtype.kind == "f":
        return np.asarray(M.astype(np.float64) @ N.astype(np.float64))
    from tilewise.algebra.builtin import find_semiring
    from tilewise.dispatch.product import matmul

    return np.asarray(matmul(M, N, semiring=find_semiring(assignment.reference), device="cpu"))


@lru_cache(maxsize=4)
def _function(file: Path, name: str) -> Callable[..., Any]:
    found = runpy.run_path(str(file)).get(name)
    if not callable(found):
        raise UsageError(f"{file} has no function {name}")
    return found  # type: ignore[no-any-return]


def by_kernel(assignment: Assignment, file: Path, shape: Shape, seed: int) -> np.ndarray:
    from tilewise.teaching.trace import check

    run = check(file, shape=shape, tile=assignment.tile, seed=seed, adversarial=False).runs[0]
    if "P" not in run.arrays:
        raise UsageError(f"{file}: the reference kernel has no P")
    return run.arrays["P"].copy()


def wrong_cells(have: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where P is not what it must be, as a mask; a NaN is never right."""
    if have.shape != want.shape:
        return np.ones(have.shape, np.bool_)
    if have.dtype.kind in "iub":
        return np.asarray(have != want.astype(have.dtype))
    with np.errstate(all="ignore"):
        far = np.abs(have.astype(np.float64) - want) <= TOLERANCE.get(have.dtype.itemsize, 1e-4) * (1 + np.abs(want))
        return ~np.asarray((have == want) | far)
