"""The texts of the split into planes and of bf16x6."""

from __future__ import annotations

from tilewise.core.reproducible import CHAIN
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.text import assembled, of_tile
from tilewise.kernels.wgmma_gemm.bf16x6.model import DEPTH, LINES, SEGMENT, SplitTile
from tilewise.kernels.wgmma_gemm.instruction import wgmma_text

GROUP = 16  # rows of tiles that are walked together, so that their columns of N stay in L2


@KeyedRenderer
def render_split(by_lines: bool = False) -> str:
    """`by_lines`: with the largest magnitudes of M's lines."""
    files = "shared/dependent_launch.cuh shared/bf16_planes.cuh transforms/split_bf16.cu"
    return assembled({"BY_LINES": int(by_lines)}, files)


@KeyedRenderer
def render_unsafe_rows() -> str:
    """Rows of P whose operands the planes cannot hold."""
    files = "shared/dependent_launch.cuh shared/bf16_planes.cuh wgmma_gemm/bf16x6/unsafe_rows.cu"
    return assembled({"DEPTH": DEPTH, "PADDED": LINES, "CHAIN": CHAIN}, files)


@KeyedRenderer
def render_bf16x6(tile: SplitTile) -> str:
    """One text for every layout: planes always have the same."""
    defines = {
        **of_tile(tile, "rows", "cols", "stages"),
        "BLOCK_K": DEPTH,
        "SEGMENT": SEGMENT,
        "CLUSTER": 1,
        "BESIDE": 0,
        "GROUP": GROUP,
    }
    return assembled(
        "// bf16x6: float32 from six products of bfloat16",
        defines,
        "shared/dependent_launch.cuh shared/cluster.cuh shared/ptx.cuh shared/pipeline.cuh",
        wgmma_text(tile.cols, "k16.f32.bf16.bf16", ", 1, 1, 0, 0", adds=True),
        "shared/bf16_planes.cuh shared/walk.cuh wgmma_gemm/bf16x6/bf16x6.cu",
    )
