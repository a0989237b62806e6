"""Readings of P: other products than row-major M · N over (+, *), as transposed operands or another semiring.

A kernel that is right under a reading gets one line that states it, instead of many findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product as combinations
from typing import Any

import numpy as np

CELLS = 96  # of P that are compared: a wrong reading differs in nearly all of them
Operation = Callable[[Any, Any], Any]

SEMIRINGS: dict[str, tuple[Any, Operation]] = {
    "plus_times": (np.add, np.multiply),
    "min_plus": (np.minimum, np.add),
    "max_plus": (np.maximum, np.add),
    "max_times": (np.maximum, np.multiply),
    "min_times": (np.minimum, np.multiply),
    "max_min": (np.maximum, np.minimum),
    "min_max": (np.minimum, np.maximum),
    "lor_land": (np.logical_or, np.logical_and),
}


@dataclass(frozen=True)
class Reading:
    """`transposed`: the roles among M, N and P that are column-major; `swapped`: P is N · M."""

    transposed: tuple[str, ...] = ()
    semiring: str = "plus_times"
    swapped: bool = False

    def describe(self, names: dict[str, str]) -> str:
        """The condition under which P is right, in the kernel's own names."""
        parts = []
        if len(self.transposed) == 3:
            parts.append("all three matrices are stored column by column")
        elif self.transposed:
            which = " and ".join(names[role] for role in self.transposed)
            parts.append(f"{which} {'are' if len(self.transposed) > 1 else 'is'} stored transposed, column by column")
        if self.swapped:
            parts.append(f"the product is {names['N']} · {names['M']}")
        if self.semiring != "plus_times":
            parts.append(f"the product is taken over {self.semiring}")
        return " and ".join(parts)


def _rows(flat: np.ndarray, rows: int, cols: int, transposed: bool) -> np.ndarray:
    """A rows x cols matrix from row-major or column-major memory."""
    return flat.reshape(cols, rows).T if transposed else flat.reshape(rows, cols)


def _sample(written: np.ndarray) -> np.ndarray:
    cells = np.flatnonzero(written)
    if len(cells) <= CELLS:
        return cells
    rng = np.random.default_rng(0)
    return np.sort(rng.choice(cells, CELLS, replace=False))


def find_reading(
    one: np.ndarray, two: np.ndarray, have: np.ndarray, written: np.ndarray, shape: tuple[int, int, int]
) -> Reading | None:
    """The reading under which P is right, or None. `one`, `two` and `have` are M, N and P in memory order, `written`
    the cells of P that were stored to."""
    m, k, n = shape
    if not (len(one) == m * k and len(two) == k * n and len(have) == m * n) or not m * k * n:
        return None
    cells = _sample(written)
    held = have[cells].astype(np.float64)
    if not (held != held[:1]).any():
        return None
    tolerance = 1e-4 if have.dtype.kind == "f" and have.dtype.itemsize >= 4 else 2e-2 if have.dtype.kind == "f" else 0
    for swapped in (False, True) if m == n == k else (False,):
        for transposed in combinations((False, True), repeat=3):
            first, second = (two, one) if swapped else (one, two)
            left = _rows(first, m, k, transposed[0]).astype(np.float64)
            right = _rows(second, k, n, transposed[1]).astype(np.float64)
            rows, cols = divmod(cells, n) if not transposed[2] else divmod(cells, m)[::-1]
            a, b = left[rows, :], right[:, cols].T
            for name, (add, mul) in SEMIRINGS.items():
                with np.errstate(all="ignore"):
                    expected = add.reduce(mul(a, b), axis=1).astype(np.float64)
                    scale = np.abs(a * b).sum(axis=1) + 1
                    close = np.abs(held - expected) <= tolerance * scale
                if name == "lor_land":
                    close = close & np.isin(held, (0, 1)).all()
                if close.all():
                    roles = tuple(r for r, t in zip("MNP", transposed, strict=True) if t)
                    return Reading(roles, name, swapped)
    return None
