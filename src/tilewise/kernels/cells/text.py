"""The text of `cells.cu` over an algebra."""

from __future__ import annotations

from functools import lru_cache

from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import prelude
from tilewise.kernels.shared.text import kernel_text


@lru_cache(maxsize=256)
def render_cells(algebra: Algebra, width: int, accumulate: bool) -> str:
    head = prelude(algebra, accumulate=accumulate)
    return "\n".join((f"#define WIDTH {width}", "", head, *map(kernel_text, ("plain/in_turn.cuh", "cells/cells.cu"))))
