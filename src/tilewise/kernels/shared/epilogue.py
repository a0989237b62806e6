"""The epilogue's text: macros for its parts, and the dtype of the biases."""

from __future__ import annotations

from tilewise.algebra.dtypes import DType
from tilewise.core.epilogue import ACTIVATIONS, Epilogue
from tilewise.kernels.shared.text import assembled

BIAS_TYPES = {"float32": "float", "float64": "double", "bfloat16": "unsigned short", "float16": "unsigned short"}


def render_epilogue(epilogue: Epilogue, sums: DType) -> str:
    """The text before it defines Sum, a type of dtype `sums`, and ACCUMULATE."""
    bias = epilogue.bias.name if epilogue.bias else "float32"
    defines = {
        **{name.upper(): number for number, name in enumerate(ACTIVATIONS, 1)},
        "ACTIVATION": 1 + ACTIVATIONS.index(epilogue.activation) if epilogue.activation else 0,
        "ALPHA": epilogue.alpha != 1.0,
        "BIAS": epilogue.bias is not None,
        "DOUBLE": sums.itemsize == 8,
    }
    widened = {
        "bfloat16": "return __uint_as_float((unsigned)x << 16);",
        "float16": 'float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y;',
    }.get(bias, "return x;")
    return assembled(
        defines,
        f"typedef {BIAS_TYPES[bias]} Bias;",
        f"static __device__ __forceinline__ Sum widen_bias(Bias x) {{ {widened} }}",
        "",
        "shared/epilogue.cuh",
    )
