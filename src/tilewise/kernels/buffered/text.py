"""The text of `buffered.cu` over an algebra."""

from __future__ import annotations

from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import prelude
from tilewise.kernels.buffered.model import BufferedTile
from tilewise.kernels.keys import Written
from tilewise.kernels.shared.text import defined, kernel_text


@Written
def render_buffered(algebra: Algebra, tile: BufferedTile, along_k: tuple[bool, bool], accumulate: bool) -> str:
    """`along_k`: whether neighbours of M, and of N, lie along k."""
    macros: dict[str, object] = {
        "TM": tile.rows,
        "TN": tile.cols,
        "RM": tile.tm,
        "RN": tile.tn,
        "KC": tile.deep,
        "GROUPS": tile.groups,
        "RESIDENT": tile.resident,
        "M_ALONG_K": int(along_k[0]),
        "N_ALONG_K": int(along_k[1]),
    }
    files = map(kernel_text, ("shared/cluster.cuh", "plain/in_turn.cuh", "buffered/buffered.cu"))
    return "\n".join((*defined(macros), "", prelude(algebra, accumulate=accumulate), *files))
