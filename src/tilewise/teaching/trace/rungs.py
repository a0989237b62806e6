"""Kernels of the ladder for `trace` and `check`: from a rung's name to its rendered text and its launch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import dtype_named
from tilewise.algebra.semiring import Semiring
from tilewise.core.plan import DEFAULT_TILE, Geometry
from tilewise.errors import DtypeError
from tilewise.kernels.ladder.model import LADDER, check_tile, find_rung
from tilewise.kernels.ladder.text import render_rung


@dataclass(frozen=True)
class RungText:
    """A rung's text over an algebra at a tile width, and its launch geometry."""

    text: str
    geometry: Geometry

    def grid(self, shape: tuple[int, int, int]) -> tuple[int, int]:
        m, _, n = shape
        return -(-n // self.geometry.cols), -(-m // self.geometry.rows)


def is_rung(kernel: str | Path) -> bool:
    """Whether the text is the name of a rung; a file of that name takes precedence."""
    return isinstance(kernel, str) and kernel in LADDER and not Path(kernel).exists()


def rung_text(name: str, tile: int | None, semiring: str | Semiring, dtype: str) -> RungText:
    rung = find_rung(name)
    width = min(DEFAULT_TILE, rung.max_tile) if tile is None else check_tile(tile, rung)
    number = dtype_named(dtype)
    if number.kind == "c" or number.name in ("float16", "bfloat16"):
        raise DtypeError(f"dtype {dtype} is not shown in a trace: use float32, float64 or an integer dtype")
    algebra = find_semiring(semiring).over(number)
    return RungText(render_rung(name, algebra, width), rung.geometry(width, algebra))
