"""Random operands of every dtype, with strides of every kind, as a recipe: fresh memory, then a view of it.

The recipe is kept apart from NumPy so that the same view can be taken of an array on a card.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

SEMIRINGS = (
    "plus_times", "min_plus", "max_plus", "min_times", "max_times", "min_max", "max_min", "lor_land", "logaddexp_plus",
)  # fmt: skip
CARD_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
DTYPES = (*CARD_DTYPES, "longdouble", "clongdouble")


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def works(semiring, dtype):
    kind = numpy_dtype(dtype).kind if dtype != "bfloat16" else "f"
    if semiring in ("plus_times", "lor_land"):
        return True
    if semiring == "logaddexp_plus":
        return kind == "f"
    return kind != "c"


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


def weighs(semiring):
    """Whether integers are weights there, whose range is stated: see `tilewise.algebra.no_edge`."""
    return semiring in ("min_plus", "max_plus")


def values(shape, dtype, seed, specials=False, weights=False):
    """Random numbers that show every mistake: full range for integers, mixed signs for floats, Inf and NaN if asked."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.3
    number = numpy_dtype(dtype)
    if number.kind in "iu":
        info = np.iinfo(number)
        low, high = (info.min // 7, info.max // 7) if weights else (info.min, info.max)
        return rng.integers(low, high, shape, dtype=number, endpoint=True)
    made = rng.standard_normal(shape)
    if number.kind == "c":
        made = made + 1j * rng.standard_normal(shape)
    elif specials:
        made = np.where(rng.random(shape) < 0.05, rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0], shape), made)
    return made.astype(number)


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
