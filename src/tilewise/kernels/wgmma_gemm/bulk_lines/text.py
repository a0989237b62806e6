"""The text of `bulk_lines.cu`."""

from __future__ import annotations

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.algebra.to_cuda import c_name
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.fragments import product_of_fragments
from tilewise.kernels.shared.text import assembled, of_tile
from tilewise.kernels.transforms.sums import render_numbers
from tilewise.kernels.wgmma_gemm.bulk_lines.model import MOST_STAGES, PIECE, WARP, BulkTile

FILES = ("tensor_cores.cuh", "producers.cuh", "stores.cuh", "bulk_lines.cu")


@KeyedRenderer
def render_bulk_lines(dtype: DType, tile: BulkTile, along_k: tuple[bool, bool]) -> str:
    """`along_k`: whether the k of M and of N lie side by side."""
    sums, size = DTYPES["float32"], dtype.itemsize
    defines = {
        "SIZE": size,
        **of_tile(tile, "rows", "cols", "producers", "resident"),
        "WARPS_M": tile.rows // WARP,
        "WARPS_N": tile.cols // WARP,
        "WARP_M": WARP,
        "WARP_N": WARP,
        "MOST_STAGES": MOST_STAGES,
        "PIECE": PIECE,
        "UNROLL": 2,
        "M_ALONG_K": along_k[0],
        "N_ALONG_K": along_k[1],
    }
    return assembled(
        f"// bulk_lines over {dtype}, sums in {sums}",
        defines,
        f"typedef {c_name(dtype) if size == 4 else 'unsigned short'} Element;",
        "shared/dependent_launch.cuh shared/cluster.cuh shared/ptx.cuh",
        render_numbers(sums, dtype, False),
        product_of_fragments(dtype, 80),
        "wgmma_gemm/add_up_fours.cuh",
        *(f"wgmma_gemm/bulk_lines/{name}" for name in FILES),
    )
