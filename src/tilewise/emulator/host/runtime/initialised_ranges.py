"""Whether an array has values everywhere, so that a loop over it needs no checks: compiled code asks, and keeps it."""

from __future__ import annotations

import ctypes

from tilewise.emulator.host.runtime.memory import INIT, INIT_BIT
from tilewise.emulator.host.runtime.session import Session, runtime

MOST = 1 << 16  # times not to ask again after it was in vain


@runtime("rt_all_initialised")
def all_initialised(s: Session, low: int, high: int, site: int, card: int) -> int:
    """1 where low … high has values everywhere; the widest range known is put to the site, with its epoch."""
    cells = (ctypes.c_int64 * 4).from_address(site)
    memory = s.memory
    block = memory.find(low)
    there = low < high and block is not None and (block.device if card else not memory.on_stack(low))
    if block is not None and there and not block.freed and high <= block.end:
        for start, end in ((block.address, block.end), (low, high)):
            if _has_values(s, start, end, bool(card)):
                cells[0], cells[1], cells[2] = start, end, memory.epoch
                if (start, end) == (block.address, block.end):
                    return 1
                _back_off(s, cells, site)  # a part at a time is not worth asking for each
                return 1
    _back_off(s, cells, site)
    return 0


def _back_off(s: Session, cells: ctypes.Array[ctypes.c_int64], site: int) -> None:
    waits = s.state.setdefault("not whole", {})
    waits[site] = min(MOST, 2 * waits.get(site, 1))
    cells[3] = waits[site]


def _has_values(s: Session, start: int, end: int, card: bool) -> bool:
    """On the host exactly 3; a kernel may also read the card's memory (6), and managed memory that is in use."""
    return s.memory.has(start, end - start, INIT_BIT if card else INIT, exactly=not card)


@runtime("rt_assume_initialised")
def assume_initialised(s: Session, address: int) -> None:
    """The block behind a pointer gets values: zeros, for those of a statement that did not compile."""
    block = s.memory.find(address)
    if block is not None and not block.freed and not block.written:
        s.memory.set(block.address, 0, block.size)
        block.written = True
