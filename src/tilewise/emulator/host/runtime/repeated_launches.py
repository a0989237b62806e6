"""Skips launches that repeat an earlier one on the same data, as in the loops of benchmarks.

A kernel is a function of its arguments and of the card's memory. From a kernel's second launch on, that memory is saved
before it and, where it changed, after it: an equal launch on equal memory copies the result instead of running. After a
launch that changed nothing, memory is not even compared until a call that may change it: large memory is compared only
once. None of this depends on a clock, so that output is deterministic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.emulator.host.runtime.kernel_blocks import KernelRun, mark_changed
from tilewise.emulator.host.runtime.memory import BUSY, Allocation
from tilewise.emulator.host.runtime.session import Session
from tilewise.emulator.machine.execute import Outcome
from tilewise.system.memory import resident

OTHER_INPUTS = (  # what else a kernel may depend on
    "tex1D", "tex2D", "tex3D", "surf", "clock64", "clock()", "%clock", "%globaltimer",
)  # fmt: skip
MAX_SAVED_BYTES = 64 << 20  # of the card's memory, for all launches together
MAX_MISSES = 2  # a launch that finds other memory more often is no longer compared
MAX_LARGE_COMPARISONS = 8  # of a launch that follows itself; the first ones may be interpreted or find faults
MAX_LAUNCHES = 4096  # different launches

Copy = tuple[int, Any, Any]  # of a block: address, bytes, states


@dataclass
class LaunchRecord:
    """A launch that has run, with the card's memory before and after it."""

    result: tuple[Outcome, float] | None = None
    before: list[Copy] = field(default_factory=list)
    after: list[Copy] = field(default_factory=list)  # only blocks that it changed
    misses: int = 0
    large_comparisons: int = 0
    unchanged_at: int = -1  # the value of Session.changes at which it changed nothing

    @property
    def bytes(self) -> int:
        return sum(len(data) for _, data, _ in (*self.before, *self.after))


def reachable(s: Session) -> list[Allocation]:
    """All memory that a kernel could access."""
    memory = s.memory
    return [b for b in (*memory.device_blocks, *memory.blocks) if b.device and not b.freed]


def _states(s: Session, block: Allocation) -> Any:
    """Without BUSY, which is state of the host."""
    return s.memory.state(block.address, block.size) & (255 ^ BUSY)


def repeated(run: KernelRun, execute: Callable[[], tuple[Outcome, float]]) -> tuple[Outcome, float]:
    """Copy the result of an equal launch, or execute this one."""
    s = run.s
    if any(name in s.source.text for name in OTHER_INPUTS):
        return execute()
    known: dict[Any, LaunchRecord] = s.state.setdefault("launched", {})
    key = _key(run)
    last = known.get(key)
    follows = s.state.get("last launched") == (key, s.changes) and not any(b.host for b in reachable(s))
    if follows and last is not None and last.unchanged_at == s.changes and last.result is not None:
        mark_changed(run)
        s.cuda.launches[-1]["repeated"] = True
        return last.result
    s.changes += 1
    s.state["last launched"] = key, s.changes
    if follows and last is not None and (last.misses > MAX_MISSES or _size(s) > MAX_SAVED_BYTES):
        return _run_and_compare(s, last, execute)
    if last is None or last.misses > MAX_MISSES:
        if len(known) < MAX_LAUNCHES:
            known.setdefault(key, LaunchRecord())
        return execute()
    if last.result is not None and not _differ(s, last.before):
        for address, data, state in last.after:
            s.memory.view(address, len(data))[:] = data
            now = s.memory.state(address, len(data))
            now[:] = state | (now & BUSY)
        mark_changed(run)
        s.cuda.launches[-1]["repeated"] = True
        return last.result
    last.misses += last.result is not None
    last.result, last.before, last.after = None, [], []
    return _run_and_save(s, known, last, execute)


def _size(s: Session) -> int:
    return sum(b.size for b in reachable(s))


def _run_and_compare(
    s: Session, last: LaunchRecord, execute: Callable[[], tuple[Outcome, float]]
) -> tuple[Outcome, float]:
    """Execute a launch that follows itself, and find out whether it changes memory; the copy is not kept."""
    copies = 4 * _size(s)  # bytes and states, and temporaries of both while they are compared
    if last.large_comparisons > MAX_LARGE_COMPARISONS or copies + resident() > s.options.memory // 8 * 7:
        return execute()
    last.large_comparisons += 1
    result, _, changed = _observed(s, execute)
    if changed == []:
        last.result, last.unchanged_at = result, s.changes
    elif changed:
        last.large_comparisons += MAX_LARGE_COMPARISONS // 3  # it will probably change memory every time
    return result


def _run_and_save(
    s: Session, known: dict[Any, LaunchRecord], last: LaunchRecord, execute: Callable[[], tuple[Outcome, float]]
) -> tuple[Outcome, float]:
    """Execute the launch and save the card's memory before and after it."""
    blocks = reachable(s)
    if last.misses > MAX_MISSES or sum(b.size for b in blocks) + sum(x.bytes for x in known.values()) > MAX_SAVED_BYTES:
        last.misses = MAX_MISSES + 1
        return execute()
    result, before, changed = _observed(s, execute)
    if changed is None:
        return result
    after = [_copy(s, b) for b in changed]
    last.result, last.before, last.after = result, before, after
    last.unchanged_at = -1 if after else s.changes
    if sum(x.bytes for x in known.values()) > MAX_SAVED_BYTES:
        last.result, last.before, last.after, last.misses = None, [], [], MAX_MISSES + 1
    return result


def _observed(
    s: Session, execute: Callable[[], tuple[Outcome, float]]
) -> tuple[tuple[Outcome, float], list[Copy], list[Allocation] | None]:
    """Execute a launch: its result, memory before it, and the blocks it changed; None if it did anything else."""
    blocks, seen, record = reachable(s), _side_effects(s), s.cuda.launches[-1]
    before = [_copy(s, b) for b in blocks]
    result = execute()
    plain = "compiled_blocks" in record and _side_effects(s) == seen and not s.cuda.sticky
    if not plain or [b.address for b in reachable(s)] != [b.address for b in blocks]:
        return result, before, None
    return result, before, [b for b, saved in zip(blocks, before, strict=True) if _changed(s, b, saved)]


def _copy(s: Session, block: Allocation) -> Copy:
    return block.address, s.memory.view(block.address, block.size).copy(), _states(s, block)


def _changed(s: Session, block: Allocation, saved: Copy) -> bool:
    _, data, state = saved
    same = np.array_equal(data, s.memory.view(block.address, block.size))
    return not (same and np.array_equal(state, _states(s, block)))


def _differ(s: Session, saved: list[Copy]) -> bool:
    blocks = reachable(s)
    return [b.address for b in blocks] != [address for address, _, _ in saved] or any(
        _changed(s, b, copy) for b, copy in zip(blocks, saved, strict=True)
    )


def _key(run: KernelRun) -> Any:
    site, s = run.site, run.s
    size = max((o + t.size for t, o in zip(site.parameters, site.offsets, strict=True)), default=0)
    arguments = s.memory.view(run.arguments, size).tobytes() if size else b""
    sizes = run.geometry.grid, run.geometry.block, run.shared
    return id(site.kernel), tuple(map(str, site.bindings.items())), sizes, arguments


def _side_effects(s: Session) -> tuple[int, ...]:
    """Counts of what a launch may do besides changing memory: print, find faults, launch kernels."""
    children = s.state.get("launched by kernels", 0)
    return s.console.count, sum(f.count for f in s.faults.all()), len(s.faults.notes), children
