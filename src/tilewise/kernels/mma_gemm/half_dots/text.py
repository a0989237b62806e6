"""The text of `half_dots.cu`."""

from __future__ import annotations

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.kernels.keys import Written
from tilewise.kernels.mma_gemm.half_dots.configs import WARPS, DotsTile
from tilewise.kernels.mma_gemm.mma_sync.text import product_of_fragments
from tilewise.kernels.shared.epilogue import render_epilogue
from tilewise.kernels.shared.text import defined, kernel_text
from tilewise.kernels.transforms.realign import ELEMENT
from tilewise.kernels.transforms.sums import render_numbers

FILES = ("lines.cuh", "ends.cuh", "stores.cuh", "half_dots.cu")


@Written
def render_half_dots(dtype: DType, tile: DotsTile, accumulate: bool = False, epilogue: Epilogue = PLAIN) -> str:
    sums = DTYPES["float32"]
    macros: dict[str, object] = {
        "WIDTH": tile.width,
        "WARPS": WARPS,
        "AHEAD": tile.ahead,
        "RESIDENT": tile.resident,
    }
    shared = "shared/in_turn.cuh", "shared/cluster.cuh", "shared/words.cuh"
    return "\n".join(
        (
            f"// half_dots over {dtype}, sums in {sums}",
            *defined(macros),
            ELEMENT,
            render_numbers(sums, dtype, accumulate),
            render_epilogue(epilogue, sums),
            product_of_fragments(dtype, 16, 80),
            *map(kernel_text, shared),
            *(kernel_text(f"mma_gemm/half_dots/{name}") for name in FILES),
        )
    )
