"""The text of `read_once.cu`, and the wgmma of its width with the left operand in registers."""

from __future__ import annotations

from tilewise.kernels.keys import Written
from tilewise.kernels.shared.text import defined, kernel_text
from tilewise.kernels.wgmma_gemm.bf16x6.text import render_split
from tilewise.kernels.wgmma_gemm.read_once.model import ALONG, APART, OnceTile

FILES = ("stage.cuh", "gather.cuh", "stores.cuh", "read_once.cu")


@Written
def render_read_once(tile: OnceTile, lies: str) -> str:
    """`lies`: how lines of the long operand come."""
    macros: dict[str, object] = {
        "WIDTH": tile.width,
        "PLANES": tile.planes,
        "STAGES": tile.stages,
        "RESIDENT": tile.resident,
        "GATHERED": int(tile.gathered),
        "PRODUCER_REGISTERS": 48 if tile.resident > 1 else 120,
        "CONSUMER_REGISTERS": 96 if tile.resident > 1 else 192,
        "ALONG": int(lies == ALONG),
        "APART": int(lies == APART),
    }
    kind = "float32 as tf32" if tile.planes == 1 else "float32 from six products of bfloat16"
    return "\n".join(
        (
            f"// read_once: {kind}",
            *defined(macros),
            *map(kernel_text, ("shared/ptx.cuh", "wgmma_gemm/add_up_fours.cuh")),
            _wgmma(tile.width, tile.planes),
            *(kernel_text(f"wgmma_gemm/read_once/{name}") for name in FILES),
        )
    )


@Written
def render_split_in_turns() -> str:
    """Planes whose eights of k lie in the order that a thread's registers have them."""
    return "#define IN_TURNS 1\n" + render_split()


def _wgmma(width: int, planes: int) -> str:
    count, shape = width // 2, "k8.f32.tf32.tf32" if planes == 1 else "k16.f32.bf16.bf16"
    sums, left = (", ".join(f"%{i}" for i in numbers) for numbers in (range(count), range(count, count + 4)))
    bound = ", ".join(f'"+f"(sums[{i}])' for i in range(count))
    flags = "p, 1, 1" if planes == 1 else "p, 1, 1, 0"
    name = f"wgmma.mma_async.sync.aligned.m64n{width}{shape}"
    return f"""// sums = left * right, onto what they hold if `add`: 64 x {width} of a tile, by 128 threads
static __device__ __forceinline__ void wgmma(
    float (&sums)[{count}], unsigned left0, unsigned left1, unsigned left2, unsigned left3, unsigned long long right,
    int add)
{{
    asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{count + 5}, 0;\\n"
                 "{name} {{{sums}}}, {{{left}}}, %{count + 4}, {flags};\\n}}\\n"
                 : {bound}
                 : "r"(left0), "r"(left1), "r"(left2), "r"(left3), "l"(right), "r"(add));
}}
"""
