"""The text of `swept.cu` over an algebra."""

from __future__ import annotations

from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import prelude
from tilewise.kernels.keys import Written
from tilewise.kernels.shared.text import defined, kernel_text


@Written
def render_swept(algebra: Algebra, few: int, accumulate: bool) -> str:
    files = map(kernel_text, ("plain/in_turn.cuh", "swept/swept.cu"))
    return "\n".join((*defined({"FEW": few}), "", prelude(algebra, accumulate=accumulate), *files))
