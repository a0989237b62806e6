"""Run a compiled kernel, in batches of blocks with their shared memory; sum up their counters."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.emulator import budget
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.collector import Collector
from tilewise.emulator.machine.context import Context, Frame
from tilewise.emulator.machine.costs import Costs
from tilewise.emulator.machine.lanes import Geometry
from tilewise.emulator.machine.leaves import dtypes_of, leaf_count
from tilewise.emulator.machine.memory import ZERO, Buffer, Cells, Pointer
from tilewise.emulator.machine.program import GlobalArray, Program
from tilewise.emulator.machine.recorder import Recorder
from tilewise.emulator.machine.shadow import Shadow
from tilewise.emulator.parse.types import Pointer as PointerTo
from tilewise.emulator.parse.types import Scalar, innermost
from tilewise.errors import EngineError, LimitError, UsageError
from tilewise.system.quantities import extent

BATCH_LANES = 1 << 16
MAX_THREADS = 1024
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCKS = 1 << 40
STATIC_SHARED, MAX_SHARED = 48 << 10, 227 << 10


@dataclass
class Launch:
    """The input of one run."""

    program: Program
    geometry: Geometry
    arguments: dict[str, Any]  # parameter -> NumPy scalar, Pointer, or list of leaves for a struct
    symbols: dict[str, int]  # leading dimensions by name
    collector: Collector
    limits: Limits
    dynamic_shared: int = 0  # bytes
    checks: bool = True
    costs: bool = True
    recorder: Recorder | None = None
    watch: Any = None  # linear numbers of the blocks to record; None: all
    globals: list[Buffer] = field(default_factory=list)
    blocks: Any = None  # linear numbers of the blocks to run; None: the whole grid


@dataclass
class Outcome:
    counters: dict[str, int]
    costs: Costs
    output: list[str]
    steps: int
    phases: int
    statements: int = 0  # of all threads together


def check_geometry(geometry: Geometry, static: int = 0) -> None:
    """`static`: bytes of __shared__ arrays; nvcc refuses more than 48 KiB."""
    if static > STATIC_SHARED:
        raise UsageError(f"{static} bytes of static shared memory: a block has {STATIC_SHARED}")
    if min(geometry.grid) < 1 or min(geometry.block) < 1:
        raise UsageError(f"grid {extent(geometry.grid)} of {extent(geometry.block)} threads: no side may be zero")
    if geometry.threads > MAX_THREADS:
        raise UsageError(f"a block of {geometry.threads} threads: a card takes at most {MAX_THREADS}")
    if any(side > most for side, most in zip(geometry.grid, MAX_GRID, strict=True)):
        raise UsageError(f"a grid of {extent(geometry.grid)}: a card takes at most {extent(MAX_GRID)}")
    if geometry.blocks > MAX_BLOCKS:
        sides, blocks = extent(geometry.grid), geometry.blocks
        raise LimitError(f"a grid of {sides} is {blocks:,} blocks: {MAX_BLOCKS:,} can be run here")


def shared_buffers(launch: Launch, blocks: int, names: list[str]) -> list[Buffer]:
    """Shared memory of a batch: one instance per block, filled with poison."""
    out: list[Buffer] = []
    total = 0
    for name, type_, dims, external in launch.program.shared:
        dtype = dtypes_of(innermost(type_))[0]
        size = launch.dynamic_shared // dtype.itemsize if external else leaf_count(type_)
        total += size * dtype.itemsize
        if size * blocks * (dtype.itemsize + 20) > launch.limits.memory:
            raise LimitError(
                f"{name}: {size * blocks * dtype.itemsize:,} bytes of shared memory for {blocks} blocks are over "
                f"the limit of {launch.limits.memory:,}: a smaller shape, or --limit memory=BYTES"
            )
        buffer = Buffer(name, "shared", np.empty(0, dtype), size, dims)
        cells = size * blocks
        if external:  # an access outside is redirected to the first cells: 16 for a vector
            cells = -(-cells // 16) * 16 + 16
        buffer.data = np.full(max(1, cells), buffer.poison, dtype)
        if external:
            buffer.dims = (size,)
        if name not in names:
            names.append(name)
        buffer.index = names.index(name)
        buffer.initialised = np.zeros(len(buffer.data), np.bool_)
        buffer.shadow = Shadow(buffer, True)
        out.append(buffer)
    if total > MAX_SHARED:
        raise LimitError(f"{total} bytes of shared memory: a block has at most {MAX_SHARED}")
    return out


def bind_arguments(c: Context, launch: Launch) -> None:
    """Store the arguments in the parameters' slots."""
    for variable in launch.program.parameters:
        value = launch.arguments[variable.name]
        if variable.storage == "cells":
            cells = Cells(variable.name, leaf_count(variable.type), dtypes_of(variable.type))
            cells.values = list(value) if not isinstance(variable.type, (Scalar, PointerTo)) else [value]
            c.registers[variable.slot] = cells
        else:
            c.registers[variable.slot] = value
    for slot, buffer in zip(launch.program.array_slots, launch.globals, strict=True):
        c.registers[slot] = Pointer(buffer, ZERO)
    c.symbols = [launch.symbols.get(s, 0) if isinstance(s, str) else s for s in launch.program.symbols]


def first_values(array: GlobalArray, dtype: Any) -> np.ndarray:
    """The initial value of a device variable; zeros are pages that are not yet allocated."""
    if array.values is None:
        return np.zeros(leaf_count(array.type), dtype)
    if isinstance(array.values, str):
        raise LimitError(array.values)
    return np.array([dtype.type(v) for v in array.values], dtype)


def global_arrays(program: Program) -> list[Buffer]:
    out = []
    for array in program.arrays:
        dtype = dtypes_of(innermost(array.type))[0]
        data = first_values(array, dtype)
        out.append(Buffer(array.name, "global", data, len(data)))
    return out


def make_context(
    launch: Launch, blocks: np.ndarray, deadline: float, names: list[str], lanes: np.ndarray | None = None
) -> Context:
    program = launch.program
    c = Context(
        launch.geometry, blocks, program.slots, program.memos, launch.collector, launch.limits, deadline, lanes
    )  # fmt: skip
    c.checks = launch.checks
    c.buffers = shared_buffers(launch, len(blocks), names)
    if len(blocks) > 1:
        for buffer in c.buffers:
            buffer.base = c.slot * buffer.size
    bind_arguments(c, launch)
    c.frames.append(Frame())
    return c


def execute(launch: Launch) -> Outcome:
    """Run all blocks of the grid, in batches."""
    geometry = launch.geometry
    check_geometry(geometry)
    budget.enter(f"running {launch.program.entry}")
    launch.globals = launch.globals or global_arrays(launch.program)
    deadline = time.process_time() + launch.limits.seconds
    costs = Costs(geometry.threads)
    recorder = launch.recorder
    names = recorder.names if recorder is not None else []
    per_batch = geometry.blocks if launch.program.waits_for_grid else max(1, BATCH_LANES // geometry.threads)
    counters: dict[str, int] = {}
    output: list[str] = []
    steps = phases = 0
    with np.errstate(all="ignore"):
        chosen = np.arange(geometry.blocks) if launch.blocks is None else launch.blocks
        for first in range(0, len(chosen), per_batch):
            blocks = chosen[first : first + per_batch]
            c = make_context(launch, blocks, deadline, names)
            c.steps = steps
            c.costs = costs if launch.costs and launch.checks else None
            c.output = output
            if recorder is not None:
                recorder.watched = None
                if launch.watch is not None:
                    recorder.watched = np.isin(c.block, launch.watch)
                if recorder.watched is None or recorder.watched.any():
                    c.recorder = recorder
            try:
                launch.program.body(c)
            except LimitError:
                raise
            except EngineError as error:  # an operation that the machine does not support: add the line
                text = launch.collector.source.line(c.line)
                column = len(text) - len(text.lstrip()) + 1
                raise launch.collector.source.error(str(error), c.line, column, len(text.strip())) from None
            for key, value in c.counters.items():
                counters[key] = counters.get(key, 0) + value
            steps, phases = c.steps, max(phases, c.phase + 1)
    return Outcome(counters, costs, output, steps, phases)
