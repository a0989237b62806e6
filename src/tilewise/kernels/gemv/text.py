"""The texts of the kernels for few rows: the semiring's step over elements as they lie, then the kernel."""

from __future__ import annotations

from functools import lru_cache

from tilewise.algebra.semiring import Algebra
from tilewise.kernels.gemv.model import FewTile
from tilewise.kernels.plain.text import step_text
from tilewise.kernels.shared.text import defined, kernel_text


@lru_cache(maxsize=512)
def render_few(algebra: Algebra, tile: FewTile, *, along_k: bool, accumulate: bool, split: bool) -> str:
    """`along_k`: the few rows' k lies side by side; `split`: sums of a piece of k go to a plane of their own."""
    defines: dict[str, object] = {
        "FEW": tile.few, "VECTOR": tile.vector, "UNROLL": tile.unroll, "STAGE": tile.stage,
        "SWAPPED": int(tile.swapped),
        "RESIDENT": tile.resident,
        "ALONG_K": int(along_k), "ARG": int(tile.way.name == "where"),
    }  # fmt: skip
    if tile.kernel == "few_dots":
        defines["LINES"] = tile.lines
    return "\n".join(
        (
            step_text(algebra, tile.way, accumulate and not split, split),
            *defined(defines),
            "",
            *map(kernel_text, ("plain/in_turn.cuh", "gemv/few.cuh", f"gemv/{tile.kernel}.cu")),
        )
    )
