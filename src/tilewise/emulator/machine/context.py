"""The state of a running batch of blocks: masks, registers, memory, limits, and the collectors of results."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.arithmetic import Value
from tilewise.emulator.machine.collector import Collector
from tilewise.emulator.machine.costs import Costs
from tilewise.emulator.machine.lanes import Geometry, Lanes
from tilewise.emulator.machine.memory import UNSET, Buffer
from tilewise.emulator.machine.recorder import Recorder
from tilewise.errors import LimitError

CLOCK_EVERY = 64  # statements


class Loop:
    """The masks of lanes that executed `continue` in this iteration."""

    __slots__ = ("continued",)

    def __init__(self) -> None:
        self.continued: list[Any] = []


class Frame:
    """A function being executed: the lanes that have returned, and their values."""

    __slots__ = ("returned", "value", "version")

    def __init__(self) -> None:
        self.returned: Any = None
        self.value: Value = UNSET
        self.version = 0


class Context(Lanes):
    def __init__(
        self,
        geometry: Geometry,
        blocks: np.ndarray,
        slots: int,
        memos: int,
        collector: Collector,
        limits: Limits,
        deadline: float,
        lanes: np.ndarray | None = None,
    ) -> None:
        """`blocks` are the linear numbers of the blocks of this batch; `lanes` restricts it to some of their lanes
        (for schedules that run a few threads at a time)."""
        super().__init__(geometry, blocks, lanes)
        self.registers: list[Any] = [UNSET] * slots  # values, Cells or Pointers of the kernel's variables
        self.declared: list[Any] = [None] * slots  # the mask at the declaration of each
        self.memo: list[Any] = [None] * memos
        self.loops: list[Loop] = []
        self.frames: list[Frame] = []
        self.collector = collector
        self.costs: Costs | None = None
        self.recorder: Recorder | None = None
        self.checks = True
        self.limits = limits
        self.deadline = deadline
        self.line = 0  # of the statement being executed
        self.shared_read = False  # shared memory was read in this phase
        self.epochs = np.zeros(self.block_count, np.int32)  # barriers passed, by block
        self.grid_epoch = 0  # barriers of the whole grid
        self.buffers: list[Buffer] = []
        self.exited: Any = None  # lanes that have exited the kernel
        self.copied: Any = False  # True: from a shared cell to another; array: the lanes with uninitialised cells
        self.loaded: Any = None  # lanes that loaded from global memory in this statement; True: all
        self.builtins = self._builtins(blocks)
        self.barrier_hook: Any = None
        self.counters: dict[str, int] = dict.fromkeys(
            ("loads", "stores", "fills", "shared_writes", "uses", "barriers", "atomics"), 0
        )
        self.output: list[str] = []

    def _builtins(self, blocks: np.ndarray) -> dict[str, Value]:
        gx, gy, gz = self.geometry.grid
        bx, by, bz = self.geometry.block
        thread = self.thread.astype(np.uint32)
        out: dict[str, Value] = {
            "threadIdx.x": thread % np.uint32(bx),
            "threadIdx.y": thread // np.uint32(bx) % np.uint32(by),
            "threadIdx.z": thread // np.uint32(bx * by),
        }
        for axis, extent in zip("xyz", (bx, by, bz), strict=True):
            out[f"blockDim.{axis}"] = np.uint32(extent)
            if extent == 1:
                out[f"threadIdx.{axis}"] = np.uint32(0)
        number = self.block if not self.uniform_block else np.int32(blocks[0])
        parts = (number % gx, number // gx % gy, number // (gx * gy))
        for axis, extent, part in zip("xyz", (gx, gy, gz), parts, strict=True):
            out[f"gridDim.{axis}"] = np.uint32(extent)
            out[f"blockIdx.{axis}"] = np.uint32(0) if extent == 1 else part.astype(np.uint32)
        return out

    def tick(self, line: int) -> None:
        self.steps += 1
        self.line = line
        if self.steps > self.limits.steps:
            raise LimitError(
                f"stopped at line {line} after {self.limits.steps} statements: the kernel seems never to end "
                f"(--limit steps={2 * self.limits.steps} allows more)"
            )
        if self.steps % CLOCK_EVERY == 0 and time.process_time() > self.deadline:
            raise LimitError(
                f"stopped at line {line} after {self.limits.seconds:g} s "
                f"(--limit seconds={2 * self.limits.seconds:g} allows more)"
            )
