"""The text of `direct.cu` over an algebra."""

from __future__ import annotations

from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import prelude
from tilewise.kernels.direct.model import DirectConfig, DirectTile
from tilewise.kernels.keys import Written
from tilewise.kernels.shared.text import defined, kernel_text


@Written
def render_direct(algebra: Algebra, tile: DirectTile, groups: int, accumulate: bool) -> str:
    """`groups` of threads share a strip's k; how many blocks share all of it is said when it is launched."""
    macros: dict[str, object] = {
        "TM": tile.rows,
        "TN": tile.cols,
        "RM": tile.tm,
        "RN": tile.tn,
        "KC": DirectConfig(tile, groups, 1).depth(algebra.partial.itemsize),
        "GROUPS": groups,
    }
    files = map(kernel_text, ("shared/cluster.cuh", "plain/in_turn.cuh", "direct/direct.cu"))
    return "\n".join((*defined(macros), "", prelude(algebra, accumulate=accumulate), *files))
