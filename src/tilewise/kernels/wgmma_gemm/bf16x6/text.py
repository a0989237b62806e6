"""The texts for float32 on tensor cores: the operands' split into planes, and the six products of them."""

from __future__ import annotations

from tilewise.kernels.keys import Written
from tilewise.kernels.shared.text import defined, kernel_text
from tilewise.kernels.wgmma_gemm.bf16x6.model import DEPTH, SEGMENT, SplitTile
from tilewise.kernels.wgmma_gemm.instruction import wgmma_text

GROUP = 16  # rows of tiles that are walked together, so that their columns of N stay in L2


@Written
def render_split() -> str:
    return "\n".join(map(kernel_text, ("shared/ptx.cuh", "transforms/split_bf16.cu")))


@Written
def render_bf16x6(tile: SplitTile) -> str:
    """One text for every layout: `split` has settled what the operands are like."""
    defines = {
        "BLOCK_M": tile.rows,
        "BLOCK_N": tile.cols,
        "BLOCK_K": DEPTH,
        "STAGES": tile.stages,
        "CLUSTER": tile.cluster,
        "SEGMENT": SEGMENT,
        "BESIDE": 0,
        "GROUP": GROUP // tile.cluster,
    }
    return "\n".join(
        (
            "// bf16x6: float32 from six products of bfloat16",
            *defined(defines),
            kernel_text("shared/ptx.cuh"),
            wgmma_text(tile.cols, "k16.f32.bf16.bf16", ", 1, 1, 0, 0", adds=True),
            *map(kernel_text, ("shared/walk.cuh", "wgmma_gemm/bf16x6/bf16x6.cu")),
        )
    )
