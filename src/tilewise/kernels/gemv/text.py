"""The texts of the kernels for few rows: the semiring's step over elements as they lie, then the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine
from tilewise.kernels.gemv.model import HELD, FewTile, dots_tile, few_config, room_for, rows_tile
from tilewise.kernels.keys import Written
from tilewise.kernels.plain.configs import binary
from tilewise.kernels.plain.text import step_text
from tilewise.kernels.shared.stacked import stacked
from tilewise.kernels.shared.text import defined, kernel_text


def few_text(algebra: Algebra, tile: FewTile, accumulate: bool, pointers: tuple[str, ...]) -> str:
    """The name of a text for members of a stack; factors that may be swapped are not."""
    if tile.swapped and _either_way(algebra):
        tile = replace(tile, swapped=False)
    return stacked.named(render_few.named(algebra, tile, accumulate=accumulate), pointers)


@Written
def render_few(algebra: Algebra, tile: FewTile, *, accumulate: bool) -> str:
    """Whether sums of a piece of k go to a plane of their own is said when it is launched."""
    swapped = tile.swapped and not _either_way(algebra)
    defines: dict[str, object] = {
        "FEW": tile.few, "VECTOR": tile.vector, "UNROLL": tile.unroll, "STAGE": tile.stage,
        "SWAPPED": int(swapped),
        "RESIDENT": tile.resident,
        "ARG": int(tile.config.name == "where"),
    }  # fmt: skip
    if tile.kernel == "few_dots":
        defines["LINES"] = tile.lines
    return "\n".join(
        (
            step_text(algebra, tile.config, accumulate, False),
            *defined(defines),
            "",
            *map(kernel_text, ("plain/in_turn.cuh", "gemv/few.cuh", f"gemv/{tile.kernel}.cu")),
        )
    )


def _either_way(algebra: Algebra) -> bool:
    """Whether a product has the same bits with its factors swapped, in one instruction."""
    return binary(algebra.semiring.mul) in ("add", "mul") and algebra.partial.kind != "c"


def every_few(algebra: Algebra, machine: Machine, dots: tuple[int, ...]) -> Iterator[str]:
    """Every text that few rows or columns of a dtype may name; `dots`: rows of those with lines along k."""
    config, size = few_config(algebra, machine, False), algebra.element.itemsize
    for held in HELD:
        for vector in (1, 2, 4, 8):
            if vector * size > 16:
                continue
            several = min(4, room_for(config, held))
            tiles = [
                dots_tile(config, held, vector, size, False, lines)
                for lines in ({several, 1 if held <= 2 else several} if held in dots else ())
            ]
            if vector <= room_for(config, held):
                tiles.append(rows_tile(config, held, vector, size, False))
            for tile in tiles:
                yield few_text(algebra, tile, False, ("A", "B", "P"))
