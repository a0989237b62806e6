"""The tensor-core kernels' text: Hopper's instructions, the wgmma of the tile's width, and the kernel itself."""

from __future__ import annotations

from functools import lru_cache

from tilewise.algebra.dtypes import DTYPES
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.core.problem import Groups
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.epilogue import render_epilogue
from tilewise.kernels.shared.groups import offset_type
from tilewise.kernels.shared.text import assembled, of_tile, without
from tilewise.kernels.shared.triangle import macros
from tilewise.kernels.transforms.realign import ELEMENT
from tilewise.kernels.wgmma_gemm.instruction import wgmma_text
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import CUTS, NARROWED, TensorTile

GROUP = 16  # rows of tiles that are walked together, so that their columns of N stay in L2
SUM = "typedef float Sum;\n"
# Where lines are multiplied with an edge on the way: elements of a line that a warp realigns at a time, and lines of a
# block; with k along the lines, and across.
SUMMED_ALONG, SUMMED_ACROSS = (1024, 32), (512, 64)
FILES = (
    "batch.cuh",
    "stage.cuh",
    "tile_scheduler.cuh",
    "alignment_classes.cuh",
    "stores.cuh",
    "cut.cuh",
    "wgmma_half.cu",
)
STORED = {  # what a text is told of how sums leave
    "BOXED": ("boxes",),
    "TRANSPOSED": ("transposed",),
    "CARRIED": ("carried",),
    "SPLIT": ("partial",),
    "CUT": CUTS,
    "FEW_ROWS": ("cut transposed",),
}
KINDS = {"bfloat16": "bf16", "float16": "f16"}


@KeyedRenderer
def render_wgmma_half(
    dtype: str,
    tile: TensorTile,
    *,
    m_along_k: bool,
    n_along_k: bool,
    store: str,
    accumulate: bool = False,
    edged: bool = False,
    classes: int = 0,
    n_by_classes: bool = False,
    narrowed: bool = False,
    epilogue: Epilogue = PLAIN,
    groups: Groups | None = None,
    serial: bool = False,
    symmetric: bool = False,
) -> str:
    """`*_along_k`: an operand's k lies side by side; `store`: how sums leave (`boxes`, `transposed`, `rows`, `carried`,
    `partial`, `cut`, `cut transposed`); `edged`: thin edges are separate; `classes`: in how many classes of rows M is
    taken, 0 where its rows start on 16 bytes; `n_by_classes`: rows of N come by classes; `narrowed`: the last tile of a
    row of them may be multiplied by half; `epilogue`: of sums that are not parts; `groups`: of rows, found on the card;
    `serial`: parts of k one after the other; `symmetric`: upper tiles, stored twice by `boxes` or `rows`.
    Members of a stack are walked by every text that may meet one."""
    kind = KINDS[dtype]
    defines = {
        **of_tile(tile, "rows", "cols", "cluster", "beside"),
        "STAGES": tile.stages(store),
        "CLASSES": classes or 1,
        "MISALIGNED": classes > 0,
        "N_BY_CLASSES": n_by_classes,
        "NARROWED": narrowed,
        "GROUP": GROUP // tile.cluster,
        "M_ALONG_K": m_along_k,
        "N_ALONG_K": n_along_k,
        **{name: int(store in stores) for name, stores in STORED.items()},
        "RESIDENT": tile.resident(store),
        "ACCUMULATE": accumulate,
        "SERIAL": serial,
        "EDGES": edged,
        "STACKED": not edged and not classes and store not in CUTS,
        "ROLLED": store in CUTS,  # so short a product waits for the text itself
        "BY_ROWS": groups is not None and groups.along == "rows",
        "BY_K": groups is not None and groups.along == "k",
        **macros(tile.rows * tile.cluster, tile.cols * tile.beside, symmetric),
    }
    text = assembled(
        f"// wgmma_half over {dtype}, sums in float32",
        defines,
        ELEMENT,
        offset_type(groups is not None and groups.along == "k" and groups.wide),
        "shared/dependent_launch.cuh shared/cluster.cuh shared/ptx.cuh shared/pipeline.cuh",
        conversions(kind),
        SUM,
        render_epilogue(epilogue, DTYPES["float32"]),
        "shared/words.cuh wgmma_gemm/wgmma_half/thin_edges.cuh",
        *products_of_tiles(tile.cols, kind, not m_along_k, not n_along_k),
        "shared/row_classes.cuh",
        *(["shared/triangle.cuh"] * symmetric + [f"wgmma_gemm/wgmma_half/{name}" for name in FILES]),
    )
    return text if symmetric else without(text, "SYMMETRIC")


@KeyedRenderer
def render_deinterleave() -> str:
    return assembled(ELEMENT, "shared/dependent_launch.cuh shared/words.cuh wgmma_gemm/wgmma_half/deinterleave.cu")


@KeyedRenderer
def render_realign_with_edges(dtype: str, along_k: bool) -> str:
    """`along_k`: how lines lie that are multiplied with an edge."""
    segment, lines = SUMMED_ALONG if along_k else SUMMED_ACROSS
    defines = {"ALONG_K": along_k, "WORDS": segment // 256, "LINES_EACH": lines // 8}
    return assembled(
        defines,
        ELEMENT,
        "shared/dependent_launch.cuh shared/ptx.cuh",
        conversions(KINDS[dtype]),
        "shared/words.cuh shared/lines.cuh wgmma_gemm/wgmma_half/realign_with_edges.cu",
    )


def conversions(kind: str) -> str:
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
"""


@lru_cache(maxsize=256)
def products_of_tiles(width: int, kind: str, transposed_m: bool, transposed_n: bool) -> tuple[str, ...]:
    """wgmma of a tile, of its left half where a tile may be narrow, and `wgmma_of<NARROW>` that chooses."""
    shape, flags = f"k16.f32.{kind}.{kind}", f", 1, 1, {int(transposed_m)}, {int(transposed_n)}"
    whole, half = wgmma_text(width, shape, flags), width // 2
    if half % 8 or width < NARROWED:
        return whole, CHOICE.format(count=half, choice="wgmma(sums, left, right);")
    choice = "if (NARROW) wgmma_left(sums, left, right);\n    else wgmma(sums, left, right);"
    left = wgmma_text(half, shape, flags, function="wgmma_left", of=width)
    return whole, left, CHOICE.format(count=half, choice=choice)


CHOICE = """template <bool NARROW> static __device__ __forceinline__ void wgmma_of(
    float (&sums)[{count}], unsigned long long left, unsigned long long right)
{{
    {choice}
}}
"""
