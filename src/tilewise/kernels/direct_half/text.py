"""The text of `direct_half.cu`."""

from __future__ import annotations

from functools import lru_cache

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.epilogue import PLAIN, Epilogue
from tilewise.kernels.direct_half.model import HalfTile, kernel_of
from tilewise.kernels.mma_sync.text import product_of_fragments
from tilewise.kernels.shared.epilogue import render_epilogue
from tilewise.kernels.shared.realign import ELEMENT
from tilewise.kernels.shared.sums import render_numbers
from tilewise.kernels.shared.text import kernel_text

AS_THEY_ARE = """
static __device__ __forceinline__ uint4 rounded(uint4 word) { return word; }
static __device__ __forceinline__ Element rounded(Element x) { return x; }
"""


@lru_cache(maxsize=256)
def render_direct_half(
    dtype: DType,
    tile: HalfTile,
    along_k: tuple[bool, bool],
    accumulate: bool = False,
    epilogue: Epilogue = PLAIN,
    by_rows: bool = False,
) -> str:
    """`along_k`: whether the k of M and of N lie side by side; `by_rows`: of groups of rows."""
    sums, halves = DTYPES["float32"], dtype.itemsize == 2
    step = 16 if halves else 8
    defines = {
        "SIZE": dtype.itemsize,
        "STEP_K": step,
        "BLOCK_M": tile.rows,
        "BLOCK_N": tile.cols,
        "WARPS_M": tile.warps_m,
        "WARPS_N": tile.warps_n,
        "RESIDENT": tile.resident,
        "M_ALONG_K": int(along_k[0]),
        "N_ALONG_K": int(along_k[1]),
        "BY_ROWS": int(by_rows),
    }
    text = "\n".join(
        (
            f"// {kernel_of(dtype)} over {dtype}, sums in {sums}",
            *(f"#define {name} {value}" for name, value in defines.items()),
            ELEMENT if halves else "typedef float Element;",
            render_numbers(sums, dtype, accumulate),
            render_epilogue(epilogue, sums),
            product_of_fragments(dtype, step, 80),
            kernel_text("shared/words.cuh") + AS_THEY_ARE if halves else kernel_text("direct_half/float_words.cuh"),
            *map(kernel_text, ("plain/in_turn.cuh", "shared/cluster.cuh", "direct_half/tile.cuh", "shared/cut.cuh")),
            *(kernel_text(f"direct_half/{name}") for name in ("fragments.cuh", "direct_half.cu")),
        )
    )
    return text if halves else text.replace(") direct_half(", f") {kernel_of(dtype)}(")
