"""Warp shuffles, votes and reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.emulator.machine.context import Context
from tilewise.errors import EngineError

WARP = 32


def _lane(c: Context) -> np.ndarray:
    if not c.whole:
        raise EngineError("warp shuffles and votes are not supported while threads run one at a time")
    return c.thread % WARP


def _source_down(lane: Any, delta: Any, width: Any) -> Any:
    return np.where(lane % width + delta < width, lane + delta, lane)


def _source_up(lane: Any, delta: Any, width: Any) -> Any:
    return np.where(lane % width >= delta, lane - delta, lane)


def _source_xor(lane: Any, mask: Any, width: Any) -> Any:
    other = lane ^ mask
    return np.where(other // width <= lane // width, other, lane)


def _source_of(lane: Any, source: Any, width: Any) -> Any:
    return lane // width * width + source % width


SHUFFLES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "__shfl_down": _source_down, "__shfl_up": _source_up, "__shfl_xor": _source_xor, "__shfl": _source_of,
}  # fmt: skip


def shuffle(c: Context, kind: str, value: Any, which: Any, width: Any) -> Any:
    """Each lane's value from another lane of its warp; its own if that is outside the warp or the block."""
    lane = _lane(c)
    source = SHUFFLES[kind](lane, np.asarray(which).astype(np.int64), np.asarray(width).astype(np.int64))
    moved = c.thread + (source - lane)
    inside = (moved >= 0) & (moved < c.geometry.threads)
    at = np.where(inside, c.lane_numbers + (source - lane), c.lane_numbers)
    return np.broadcast_to(np.asarray(value), (c.n,))[at]


def _by_warp(c: Context, held: np.ndarray, neutral: Any, combine: Any) -> np.ndarray:
    """Combine the active lanes of each warp; every lane gets the result."""
    lane = _lane(c)
    warps = -(-c.geometry.threads // WARP)
    grid = np.full((c.block_count, warps, WARP), neutral, held.dtype)
    active = c.active_lanes()
    grid[c.slot[active], c.thread[active] // WARP, lane[active]] = held[active]
    folded = combine(grid)
    picked: np.ndarray = np.asarray(folded)[c.slot, c.thread // WARP]
    return picked


def ballot(c: Context, predicate: Any) -> Any:
    held = np.broadcast_to(np.asarray(predicate) != 0, (c.n,))
    bits = np.uint32(1) << np.arange(WARP, dtype=np.uint32)
    return _by_warp(c, held, False, lambda g: (g * bits).sum(axis=2, dtype=np.uint64).astype(np.uint32))


def vote(c: Context, every: bool, predicate: Any) -> Any:
    held = np.broadcast_to(np.asarray(predicate) != 0, (c.n,))
    met = _by_warp(c, held, every, lambda g: g.all(axis=2) if every else g.any(axis=2))
    return met.astype(np.int32)


REDUCTIONS = {"add": (np.add, 0), "min": (np.minimum, None), "max": (np.maximum, None), "and": (np.bitwise_and, -1),
              "or": (np.bitwise_or, 0), "xor": (np.bitwise_xor, 0)}  # fmt: skip


def reduce(c: Context, kind: str, value: Any) -> Any:
    held = np.broadcast_to(np.asarray(value), (c.n,))
    function, neutral = REDUCTIONS[kind]
    limits = np.iinfo(held.dtype)
    if neutral is None:
        neutral = limits.max if kind == "min" else limits.min
    start = np.array(neutral, np.int64).astype(held.dtype)
    return _by_warp(c, held, start, lambda g: function.reduce(g, axis=2).astype(held.dtype))


def block_vote(c: Context, kind: str, predicate: Any) -> Any:
    """`__syncthreads_count`, `_and`, `_or`: over the block, after its barrier."""
    held = np.broadcast_to(np.asarray(predicate) != 0, (c.n,))
    counted = np.bincount(c.slot[c.active_lanes()], held[c.active_lanes()], c.block_count)
    present = np.bincount(c.slot[c.active_lanes()], minlength=c.block_count)
    made = {"count": counted, "or": counted > 0, "and": counted == present}[kind]
    return made.astype(np.int32)[c.slot]
