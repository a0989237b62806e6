"""The text of `shifted_half.cu`."""

from __future__ import annotations

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.core.epilogue import PLAIN
from tilewise.kernels.keys import Written
from tilewise.kernels.shared.epilogue import render_epilogue
from tilewise.kernels.shared.text import assembled, of_tile
from tilewise.kernels.transforms.realign import ELEMENT
from tilewise.kernels.wgmma_gemm.shifted_half.model import ShiftedTile
from tilewise.kernels.wgmma_gemm.wgmma_half.text import KINDS, SUM, conversions, product_of_tiles


@Written
def render_shifted_half(dtype: DType, tile: ShiftedTile, along_k: tuple[bool, bool], by_rows: bool = False) -> str:
    """`along_k`: whether the k of M and of N lie side by side; `by_rows`: of groups of rows."""
    kind = KINDS[dtype.name]
    defines = {
        **of_tile(tile, "rows", "cols", "loaders", "ahead", "stages", "resident"),
        "LOADER_REGISTERS": tile.registers[0],
        "CONSUMER_REGISTERS": tile.registers[1],
        "M_ALONG_K": along_k[0],
        "N_ALONG_K": along_k[1],
        "ACCUMULATE": 0,
        "BY_ROWS": by_rows,
    }
    return assembled(
        f"// shifted_half over {dtype}, sums in float32",
        defines,
        ELEMENT,
        "shared/ptx.cuh",
        conversions(kind),
        SUM,
        render_epilogue(PLAIN, DTYPES["float32"]),
        "shared/words.cuh",
        product_of_tiles(tile.cols, kind, not along_k[0], not along_k[1]),
        *(f"wgmma_gemm/shifted_half/{name}" for name in ("stage.cuh", "shifted_half.cu")),
    )
