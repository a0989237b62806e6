"""The text of the cross entropy of rows of logits, for one dtype."""

from __future__ import annotations

from functools import lru_cache

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_cuda import BFLOAT_TO_FLOAT, FLOAT_TO_BFLOAT, FLOAT_TO_HALF, FUNCTION, HALF_TO_FLOAT, c_name
from tilewise.kernels.shared.text import defined, kernel_text

THREADS = 512
WORD = 16  # bytes that are read at a time
EXPONENTIAL = f"""#define LARGEST __uint_as_float(0x7f800000u)
#define NOT_A_NUMBER __uint_as_float(0x7fffffffu)
{FUNCTION} float exponential(float x) {{
#ifdef __CUDACC_RTC__
    return __expf(x);
#else
    return expf(x);
#endif
}}
"""
CONVERSIONS = {
    "bfloat16": (BFLOAT_TO_FLOAT + FLOAT_TO_BFLOAT, "bfloat_to_float(x)", "float_to_bfloat(x)"),
    "float16": (HALF_TO_FLOAT + FLOAT_TO_HALF, "half_to_float(x)", "float_to_half(x)"),
    "float32": ("", "x", "x"),
}


@lru_cache(maxsize=8)
def render_cross_entropy(dtype: DType) -> str:
    """The kernel for logits of this dtype; sums are float32."""
    helpers, widen, narrow = CONVERSIONS[dtype.name]
    name = c_name(dtype)
    return "\n".join(
        (
            f"// cross_entropy of rows of {dtype}",
            EXPONENTIAL,
            *defined({"THREADS": THREADS, "LANES": WORD // dtype.itemsize}),
            f"typedef {name} Element;",
            helpers,
            f"{FUNCTION} float widen(Element x) {{ return {widen}; }}",
            f"{FUNCTION} Element narrow(float x) {{ return {narrow}; }}",
            "",
            kernel_text("cross_entropy/cross_entropy.cu"),
        )
    )
