"""The text of `shallow.cu`: a dtype's cores, and the kernel."""

from __future__ import annotations

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_cuda import c_name
from tilewise.kernels.keys import Written
from tilewise.kernels.mma_gemm.mma_sync.text import product_of_fragments
from tilewise.kernels.mma_gemm.shallow.model import MOST_WARPS, PAD_BYTES, RESIDENT, ROUNDED, ROWS, step_of
from tilewise.kernels.shared.text import defined, kernel_text
from tilewise.kernels.transforms.sums import render_numbers, sum_of


@Written
def render_shallow(dtype: DType, tensor: bool, cols: int, arch: int) -> str:
    """`tensor`: on tensor cores, which round float32 to tf32; `cols`: of P, that a warp makes."""
    size = dtype.itemsize
    element = "unsigned short" if size == 2 else c_name(dtype)
    macros: dict[str, object] = {
        "SIZE": size,
        "ROWS": ROWS,
        "TN": cols,
        "STEP": step_of(dtype),
        "PAD": PAD_BYTES[size] // size,
        "MOST_THREADS": 32 * MOST_WARPS,
        "RESIDENT": RESIDENT,
    }
    product = product_of_fragments(dtype, step_of(dtype), arch) if tensor else ""
    rounding = ROUNDED if tensor and size == 4 else "return x;"
    return "\n".join(
        (
            f"// shallow over {dtype}{', rounded to tf32' if tensor and size == 4 else ''}",
            *defined(macros),
            f"typedef {element} Element;",
            f"typedef {'double' if size == 8 else 'unsigned'} Word;  // of a fragment",
            render_numbers(sum_of(dtype), dtype, accumulate=False),
            product,
            f"static __device__ __forceinline__ Element rounded(Element x) {{ {rounding} }}",
            kernel_text("shared/in_turn.cuh"),
            kernel_text("shared/words.cuh") if size == 2 else "",
            kernel_text("mma_gemm/shallow/tensor_cores.cuh" if tensor else "mma_gemm/shallow/plain_cores.cuh"),
            kernel_text("mma_gemm/shallow/shallow.cu"),
        )
    )
