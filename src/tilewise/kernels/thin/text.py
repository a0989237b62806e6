"""The text of `thin.cu`."""

from __future__ import annotations

from functools import lru_cache

from tilewise.kernels.shared.text import defined, kernel_text
from tilewise.kernels.thin.model import MOST_WARPS, RESIDENT, lines_of


@lru_cache(maxsize=16)
def render_thin(cells: int) -> str:
    """`cells`: of P's short side, that a lane has room for."""
    macros: dict[str, object] = {
        "CELLS": cells,
        "LINES": lines_of(cells),
        "MOST_THREADS": 32 * MOST_WARPS,
        "RESIDENT": RESIDENT,
    }
    files = ("shared/cluster.cuh", "plain/in_turn.cuh", "mma_sync/copies.cuh", "thin/thin.cu")
    return "\n".join((f"// thin: {cells} cells of a line", *defined(macros), *map(kernel_text, files)))
