"""The texts for float32 on tensor cores: the operands' split into planes, and the six products of them."""

from __future__ import annotations

from tilewise.kernels.keys import Written
from tilewise.kernels.shared.text import kernel_text
from tilewise.kernels.wgmma_gemm.bf16x6.model import DEPTH, SEGMENT, SplitTile

GROUP = 16  # rows of tiles that are walked together, so that their columns of N stay in L2


@Written
def render_split() -> str:
    return "\n".join(map(kernel_text, ("shared/ptx.cuh", "transforms/split_bf16.cu")))


@Written
def render_bf16x6(tile: SplitTile) -> str:
    """One text for every layout: `split` has settled what the operands are like."""
    defines = {
        "BLOCK_M": tile.rows,
        "BLOCK_N": tile.cols,
        "BLOCK_K": DEPTH,
        "STAGES": tile.stages,
        "CLUSTER": tile.cluster,
        "SEGMENT": SEGMENT,
        "BESIDE": 0,
        "GROUP": GROUP // tile.cluster,
    }
    return "\n".join(
        (
            "// bf16x6: float32 from six products of bfloat16",
            *(f"#define {name} {value}" for name, value in defines.items()),
            kernel_text("shared/ptx.cuh"),
            _wgmma(tile.cols),
            *map(kernel_text, ("shared/walk.cuh", "wgmma_gemm/bf16x6/bf16x6.cu")),
        )
    )


def _wgmma(width: int) -> str:
    """The instruction has one operand for each of its sums, so its text is made for the width."""
    count = width // 2
    sums = ", ".join(f"%{i}" for i in range(count))
    bound = ", ".join(f'"+f"(sums[{i}])' for i in range(count))
    name = f"wgmma.mma_async.sync.aligned.m64n{width}k16.f32.bf16.bf16"
    return f"""// sums = left * right, onto what they hold if `add`, for 64 x {width} of P and 16 of k, by 128 threads
static __device__ __forceinline__ void wgmma(
    float (&sums)[{count}], unsigned long long left, unsigned long long right, int add)
{{
    asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{count + 2}, 0;\\n"
                 "{name} {{{sums}}}, %{count}, %{count + 1}, p, 1, 1, 0, 0;\\n}}\\n"
                 : {bound}
                 : "l"(left), "l"(right), "r"(add));
}}
"""
