"""Runs for the page: which blocks are recorded, and the variants that fit into a file."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from tilewise.emulator import budget
from tilewise.emulator.machine.lanes import name_of
from tilewise.errors import LimitError, TilewiseError, UsageError
from tilewise.teaching.page.payload import Scene
from tilewise.teaching.page.variants import Drop, without
from tilewise.teaching.page.views import Trace, trace
from tilewise.teaching.trace import SOME
from tilewise.teaching.trace.rungs import is_rung

EVENTS_OF_A_BLOCK = 400_000
SHAPE, TILE = (3, 3, 3), 2  # the course's example with edges
TILES = (2, 4, 8, 16)
SHARE_OF_VARIANTS = 0.6  # of a call's time limit
PRODUCTS_FOR_TILES = 16**3  # for smaller shapes all TILES are recorded
COURSE = Path(__file__).with_name("course.cu")  # the kernel of the lecture notes


def record(kernel: str | Path, blocks: Sequence[Sequence[int]] | str | None, settings: Mapping[str, Any]) -> Trace:
    """A traced run, with a failing order if there is a race; `blocks` None: all, or a sample of many."""
    made = trace(kernel, blocks=blocks or SOME, **{"adversarial": True, **with_defaults(kernel, settings)})
    if not made.blocks:
        why = "; ".join(f.message for f in made.run.faults) or "no block was recorded"
        raise UsageError(f"there is nothing to show: {why}")
    if len(made.events) > EVENTS_OF_A_BLOCK * len(made.blocks):
        raise LimitError(
            f"a block of this run has {len(made.events) // len(made.blocks):,} events and the page shows "
            f"{EVENTS_OF_A_BLOCK:,}: choose a smaller shape or tile"
        )
    return made


def with_defaults(kernel: str | Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the 3x3 example as the default of a rung and of the course's kernel."""
    own = dict(settings)
    if is_rung(kernel) or kernel == COURSE:
        own["tile"] = TILE if own.get("tile") is None else own["tile"]
        own["shape"] = SHAPE if own.get("shape") is None else own["shape"]
    return own


def record_variants(
    scene: Scene, drops: tuple[Drop, ...], settings: Mapping[str, Any], until: float
) -> list[Scene]:  # fmt: skip
    """Variants without each check and barrier. Those that cannot be run by their text alone, or not started by `until`
    (time.monotonic), are omitted."""
    run = scene.trace.run
    own = {**settings, "entry": run.entry, "grid": run.grid, "block": run.block, "shape": run.shape, "tile": run.tile}
    blocks = tuple(name_of(b, run.grid)[:2] for b in scene.trace.blocks)
    made = []
    for drop in drops:
        if time.monotonic() > until:
            break
        try:
            variant = trace(without(scene.trace.source, (drop,)), blocks=blocks, adversarial=True, **own)
        except budget.Exhausted:
            raise
        except TilewiseError:
            continue
        made.append(Scene(variant, scene.title, (drop.name,), (drop.line,)))
        made += failing_order(made[-1])
    return made


def failing_order(scene: Scene) -> list[Scene]:
    """The scene thread by thread in an order that gives a wrong P; empty if none was found."""
    order = scene.trace.failing
    return [] if order is None else [replace(scene, trace=order, schedule=True)]


def record_walk(kernel: str | Path) -> list[Scene]:
    """The notes' 4×4 walk through the first block, for the notes' kernel only."""
    if kernel != COURSE:
        return []
    made = trace(kernel, shape=(4, 4, 4), tile=TILE)
    return [Scene(made, f"{COURSE.name} · 4×4×4 · TILE_WIDTH {TILE}", walk=True)]


def record_tiles(kernel: str | Path, scene: Scene, settings: Mapping[str, Any], until: float) -> list[Scene]:
    """Scenes of the same shape at the other tile widths that the kernel supports."""
    run = scene.trace.run
    if run.tile is None or run.shape is None or prod(run.shape) > PRODUCTS_FOR_TILES:
        return []
    made = []
    for tile in TILES:
        if tile == run.tile or time.monotonic() > until:
            continue
        try:
            other = record(kernel, None, {**settings, "shape": run.shape, "tile": tile})
        except budget.Exhausted:
            raise
        except TilewiseError:
            continue
        if other.run.tile == tile and other.run.block != run.block:
            made.append(Scene(other, scene.title.replace(f"TILE_WIDTH {run.tile}", f"TILE_WIDTH {tile}"), tile=tile))
    return made
