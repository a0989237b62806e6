"""The text of `direct_half.cu`."""

from __future__ import annotations

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.kernels.keys import Written
from tilewise.kernels.mma_gemm.direct_half.model import HalfTile
from tilewise.kernels.mma_gemm.mma_sync.text import product_of_fragments
from tilewise.kernels.shared.epilogue import render_epilogue
from tilewise.kernels.shared.text import kernel_text
from tilewise.kernels.transforms.realign import ELEMENT
from tilewise.kernels.transforms.sums import render_numbers


@Written
def render_direct_half(
    dtype: DType,
    tile: HalfTile,
    along_k: tuple[bool, bool],
    accumulate: bool = False,
    epilogue: Epilogue = PLAIN,
    by_rows: bool = False,
) -> str:
    """`along_k`: whether the k of M and of N lie side by side; `by_rows`: of groups of rows."""
    sums = DTYPES["float32"]
    defines = {
        "BLOCK_M": tile.rows,
        "BLOCK_N": tile.cols,
        "WARPS_M": tile.warps_m,
        "WARPS_N": tile.warps_n,
        "RESIDENT": tile.resident,
        "M_ALONG_K": int(along_k[0]),
        "N_ALONG_K": int(along_k[1]),
        "BY_ROWS": int(by_rows),
    }
    return "\n".join(
        (
            f"// direct_half over {dtype}, sums in {sums}",
            *(f"#define {name} {value}" for name, value in defines.items()),
            ELEMENT,
            render_numbers(sums, dtype, accumulate),
            render_epilogue(epilogue, sums),
            product_of_fragments(dtype, 16, 80),
            *map(kernel_text, ("shared/in_turn.cuh", "shared/words.cuh", "shared/cluster.cuh")),
            *map(kernel_text, ("mma_gemm/direct_half/tile.cuh", "shared/cut.cuh")),
            *(kernel_text(f"mma_gemm/direct_half/{name}") for name in ("fragments.cuh", "direct_half.cu")),
        )
    )
