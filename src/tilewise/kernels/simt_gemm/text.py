"""The texts of the kernels on plain cores: macros of a configuration, the semiring's prelude, the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import prelude
from tilewise.core.machine import Machine
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.groups import offset_type
from tilewise.kernels.shared.stacked import stacked
from tilewise.kernels.shared.steps import binary
from tilewise.kernels.shared.text import assembled
from tilewise.kernels.simt_gemm.skinny import HELD, SkinnyTile, dots_tile, room_for, rows_tile, skinny_config
from tilewise.kernels.simt_gemm.tiled.text import step_text

EARLY = "shared/dependent_launch.cuh"
LOOPS = {1: "direct", 2: "buffered"}  # of strips, by stages


def rendered(algebra: Algebra, macros: Mapping[str, object], *files: str) -> str:
    """Macros, prelude, files; whether to accumulate is an argument of the kernel."""
    return assembled(dict(macros), "", prelude(algebra, accumulate=None), *files)


@KeyedRenderer
def render_strips(algebra: Algebra, tile: tuple[int, ...], along_k: tuple[bool, bool] | None, stages: int) -> str:
    """`tile`: a StripTile. `along_k`: contiguity of M and N along k, where that is compiled in."""
    rows, cols, tm, tn, groups, deep, resident = tile
    macros: dict[str, object] = {
        "TM": rows, "TN": cols, "RM": tm, "RN": tn, "KC": deep, "GROUPS": groups,
        "THREADS": rows // tm * (cols // tn) * groups,
    }  # fmt: skip
    if along_k is not None:
        macros |= {"RESIDENT": resident, "M_ALONG_K": along_k[0], "N_ALONG_K": along_k[1]}
    sums = "shared/cluster.cuh", "shared/add_up.cuh", "simt_gemm/strip_sums.cuh"
    return rendered(algebra, macros, *sums, EARLY, f"simt_gemm/{LOOPS[stages]}.cu")


@KeyedRenderer
def render_cells(algebra: Algebra, width: int, down: bool) -> str:
    return rendered(algebra, {"WIDTH": width, "DOWN": down}, EARLY, "simt_gemm/cells.cu")


@KeyedRenderer
def render_rank_k(algebra: Algebra, deep: int, columns: int) -> str:
    return rendered(algebra, {"DEEP": deep, "COLUMNS": columns}, EARLY, "simt_gemm/rank_k.cu")


@KeyedRenderer
def render_grouped(algebra: Algebra, by_k: bool, wide: bool, k_along: tuple[bool, bool]) -> str:
    """`k_along`: whether M and N are contiguous along k; `wide`: ends of groups are 64-bit."""
    macros = {"K_ALONG_M": k_along[0], "K_ALONG_N": k_along[1], "BY_K": by_k}
    return assembled(macros, offset_type(wide), prelude(algebra), "simt_gemm/tile.cuh simt_gemm/grouped.cu")


@KeyedRenderer
def render_many(algebra: Algebra, jobs: int) -> str:
    """`jobs`: products of a launch, at most."""
    return assembled({"JOBS": jobs}, "", prelude(algebra), "simt_gemm/tile.cuh simt_gemm/many.cu")


def skinny_text(algebra: Algebra, tile: SkinnyTile, accumulate: bool, pointers: tuple[str, ...]) -> str:
    """The key of a text for stacks; without SWAPPED where the factors commute."""
    if tile.swapped and _commutes(algebra):
        tile = replace(tile, swapped=False)
    return stacked.key(render_skinny.key(algebra, tile, accumulate=accumulate), pointers)


@KeyedRenderer
def render_skinny(algebra: Algebra, tile: SkinnyTile, *, accumulate: bool) -> str:
    """One text for whole and split k: the launch chooses."""
    swapped = tile.swapped and not _commutes(algebra)
    defines: dict[str, object] = {
        "FEW": tile.few, "VECTOR": tile.vector, "UNROLL": tile.unroll, "STAGE": tile.stage,
        "SWAPPED": swapped,
        "RESIDENT": tile.resident,
        "ARG": tile.config.name == "where",
    }  # fmt: skip
    if tile.kernel == "few_dots":
        defines["LINES"] = tile.lines
    return assembled(
        step_text(algebra, tile.config, accumulate, False),
        defines,
        "",
        EARLY,
        "simt_gemm/skinny.cuh",
        f"simt_gemm/{tile.kernel}.cu",
    )


def _commutes(algebra: Algebra) -> bool:
    """Whether mul is one instruction and gives the same bits with its factors swapped."""
    return binary(algebra.semiring.mul) in ("add", "mul") and algebra.partial.kind != "c"


def every_skinny(algebra: Algebra, machine: Machine, dots: tuple[int, ...]) -> Iterator[str]:
    """Every text of the GEMV kernels for a dtype; `dots`: rows in registers of few_dots."""
    config, size = skinny_config(algebra, machine, False), algebra.element.itemsize
    for held in HELD:
        for vector in (1, 2, 4, 8):
            if vector * size > 16:
                continue
            several = min(4, room_for(config.sum_words, held))
            tiles = [
                dots_tile(config, held, vector, size, False, lines)
                for lines in ({several, 1 if held <= 2 else several} if held in dots else ())
            ]
            if vector <= room_for(config.sum_words, held):
                tiles.append(rows_tile(config, held, vector, size, False))
            for tile in tiles:
                yield skinny_text(algebra, tile, False, ("A", "B", "P"))
