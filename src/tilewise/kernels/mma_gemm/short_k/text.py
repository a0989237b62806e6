"""The text of `short_k.cu`."""

from __future__ import annotations

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_cuda import c_name
from tilewise.kernels.keys import Written
from tilewise.kernels.mma_gemm.mma_sync.text import product_of_fragments
from tilewise.kernels.mma_gemm.short_k.model import SECTOR, WARPS, Held, step_of
from tilewise.kernels.shared.text import defined, kernel_text
from tilewise.kernels.transforms.sums import render_numbers, sum_of


@Written
def render_short_k(dtype: DType, held: Held) -> str:
    """float32 is rounded to tf32."""
    size = dtype.itemsize
    macros: dict[str, object] = {
        "SIZE": size,
        "COLS": held.cols,
        "STEPS": held.steps,
        "STEP": step_of(dtype),
        "SECTOR": SECTOR,
        "THREADS": 32 * WARPS,
        "RESIDENT": held.resident,
    }
    return "\n".join(
        (
            f"// short_k over {dtype}{', rounded to tf32' if size == 4 else ''}",
            *defined(macros),
            f"typedef {'unsigned short' if size == 2 else c_name(dtype)} Element;",
            render_numbers(sum_of(dtype), dtype, accumulate=False),
            product_of_fragments(dtype, step_of(dtype), 80),
            kernel_text("shared/in_turn.cuh"),
            kernel_text("mma_gemm/short_k/short_k.cu"),
        )
    )
