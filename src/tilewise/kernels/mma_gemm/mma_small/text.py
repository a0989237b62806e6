"""The text of `mma_small.cu`: a tile of float64 or tf32 on tensor cores, of float32 on plain ones."""

from __future__ import annotations

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_cuda import c_name
from tilewise.kernels.keys import Written
from tilewise.kernels.mma_gemm.mma_small.model import FMA, MMA, SmallTile
from tilewise.kernels.mma_gemm.mma_sync.text import product_of_fragments
from tilewise.kernels.shared.text import defined, kernel_text

STEP_K = 8  # of a product of fragments


@Written
def render_small(dtype: DType, kernel: str, tile: SmallTile, arch: int) -> str:
    """`arch`: from 90 on float64 has larger products of fragments."""
    size = dtype.itemsize
    macros: dict[str, object] = {
        "SIZE": size,
        "TM": tile.rows,
        "TN": tile.cols,
        "WARPS_M": tile.warps_m,
        "WARPS_N": tile.warps_n,
        "WARPS_K": tile.warps_k,
        "KC": tile.depth(size),
        "STAGES": tile.stages,
        "RESIDENT": tile.resident,
    }
    files = ("shared/cluster.cuh", "shared/in_turn.cuh", "mma_gemm/mma_sync/copies.cuh", "mma_gemm/mma_small/stage.cuh")
    return "\n".join(
        (
            f"// {kernel} over {dtype}",
            *defined(macros),
            f"typedef {c_name(dtype)} Element;",
            *map(kernel_text, files),
            kernel_text("mma_gemm/mma_small/plain_cores.cuh") if kernel == FMA else _fragments(dtype, arch),
            kernel_text("mma_gemm/mma_small/mma_small.cu").replace(f" {MMA}(", f" {kernel}("),
        )
    )


def _fragments(dtype: DType, arch: int) -> str:
    types = f"typedef Element Sum;\ntypedef {'double' if dtype.itemsize == 8 else 'unsigned'} Word;  // of a fragment"
    return "\n".join(
        (types, product_of_fragments(dtype, STEP_K, arch), kernel_text("mma_gemm/mma_small/fragments.cuh"))
    )
