"""The text of `read_once.cu`, and the wgmma of its width with the left operand in registers."""

from __future__ import annotations

from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.text import assembled, of_tile
from tilewise.kernels.wgmma_gemm.bf16x6.text import render_split
from tilewise.kernels.wgmma_gemm.instruction import wgmma_text
from tilewise.kernels.wgmma_gemm.read_once.model import ALONG, APART, OnceTile

FILES = ("read_once/stage", "register_lines", "read_once/gather", "read_once/stores")


@KeyedRenderer
def render_read_once(tile: OnceTile, lies: str) -> str:
    """`lies`: how lines of the long operand come."""
    macros: dict[str, object] = {
        **of_tile(tile, "width", "planes", "stages", "resident", "gathered"),
        "PRODUCER_REGISTERS": 48 if tile.resident > 1 else 120,
        "CONSUMER_REGISTERS": 96 if tile.resident > 1 else 192,
        "ALONG": lies == ALONG,
        "APART": lies == APART,
    }
    kind = "float32 as tf32" if tile.planes == 1 else "float32 from six products of bfloat16"
    return assembled(
        f"// read_once: {kind}",
        macros,
        "shared/dependent_launch.cuh shared/cluster.cuh shared/ptx.cuh shared/pipeline.cuh",
        "shared/bf16_planes.cuh wgmma_gemm/add_up_fours.cuh",
        _wgmma(tile.width, tile.planes),
        *(f"wgmma_gemm/{name}.cuh" for name in FILES),
        "wgmma_gemm/read_once/read_once.cu",
    )


@KeyedRenderer
def render_split_interleaved() -> str:
    """Planes whose eights of k lie in the order that a thread's registers have them."""
    return "#define INTERLEAVED 1\n" + render_split()


def _wgmma(width: int, planes: int) -> str:
    shape, flags = ("k8.f32.tf32.tf32", ", 1, 1") if planes == 1 else ("k16.f32.bf16.bf16", ", 1, 1, 0")
    return wgmma_text(width, shape, flags, from_registers=True, adds=True)
