"""Runs of the emulator that a page's computed runs are compared with."""

from __future__ import annotations

import tilewise as tw
from tilewise.teaching.page.variants import drops_of, without


def variant(page, drops, **settings):
    """The trace of a page's kernel without these checks and barriers, of all blocks."""
    made = page.trace
    chosen = tuple(d for d in drops_of(made) if d.name in drops)
    assert len(chosen) == len(drops)
    run = made.run
    own = {"shape": run.shape, "tile": run.tile, "grid": run.grid, "block": run.block, "entry": run.entry}
    return tw.trace(without(made.source, chosen), **{"blocks": "all", "adversarial": True, **own, **settings})
