"""Random operands with strides of every kind, as a recipe: fresh memory, then a view of it.

The recipe is kept apart from NumPy so that the same view can be taken of an array on a card.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from operands import DTYPES, SEMIRINGS, values, weighs, works


@dataclass(frozen=True)
class View:
    """rows×cols seen through a view of fresh memory."""

    rows: int
    cols: int
    transposed: bool
    step_row: int
    step_col: int
    offset: int
    broadcast: bool

    @property
    def memory_shape(self):
        rows, cols = (self.cols, self.rows) if self.transposed else (self.rows, self.cols)
        rows = 1 if self.broadcast else rows
        return (rows * abs(self.step_row) + self.offset, cols * abs(self.step_col) + self.offset)

    def of(self, memory, xp=np):
        rows, cols = (self.cols, self.rows) if self.transposed else (self.rows, self.cols)
        part = memory[self.offset :, self.offset :][:: abs(self.step_row), :: abs(self.step_col)]
        part = part[: 1 if self.broadcast else rows, :cols]
        if self.broadcast:
            part = xp.broadcast_to(part, (rows, cols))
        part = part[:: 1 if self.step_row > 0 else -1, :: 1 if self.step_col > 0 else -1]
        return part.T if self.transposed else part


@st.composite
def views(draw, rows, cols):
    return View(
        rows,
        cols,
        draw(st.booleans()),
        draw(st.sampled_from([1, 1, 2, -1, -3])),
        draw(st.sampled_from([1, 1, 1, 2, -1])),
        draw(st.integers(0, 3)),
        draw(st.sampled_from([False, False, False, True])),
    )


@dataclass(frozen=True)
class Case:
    semiring: str
    view_m: View
    view_n: View
    memory_m: np.ndarray
    memory_n: np.ndarray
    tile: int | None


@st.composite
def cases(draw, dtypes=DTYPES, size=70, tiles=(None, 1, 2, 3, 8, 16, 32)):
    semiring = draw(st.sampled_from(SEMIRINGS))
    dtype_m = draw(st.sampled_from([d for d in dtypes if works(semiring, d)]))
    dtype_n = draw(st.sampled_from([dtype_m, dtype_m, dtype_m, *(d for d in dtypes if works(semiring, d))]))
    m, k, n = (draw(st.integers(0, size)) for _ in range(3))
    view_m, view_n = draw(views(m, k)), draw(views(k, n))
    seed, specials = draw(st.integers(0, 2**32 - 1)), draw(st.booleans())
    return Case(
        semiring,
        view_m,
        view_n,
        values(view_m.memory_shape, dtype_m, seed, specials, weighs(semiring)),
        values(view_n.memory_shape, dtype_n, seed + 1, specials, weighs(semiring)),
        draw(st.sampled_from(tiles)),
    )
