"""Warp shuffles and votes, and counts of a block: what those of the shipped headers are written with."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.machine.context import Context
from tilewise.errors import EngineError

WARP = 32


def _lane(c: Context) -> np.ndarray:
    if not c.whole:
        raise EngineError("warp shuffles and votes are not supported while threads run one at a time")
    return c.thread % WARP


def from_lane(c: Context, value: Any, lane: Any) -> Any:
    """Each thread's value from this lane of its warp; its own if the block has no such thread."""
    apart = np.asarray(lane).astype(np.int64) - _lane(c)
    at = np.where(c.thread + apart < c.geometry.threads, c.lane_numbers + apart, c.lane_numbers)
    return np.broadcast_to(np.asarray(value), (c.n,))[at]


def ballot(c: Context, members: Any, predicate: Any) -> Any:
    """The active lanes of a warp, among `members`, where the predicate holds, as bits."""
    lane, active = _lane(c), c.active_lanes()
    held = np.broadcast_to(np.asarray(predicate) != 0, (c.n,))
    grid = np.zeros((c.block_count, -(-c.geometry.threads // WARP), WARP), np.bool_)
    grid[c.slot[active], c.thread[active] // WARP, lane[active]] = held[active]
    bits = (grid * (np.uint32(1) << np.arange(WARP, dtype=np.uint32))).sum(axis=2, dtype=np.uint64).astype(np.uint32)
    return bits[c.slot, c.thread // WARP] & np.asarray(members).astype(np.uint32)


def count_in_block(c: Context, predicate: Any) -> Any:
    active = c.active_lanes()
    held = np.broadcast_to(np.asarray(predicate) != 0, (c.n,))[active]
    return np.bincount(c.slot[active], held, c.block_count).astype(np.int32)[c.slot]
