"""The text of `read_once.cu`, and the wgmma of its width with the left operand in registers."""

from __future__ import annotations

from tilewise.kernels.keys import Written
from tilewise.kernels.shared.text import defined, kernel_text
from tilewise.kernels.wgmma_gemm.bf16x6.text import render_split
from tilewise.kernels.wgmma_gemm.instruction import wgmma_text
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
    shape, flags = ("k8.f32.tf32.tf32", ", 1, 1") if planes == 1 else ("k16.f32.bf16.bf16", ", 1, 1, 0")
    return wgmma_text(width, shape, flags, from_registers=True, adds=True)
