"""The text of `rank_k.cu` over an algebra."""

from __future__ import annotations

from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import prelude
from tilewise.kernels.keys import Written
from tilewise.kernels.shared.text import defined, kernel_text


@Written
def render_rank_k(algebra: Algebra, deep: int, columns: int, accumulate: bool) -> str:
    files = map(kernel_text, ("plain/in_turn.cuh", "rank_k/rank_k.cu"))
    return "\n".join(
        (*defined({"DEEP": deep, "COLUMNS": columns}), "", prelude(algebra, accumulate=accumulate), *files)
    )
