"""The tensor-core kernel's text: Hopper's instructions, the wgmma of the tile's width, and the kernel itself."""

from __future__ import annotations

from functools import lru_cache

from tilewise.kernels.render import kernel_text
from tilewise.tensor_tiles import TensorTile

GROUP = 8  # rows of tiles that are walked together, so that their columns of N stay in L2
ELEMENT = "typedef unsigned short Element;  // 2 bytes, as bits\n"


@lru_cache(maxsize=256)
def render_tensor_cores(
    dtype: str,
    tile: TensorTile,
    *,
    m_along_k: bool,
    n_along_k: bool,
    p_aligned: bool,
    accumulate: bool,
    unrounded: bool = False,
) -> str:
    """`*_along_k`: an operand's k lies side by side; `p_aligned`: rows of P start on 16-byte boundaries; `unrounded`: P
    is float32."""
    kind = {"bfloat16": "bf16", "float16": "f16"}[dtype]
    defines = {
        "BLOCK_M": tile.rows,
        "BLOCK_N": tile.cols,
        "STAGES": tile.stages,
        "GROUP": GROUP,
        "M_ALONG_K": int(m_along_k),
        "N_ALONG_K": int(n_along_k),
        "P_ALIGNED": int(p_aligned),
        "ACCUMULATE": int(accumulate),
        "UNROUNDED": int(unrounded),
    }
    return "\n".join(
        (
            f"// tensor_cores over {dtype}, sums in float32",
            *(f"#define {name} {value}" for name, value in defines.items()),
            ELEMENT,
            f"typedef {'float' if unrounded else 'Element'} Result;",
            kernel_text("hopper/ptx.cuh"),
            _conversions(kind),
            _wgmma(tile.cols, kind, not m_along_k, not n_along_k),
            kernel_text("hopper/tensor_cores.cu"),
        )
    )


@lru_cache(maxsize=1)
def render_realign() -> str:
    return ELEMENT + "\n" + kernel_text("hopper/realign.cu")


def _conversions(kind: str) -> str:
    widen = (
        "return __uint_as_float((unsigned)bits << 16);"
        if kind == "bf16"
        else 'float value; asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits)); return value;'
    )
    return f"""static __device__ __forceinline__ unsigned narrow_pair(float low, float high) {{
    unsigned pair;
    asm("cvt.rn.{kind}x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}}

static __device__ __forceinline__ float widen(Element bits) {{ {widen} }}
static __device__ __forceinline__ float widen(float sum) {{ return sum; }}
"""


def _wgmma(width: int, kind: str, transposed_m: bool, transposed_n: bool) -> str:
    """The instruction has one operand for each of its sums, so its text is made for the width."""
    count = width // 2
    sums = ", ".join(f"%{i}" for i in range(count))
    bound = ", ".join(f'"+f"(sums[{i}])' for i in range(count))
    flags = f"1, 1, 1, {int(transposed_m)}, {int(transposed_n)}"
    name = f"wgmma.mma_async.sync.aligned.m64n{width}k16.f32.{kind}.{kind}"
    return f"""// sums += left * right for 64 x {width} of P and 16 of k, by 128 threads
static __device__ __forceinline__ void wgmma(
    float (&sums)[{count}], unsigned long long left, unsigned long long right)
{{
    asm volatile("{name} {{{sums}}}, %{count}, %{count + 1}, {flags};"
                 : {bound}
                 : "l"(left), "l"(right));
}}
"""
