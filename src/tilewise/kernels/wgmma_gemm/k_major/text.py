"""The texts for elements that tensor cores take with k side by side: the transposition of operands, and the product."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.text import assembled, of_tile, without
from tilewise.kernels.shared.triangle import macros
from tilewise.kernels.transforms.transpose import render_transpose
from tilewise.kernels.wgmma_gemm.instruction import wgmma_text
from tilewise.kernels.wgmma_gemm.k_major.model import ACROSS_TILES, KINDS, TILES, AcrossTile, KMajorTile
from tilewise.kernels.wgmma_gemm.k_major.seconds import CLASSES

GROUP = 16  # rows of tiles that are walked together, so that their columns of N stay in L2
SPARE = {True: 4, False: 8}  # columns that a box of N has beside the tile's, by `apart`
TALL_GROUP = 8  # the same, of tiles about twice as tall
PROMOTED = {
    "bfloat16": 2
}  # stages whose sums of 8-bit floats stay in the tensor cores: more where P is rounded by more
TO_HALF = 'unsigned short bits; asm("cvt.rn.{0}.f32 %0, %1;" : "=h"(bits) : "f"(sum)); return bits;'
RESULTS = {
    "float32": ("float", "return sum;", "return held;"),
    "bfloat16": ("unsigned short", TO_HALF.format("bf16"), "return __uint_as_float((unsigned)held << 16);"),
    "float16": (
        "unsigned short",
        TO_HALF.format("f16"),
        'float sum; asm("cvt.f32.f16 %0, %1;" : "=f"(sum) : "h"(held)); return sum;',
    ),
    "int32": ("int", "return sum;", "return held;"),
    "int8": ("signed char", "return (Result)sum;", "return held;"),
    "uint8": ("unsigned char", "return (Result)sum;", "return held;"),
}  # how P is spelled, a sum stored, and what P holds taken up again


@KeyedRenderer
def render_k_major(
    kinds: tuple[str, str],
    tile: KMajorTile,
    *,
    boxed: bool,
    result: str,
    paired: bool = False,
    scaled: bool = False,
    symmetric: bool = False,
) -> str:
    """`kinds`: of M's and N's elements; `boxed`: the copy engine stores P; `result`: P's dtype; `paired`: two of its
    elements are stored as a word; `scaled`: its rows and columns are scaled first; `symmetric`: upper tiles, stored
    twice."""
    kind = KINDS[kinds[0]]
    spelled, narrow, widen = RESULTS[result]
    defines = {
        **of_tile(tile, "rows", "cols", "stages", "cluster", "beside", "boxes"),
        "BLOCK_K": 128 // kind.size,
        "GROUP": GROUP // (1 if tile.beside else tile.cluster),
        "PROMOTED": kind.promoted and PROMOTED.get(result, 1),
        "BOXED": boxed,
        "PACK": 2 if paired else 1,
        "SCALED": scaled,
        **macros(*tile.together, symmetric),
    }
    text = assembled(
        f"// k_major over {' and '.join(kinds)}, sums in {kind.sum}",
        defines,
        f"typedef {kind.sum} Sum;",
        f"typedef {spelled} Result;",
        f"static __device__ __forceinline__ Result narrow(Sum sum) {{ {narrow} }}",
        f"static __device__ __forceinline__ Sum widen(Result held) {{ {widen} }}",
        "shared/dependent_launch.cuh shared/cluster.cuh shared/ptx.cuh shared/pipeline.cuh",
        _wgmma(tile.cols, kinds),
        *(["shared/triangle.cuh"] if symmetric else []),
        "shared/walk.cuh wgmma_gemm/k_major/k_major_stores.cuh wgmma_gemm/k_major/k_major.cu",
    )
    return text if symmetric else without(text, "SYMMETRIC")


def _wgmma(width: int, kinds: tuple[str, str]) -> str:
    kind = KINDS[kinds[0]]
    types = ".".join(("s32" if kind.sum == "int" else "f32", *(KINDS[name].ptx for name in kinds)))
    signs = "" if kind.sum == "int" else ", 1, 1"
    return wgmma_text(width, f"k{32 // kind.size}.{types}", signs, sums=kind.sum, adds=True)


@KeyedRenderer
def render_k_across(tile: AcrossTile, *, apart: bool, classes: int, boxed: bool, onto: bool) -> str:
    """`apart`: lines of N start differently far from 16-byte boundaries; `classes`: of rows of M, 1 where they lie on
    such; `boxed`: the copy engine stores P; `onto`: P is added to."""
    pitch = 4 * (tile.cols + SPARE[apart])
    defines = {
        **of_tile(tile, "rows", "cols", "stages", "cluster", "beside"),
        "GROUP": TALL_GROUP // (1 if tile.beside else tile.cluster),
        "APART": apart,
        "ALONG": False,
        "PITCH": pitch,
        "BOX_BYTES": 8 * pitch,  # of the lines of a class
        "FIRST_GROUP": 1,
        "CLASSES": classes,
        "BOXED": boxed,
        "ONTO": onto,
    }
    return assembled(
        "// k_across over float32 as tf32",
        defines,
        "shared/dependent_launch.cuh shared/cluster.cuh shared/ptx.cuh shared/pipeline.cuh",
        wgmma_text(tile.rows, "k8.f32.tf32.tf32", ", 1, 1", from_registers=True),
        "shared/row_classes.cuh wgmma_gemm/register_lines.cuh",
        "wgmma_gemm/k_major/k_across_columns.cuh wgmma_gemm/k_major/k_across.cu",
    )


def texts(kinds: tuple[str, str], result: str) -> Iterator[str]:
    """Without scales, which are compiled when they are requested."""
    yield render_transpose.key(KINDS[kinds[0]].size)
    kind = KINDS[kinds[0]]
    halves = result in ("bfloat16", "float16")
    for tile, boxed, paired in product(TILES, (False, True), (False, True) if halves else (False,)):
        if tile.takes(kind):
            yield render_k_major.key(kinds, tile, boxed=boxed, result=result, paired=paired)
    if kind.size == 4:
        for tile, apart, classes in product(ACROSS_TILES, (False, True), (1, CLASSES)):
            if classes > 1 and not tile.beside:
                continue
            for boxed, onto in ((False, False), (False, True), (True, False)):
                if not (boxed and classes > 1):
                    yield render_k_across.key(tile, apart=apart, classes=classes, boxed=boxed, onto=onto)
