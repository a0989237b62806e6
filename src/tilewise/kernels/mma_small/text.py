"""The text of `mma_small.cu`: a tile of float64 or tf32."""

from __future__ import annotations

from functools import lru_cache

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_cuda import c_name
from tilewise.kernels.mma_small.model import SmallTile
from tilewise.kernels.mma_sync.text import product_of_fragments
from tilewise.kernels.shared.text import defined, kernel_text

STEP_K = 8  # of a product of fragments


@lru_cache(maxsize=64)
def render_mma_small(dtype: DType, tile: SmallTile, arch: int) -> str:
    """`arch`: from 90 on float64 has larger products of fragments."""
    size = dtype.itemsize
    macros: dict[str, object] = {
        "SIZE": size,
        "TM": tile.rows,
        "TN": tile.cols,
        "WARPS_M": tile.warps_m,
        "WARPS_N": tile.warps_n,
        "KC": tile.depth(size),
        "STAGES": tile.stages,
        "RESIDENT": tile.resident,
    }
    files = ("shared/cluster.cuh", "plain/in_turn.cuh", "mma_sync/copies.cuh", "mma_small/mma_small.cu")
    return "\n".join(
        (
            f"// mma_small over {dtype}",
            *defined(macros),
            f"typedef {c_name(dtype)} Element;",
            f"typedef {c_name(dtype)} Sum;",
            f"typedef {'double' if size == 8 else 'unsigned'} Word;  // of a fragment",
            product_of_fragments(dtype, STEP_K, arch),
            *map(kernel_text, files),
        )
    )
