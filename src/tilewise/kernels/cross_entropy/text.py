"""The texts of the cross entropy of rows of logits, and of the scaling of its gradients, for one dtype."""

from __future__ import annotations

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_cuda import BFLOAT_TO_FLOAT, FLOAT_TO_BFLOAT, FLOAT_TO_HALF, FUNCTION, HALF_TO_FLOAT, c_name
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.text import assembled

THREADS = 512
WORD = 16  # bytes that are read at a time
MOST_KEPT = 112 * 1024  # bytes of a row that stay in shared memory: two blocks are then on a multiprocessor of Hopper
NUMBERS = f"""#define LARGEST __uint_as_float(0x7f800000u)
#define NOT_A_NUMBER __uint_as_float(0x7fffffffu)
{FUNCTION} float power_of_2(float x) {{
#ifdef __CUDACC_RTC__
    float made;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(made) : "f"(x));
    return made;
#else
    return exp2f(x);
#endif
}}
"""
CONVERSIONS = {
    "bfloat16": (BFLOAT_TO_FLOAT + FLOAT_TO_BFLOAT, "bfloat_to_float(x)", "float_to_bfloat(x)"),
    "float16": (HALF_TO_FLOAT + FLOAT_TO_HALF, "half_to_float(x)", "float_to_half(x)"),
    "float32": ("", "x", "x"),
}
# numbers side by side in 4 bytes; cards from Ampere on round two halves at once
PACKED = {
    "float32": f"{FUNCTION} unsigned packed(const float* x) {{ return __float_as_uint(x[0]); }}",
    **{
        dtype: f"""{FUNCTION} unsigned packed(const float* x) {{
#if defined(__CUDACC_RTC__) && __CUDA_ARCH__ >= 800
    unsigned pair;
    asm("cvt.rn.{short}x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x[1]), "f"(x[0]));
    return pair;
#else
    return narrow(x[0]) | (unsigned)narrow(x[1]) << 16;
#endif
}}"""
        for dtype, short in (("bfloat16", "bf16"), ("float16", "f16"))
    },
}


@KeyedRenderer
def render_cross_entropy(dtype: DType) -> str:
    """The kernels for logits of this dtype; sums are float32."""
    return _rendered(dtype, "cross_entropy")


@KeyedRenderer
def render_scaled(dtype: DType) -> str:
    """Gradients of this dtype times a number."""
    return _rendered(dtype, "scaled")


def _rendered(dtype: DType, name: str) -> str:
    helpers, widen, narrow = CONVERSIONS[dtype.name]
    wide = [f"{FUNCTION} float wide(Element x) {{ return widen(x); }}"]
    if dtype.name != "float32":
        wide.append(f"{FUNCTION} float wide(float x) {{ return x; }}")
    return assembled(
        f"// {name} of rows of {dtype}",
        NUMBERS,
        {"THREADS": THREADS, "LANES": WORD // dtype.itemsize},
        f"typedef {c_name(dtype)} Element;",
        helpers,
        f"{FUNCTION} float widen(Element x) {{ return {widen}; }}",
        f"{FUNCTION} Element narrow(float x) {{ return {narrow}; }}",
        PACKED[dtype.name],
        *(wide if name == "scaled" else ()),
        "",
        f"cross_entropy/{name}.cu",
    )
