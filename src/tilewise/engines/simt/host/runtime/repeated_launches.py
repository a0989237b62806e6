"""Launches that change nothing: a benchmark's loop gives one kernel the same data again and again.

What a kernel does follows from its arguments and from the card's memory. Where it was seen to leave that memory as it
found it, the same launch on the same memory does so again: it is not run a third time. Whether this is so rests on
what was compared, never on a clock, so that a program prints the same in every run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.engines.simt.host.runtime.kernel_blocks import KernelRun, mark_changed
from tilewise.engines.simt.host.runtime.memory import BUSY, Allocation
from tilewise.engines.simt.host.runtime.session import Session
from tilewise.engines.simt.machine.execute import Outcome

ELSEWHERE = ("tex1D", "tex2D", "tex3D", "surf", "clock64", "clock()")  # what else a kernel may depend on
MOST = 64 << 20  # bytes of the card's memory that are kept to compare


@dataclass
class Repeated:
    """The launch that ran last, and the card's memory as it left it."""

    key: Any = None
    kept: list[tuple[int, Any, Any]] = field(default_factory=list)
    result: tuple[Outcome, float] | None = None
    fixed: bool = False  # it was seen to change nothing
    moving: bool = False  # it was seen to change something

    def same(self, s: Session) -> bool:
        blocks = reachable(s)
        return [b.address for b in blocks] == [address for address, _, _ in self.kept] and all(
            np.array_equal(data, s.memory.view(b.address, b.size)) and np.array_equal(state, _states(s, b))
            for b, (_, data, state) in zip(blocks, self.kept, strict=True)
        )


def reachable(s: Session) -> list[Allocation]:
    """All memory that some kernel could reach."""
    memory = s.memory
    return [b for b in (*memory.device_blocks, *memory.blocks) if b.device and not b.freed]


def _states(s: Session, block: Allocation) -> Any:
    """Who waits for managed memory is the host's matter."""
    return s.memory.state(block.address, block.size) & (255 ^ BUSY)


def repeated(run: KernelRun, execute: Callable[[], tuple[Outcome, float]]) -> tuple[Outcome, float]:
    """What the launch comes to: as it was the last time, where nothing else is possible; else by running it."""
    s = run.s
    if any(word in s.source.text for word in ELSEWHERE):
        return execute()
    last: Repeated = s.state.setdefault("repeated launch", Repeated())
    key = _key(run)
    again = key == last.key and not last.moving and last.same(s)
    if again and last.fixed and last.result is not None:
        mark_changed(run)
        s.cuda.launches[-1]["repeated"] = True
        return last.result
    before, record = _seen(s), s.cuda.launches[-1]
    result = execute()
    if "compiled_blocks" not in record or _seen(s) != before or s.cuda.sticky:
        s.state["repeated launch"] = Repeated()
        return result
    last.result = result
    if again:
        last.fixed = last.same(s)
        last.moving = not last.fixed
    elif key != last.key or not last.moving:
        s.state["repeated launch"] = _kept(s, key, result)
    return result


def _kept(s: Session, key: Any, result: tuple[Outcome, float]) -> Repeated:
    blocks = reachable(s)
    if sum(b.size for b in blocks) > MOST:
        return Repeated(key, moving=True)
    kept = [(b.address, s.memory.view(b.address, b.size).copy(), _states(s, b)) for b in blocks]
    return Repeated(key, kept, result)


def _key(run: KernelRun) -> Any:
    site, s = run.site, run.s
    size = max((o + t.size for t, o in zip(site.parameters, site.offsets, strict=True)), default=0)
    arguments = s.memory.view(run.arguments, size).tobytes() if size else b""
    sizes = run.geometry.grid, run.geometry.block, run.shared
    return id(site.kernel), tuple(map(str, site.bindings.items())), sizes, arguments


def _seen(s: Session) -> tuple[int, ...]:
    """What a launch may do beside its memory: print, find faults, launch others."""
    children = s.state.get("launched by kernels", 0)
    return s.console.count, sum(f.count for f in s.faults.all()), len(s.faults.notes), children
