"""The text of `cells.cu` over an algebra."""

from __future__ import annotations

from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import prelude
from tilewise.kernels.cells.model import Cut
from tilewise.kernels.keys import Written
from tilewise.kernels.shared.text import defined, kernel_text


@Written
def render_cells(algebra: Algebra, cut: Cut, accumulate: bool) -> str:
    head = defined({"WIDTH": cut.width, "DOWN": int(cut.down)})
    body = map(kernel_text, ("plain/in_turn.cuh", "cells/cells.cu"))
    return "\n".join((*head, "", prelude(algebra, accumulate=accumulate), *body))
