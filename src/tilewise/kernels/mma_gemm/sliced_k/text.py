"""The text of `sliced_k.cu`: float64 on tensor cores, float32 on plain ones."""

from __future__ import annotations

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_cuda import c_name
from tilewise.kernels.keys import Written
from tilewise.kernels.mma_gemm.mma_sync.text import product_of_fragments
from tilewise.kernels.mma_gemm.sliced_k.model import MOST_WARPS, SlicedTile
from tilewise.kernels.shared.text import defined, kernel_text


@Written
def render_sliced(dtype: DType, tile: SlicedTile, arch: int) -> str:
    """`arch`: from 90 on float64 has larger products of fragments."""
    macros: dict[str, object] = {
        "SIZE": dtype.itemsize,
        "TM": tile.rows,
        "TN": tile.cols,
        "STAGES": tile.stages,
        "WARP_BYTES": tile.warp_bytes(dtype.itemsize),
        "MOST_THREADS": 32 * MOST_WARPS,
        "RESIDENT": tile.resident,
        "ROLLING" if dtype.itemsize == 8 else "HELD": int(tile.held),
    }
    tensor = dtype.itemsize == 8
    cores = "mma_gemm/sliced_k/tensor_cores.cuh" if tensor else "mma_gemm/sliced_k/plain_cores.cuh"
    return "\n".join(
        (
            f"// sliced_k over {dtype}",
            *defined(macros),
            f"typedef {c_name(dtype)} Element;",
            "#define PITCH (TN + 16 / SIZE)  // of a tile's sums: rows start in different banks",
            product_of_fragments(dtype, 8, arch) if tensor else "",
            *map(kernel_text, ("shared/cluster.cuh", "shared/in_turn.cuh", "mma_gemm/mma_sync/copies.cuh")),
            *map(kernel_text, ("mma_gemm/sliced_k/operand.cuh", cores, "mma_gemm/sliced_k/sliced_k.cu")),
        )
    )
