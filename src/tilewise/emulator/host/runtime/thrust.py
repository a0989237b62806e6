"""Memory of thrust::device_vector, and copies from and to it."""

from __future__ import annotations

from tilewise.emulator.host.runtime.cuda_memory import move
from tilewise.emulator.host.runtime.memory import CARD_UNINIT, LARGE
from tilewise.emulator.host.runtime.session import Session, runtime
from tilewise.emulator.machine.findings import Kind


@runtime("__thrust_memory")
def memory(s: Session, size: int) -> int:
    return s.memory.allocate(max(1, size), "device_vector", s.line, device=True, host=False, state=CARD_UNINIT).address


@runtime("__thrust_copy")
def copy(s: Session, to: int, source: int, size: int) -> None:
    """Copy bytes and whether they are initialised, between host and card."""
    m = s.memory
    for address in (source, to):
        pieces = range(address, address + size, LARGE)  # the first bad one ends the test
        if (
            size < 0
            or not m.inside(address, size)
            or not all(m.state(at, min(LARGE, address + size - at)).all() for at in pieces)
        ):
            hint = "keep the iterators inside their vector, and the second behind the first"
            read = f"{size} bytes are read that are no memory"
            text = read if address == source else f"{size} bytes are written that are no memory"
            s.faults.add(Kind.OUT_OF_BOUNDS, s.line, text, hint, access="thrust")
            return
    move(s, to, source, size)
    block = m.find(source)
    if block is not None:
        block.copied, block.stored = True, 0
