"""The texts of the mma.sync main loops except `mma_sync`: macros of a tile, types, products of fragments, the loop."""

from __future__ import annotations

from collections.abc import Mapping

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.algebra.to_cuda import c_name
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.mma_gemm.direct_half.model import HalfTile
from tilewise.kernels.mma_gemm.half_dots import model as half_dots
from tilewise.kernels.mma_gemm.short_k import model as short_k
from tilewise.kernels.mma_gemm.sliced_k.model import MOST_WARPS, SlicedTile
from tilewise.kernels.shared.epilogue import render_epilogue
from tilewise.kernels.shared.fragments import product_of_fragments
from tilewise.kernels.shared.text import assembled, of_tile
from tilewise.kernels.transforms.realign import ELEMENT
from tilewise.kernels.transforms.sums import render_numbers, sum_of


@KeyedRenderer
def render_sliced(dtype: DType, tile: SlicedTile, arch: int) -> str:
    """`arch`: from 90 on float64 has larger products of fragments."""
    macros: dict[str, object] = {
        "SIZE": dtype.itemsize,
        "TM": tile.rows,
        "TN": tile.cols,
        "WARP_BYTES": tile.warp_bytes(dtype.itemsize),
        "MOST_THREADS": 32 * MOST_WARPS,
        **of_tile(tile, "stages", "resident", "held"),
    }
    tensor = dtype.itemsize == 8
    cores = "mma_gemm/sliced_k/tensor_cores.cuh" if tensor else "mma_gemm/sliced_k/plain_cores.cuh"
    return assembled(
        f"// sliced_k over {dtype}",
        macros,
        f"typedef {c_name(dtype)} Element;",
        "#define PITCH (TN + 16 / SIZE)  // of a tile's sums: rows start in different banks",
        product_of_fragments(dtype, arch) if tensor else "",
        "shared/cluster.cuh shared/dependent_launch.cuh mma_gemm/copies.cuh mma_gemm/sliced_k/operand.cuh",
        cores,
        "mma_gemm/sliced_k/sliced_k.cu",
    )


@KeyedRenderer
def render_short_k(dtype: DType, held: short_k.Held) -> str:
    """float32 is rounded to tf32."""
    size = dtype.itemsize
    macros: dict[str, object] = {
        "SIZE": size,
        "COLS": held.cols,
        "STEPS": held.steps,
        "STEP": short_k.step_of(dtype),
        "SECTOR": short_k.SECTOR,
        "THREADS": 32 * short_k.WARPS,
        "RESIDENT": held.resident,
    }
    return assembled(
        f"// short_k over {dtype}{', rounded to tf32' if size == 4 else ''}",
        macros,
        f"typedef {'unsigned short' if size == 2 else c_name(dtype)} Element;",
        render_numbers(sum_of(dtype), dtype, accumulate=False),
        product_of_fragments(dtype, 80),
        "shared/dependent_launch.cuh mma_gemm/short_k/short_k.cu",
    )


DOTS_FILES = ("lines.cuh", "ends.cuh", "stores.cuh", "half_dots.cu")


@KeyedRenderer
def render_half_dots(dtype: DType, width: int, accumulate: bool = False, epilogue: Epilogue = PLAIN) -> str:
    macros = {"WARPS": half_dots.WARPS, "WIDTH": width, "AHEAD": half_dots.AHEAD, "RESIDENT": half_dots.RESIDENT}
    return _of_halves(
        "half_dots",
        macros,
        dtype,
        accumulate,
        epilogue,
        "shared/dependent_launch.cuh shared/cluster.cuh shared/words.cuh shared/add_up.cuh",
        *(f"mma_gemm/half_dots/{name}" for name in DOTS_FILES),
    )


@KeyedRenderer
def render_direct_half(
    dtype: DType,
    tile: HalfTile,
    along_k: tuple[bool, bool],
    accumulate: bool = False,
    epilogue: Epilogue = PLAIN,
    by_rows: bool = False,
) -> str:
    """`along_k`: whether M and N are contiguous along k; `by_rows`: for groups of rows."""
    macros = {
        **of_tile(tile, "rows", "cols", "warps_m", "warps_n", "resident"),
        "M_ALONG_K": along_k[0],
        "N_ALONG_K": along_k[1],
        "BY_ROWS": by_rows,
    }
    return _of_halves(
        "direct_half",
        macros,
        dtype,
        accumulate,
        epilogue,
        "shared/dependent_launch.cuh shared/words.cuh shared/cluster.cuh mma_gemm/direct_half/tile.cuh",
        "shared/add_up.cuh shared/cut.cuh mma_gemm/matrices.cuh mma_gemm/direct_half/direct_half.cu",
    )


def _of_halves(
    name: str, macros: Mapping[str, object], dtype: DType, accumulate: bool, epilogue: Epilogue, *files: str
) -> str:
    """A loop over 2-byte elements."""
    sums = DTYPES["float32"]
    numbers = render_numbers(sums, dtype, accumulate), render_epilogue(epilogue, sums), product_of_fragments(dtype, 80)
    return assembled(f"// {name} over {dtype}, sums in {sums}", macros, ELEMENT, *numbers, *files)
