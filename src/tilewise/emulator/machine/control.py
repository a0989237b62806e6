"""Sequences of statements and loops over masked lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.emulator.machine.context import Context, Loop

Run = Callable[[Context], bool]


def nothing(c: Context) -> bool:
    return True


def union(masks: list[Any]) -> Any:
    """Lanes in any of the masks (None: all lanes)."""
    out = masks[0]
    for mask in masks[1:]:
        if out is None or mask is None:
            return None
        if mask is not out:
            out = out | mask
    return out


def sequence(runs: list[Run]) -> Run:
    if len(runs) == 1:
        return runs[0]
    if not runs:
        return nothing

    def run(c: Context) -> bool:
        return all(r(c) for r in runs)

    return run


def loop(condition: Any, body: Run, step: Any, after: bool, line: int) -> Run:
    """while, for and do. Lanes that leave by the condition or by break continue after the loop."""

    def run(c: Context) -> bool:
        entered = c.mask
        frame = c.frames[-1]
        version = frame.version
        skip = after
        while True:
            c.tick(line)
            if condition is not None and not skip:
                which = condition(c)
                if isinstance(which, np.ndarray):
                    mask = c.mask
                    going = which if mask is None else which & mask
                    count = int(np.count_nonzero(going))
                    if count == 0:
                        break
                    if count != (c.n if mask is None else int(np.count_nonzero(mask))):
                        c.mask = going
                elif not which:
                    break
            skip = False
            record = Loop()
            c.loops.append(record)
            alive = body(c)
            c.loops.pop()
            if record.continued:
                c.mask = union([*record.continued, c.mask] if alive else record.continued)
            elif not alive:
                break
            if step is not None:
                step(c)
        c.mask = entered
        if frame.version == version:
            return True
        gone = frame.returned
        if gone is True:
            return False
        left = ~gone if entered is None else entered & ~gone
        if not left.any():
            return False
        c.mask = left
        return True

    return run
