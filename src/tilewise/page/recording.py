"""Runs for the page: which blocks are recorded, and the variants that fit into a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewise.errors import LimitError, UsageError
from tilewise.page.payload import Scene
from tilewise.page.variants import Drop, combinations_of, line_of, without
from tilewise.tracing import Trace, trace
from tilewise.tracing.rungs import is_rung, rung_text

EVENTS = 120_000  # of all recorded blocks of a run together
EVENTS_OF_A_BLOCK = 400_000
EVENTS_FOR_COMBINATIONS = 1_000  # a run this small brings every combination of drops, a larger one each drop alone
SHAPE, TILE = (3, 3, 3), 2  # the course's example with edges


def record(kernel: str | Path, blocks: Sequence[tuple[int, int]] | str | None, settings: Mapping[str, Any]) -> Trace:
    """A traced run, every race acted out; `blocks` None: all of them, or a sample where they are many."""
    settings = with_defaults(kernel, settings)
    if blocks:
        return _small(trace(kernel, blocks=blocks, adversarial=True, **settings))
    first = _small(trace(kernel, blocks=((0, 0),), adversarial=True, **settings))
    gx, gy, gz = first.run.grid
    here = max(1, len(first.events))
    if gx * gy * gz == 1 or gz > 1:
        return first
    wanted: Any = "all" if gx * gy * here <= EVENTS else sample(gx, gy, max(1, EVENTS // here))
    return first if wanted == ((0, 0),) else trace(kernel, blocks=wanted, adversarial=True, **settings)


def with_defaults(kernel: str | Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A rung of the ladder is shown with the course's 3x3 example where nothing is said."""
    own = dict(settings)
    if is_rung(kernel):
        own["tile"] = TILE if own.get("tile") is None else own["tile"]
        own["shape"] = SHAPE if own.get("shape") is None else own["shape"]
    return own


def sample(across: int, down: int, most: int) -> tuple[tuple[int, int], ...]:
    """The corners and the middle of the grid, as (by, bx), each once, `most` at most."""
    right, bottom = across - 1, down - 1
    wanted = [(0, 0), (bottom, right), (0, right), (bottom, 0), (bottom // 2, right // 2)]
    return tuple(sorted(dict.fromkeys(wanted[:most])))


def _small(made: Trace) -> Trace:
    if not made.blocks:
        why = "; ".join(f.message for f in made.run.faults) or "no block was recorded"
        raise UsageError(f"there is nothing to show: {why}")
    if len(made.events) > EVENTS_OF_A_BLOCK:
        raise LimitError(
            f"a block of this run has {len(made.events):,} events and the page shows {EVENTS_OF_A_BLOCK:,}: "
            "choose a smaller shape or tile"
        )
    return made


def record_variants(
    kernel: str, drops: tuple[Drop, ...], scene: Scene, settings: Mapping[str, Any]
) -> tuple[list[Scene], int]:
    """The rung without each of its checks and barriers, without several of them where that stays small; how many
    combinations are left out."""
    own = with_defaults(kernel, settings)
    shape, tile = own["shape"], own["tile"]
    rung = rung_text(kernel, tile, own.get("semiring", "plus_times"), own.get("dtype", "float32"))
    own["grid"] = own.get("grid") or rung.grid(shape)
    own["block"] = own.get("block") or rung.geometry.block
    across = scene.trace.run.grid[0]
    blocks = tuple(divmod(b, across) for b in scene.trace.blocks)
    every = combinations_of(drops)
    wanted = every if len(scene.trace.events) <= EVENTS_FOR_COMBINATIONS else [(d,) for d in drops]
    made = []
    for some in wanted:
        run = trace(without(rung.text, some), blocks=blocks, adversarial=True, **own)
        lines = tuple(line_of(rung.text, d) for d in some)
        made.append(Scene(run, scene.title, tuple(d.name for d in some), lines))
    return made, len(every) - len(wanted)
