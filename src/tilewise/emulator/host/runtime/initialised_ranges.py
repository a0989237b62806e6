"""Whether an array is initialised, so that a loop over it needs no checks (see lower/loop_versions.py)."""

from __future__ import annotations

import ctypes

from tilewise.emulator.host.runtime.memory import INIT, INIT_BIT
from tilewise.emulator.host.runtime.session import Session, runtime

MAX_SKIPPED = 1 << 16  # iterations of the test that do not call the runtime after a failure


@runtime("rt_all_initialised")
def all_initialised(s: Session, low: int, high: int, site: int, card: int) -> int:
    """1 if low … high is initialised. Stores the widest range known to be initialised to the site, with the epoch."""
    cells = s.memory.cells(site, ctypes.c_int64, 4)
    memory = s.memory
    block = memory.find(low)
    there = low < high and block is not None and (block.device if card else not memory.on_stack(low))
    if block is not None and there and not block.freed and high <= block.end:
        for start, end in ((block.address, block.end), (low, high)):
            # on the host exactly 3; a kernel may also read the card's memory (6) and managed memory that is in use
            if memory.has(start, end - start, INIT_BIT if card else INIT, exactly=not card):
                cells[0], cells[1], cells[2] = start, end, memory.epoch
                if (start, end) != (block.address, block.end):
                    _back_off(s, cells, site)  # else each part would need a call
                return 1
    _back_off(s, cells, site)
    return 0


def _back_off(s: Session, cells: ctypes.Array[ctypes.c_int64], site: int) -> None:
    skipped = s.state.setdefault("skipped tests", {})
    skipped[site] = min(MAX_SKIPPED, 2 * skipped.get(site, 1))
    cells[3] = skipped[site]


@runtime("rt_assume_initialised")
def assume_initialised(s: Session, address: int) -> None:
    """Set the block behind a pointer to zeros: a statement that did not compile may have initialised it."""
    block = s.memory.find(address)
    if block is not None and not block.freed and not block.written:
        s.memory.set(block.address, 0, block.size)
        block.written = True
