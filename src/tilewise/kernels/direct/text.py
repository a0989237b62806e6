"""The text of `direct.cu` over an algebra."""

from __future__ import annotations

from functools import lru_cache

from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import prelude
from tilewise.kernels.direct.model import DirectWay
from tilewise.kernels.shared.text import defined, kernel_text


@lru_cache(maxsize=1024)
def render_direct(algebra: Algebra, way: DirectWay, accumulate: bool) -> str:
    tile = way.tile
    macros: dict[str, object] = {
        "TM": tile.rows,
        "TN": tile.cols,
        "RM": tile.tm,
        "RN": tile.tn,
        "KC": way.depth(algebra.partial.itemsize),
        "GROUPS": way.groups,
    }
    files = map(kernel_text, ("shared/cluster.cuh", "plain/in_turn.cuh", "direct/direct.cu"))
    return "\n".join((*defined(macros), "", prelude(algebra, accumulate=accumulate), *files))
