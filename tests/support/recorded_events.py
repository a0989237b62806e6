"""A launch of a kernel in record mode in this process, and its log as `Events` in the order of lockstep execution.

The log has the events thread by thread. Its marks say in which iteration of which loop, and in which call, each one
happened: the threads' events meet in a tree of these places, which is walked in the order of the text. The page does
the same in `script/`."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tilewise.emulator.host.lower.call import PREFIX
from tilewise.emulator.host.lower.function import LoweredProgram
from tilewise.emulator.host.lower.module import runtime_signature
from tilewise.emulator.host.lower.recording import ENTRY_BYTES, GUESSED, NO_ROW, Site, SiteKind
from tilewise.emulator.host.runtime.linking import library_address
from tilewise.emulator.host.runtime.memory import CARD_INIT, CARD_UNINIT
from tilewise.emulator.host.runtime.recorded_kernel import RecordedKernel
from tilewise.emulator.host.runtime.session import FUNCTIONS
from tilewise.emulator.host.target.native import LLVM_TO_C
from tilewise.emulator.machine.events import COLUMNS, NONE, EventKind, Events
from tilewise.emulator.machine.lanes import Geometry
from tilewise.emulator.machine.leaves import placed_leaves
from tilewise.emulator.machine.memory import Buffer
from tilewise.emulator.machine.memory import Cells as MachineCells
from tilewise.emulator.machine.memory import Pointer as At
from tilewise.emulator.parse.types import Array, Pointer, Record, Scalar, innermost
from tilewise.errors import EngineError

Column = np.ndarray[Any, Any]
MARKS = frozenset({SiteKind.LOOP, SiteKind.ITERATION, SiteKind.CALL, SiteKind.LEAVE})
ENTRIES = 1 << 22  # of the log; pages are allocated on first access
LOG = np.dtype([
    ("address", "<i8"), ("value", "<f8"), ("row", "<i4"), ("site", "<i4"), ("thread", "<i4"), ("block", "<i4"),
])  # fmt: skip
assert LOG.itemsize == ENTRY_BYTES


@dataclass
class Placed:
    """An array of a launch in the program's memory."""

    buffer: Buffer
    address: int


@dataclass
class Recorded:
    """The log of a launch, and what its addresses are."""

    log: np.ndarray
    lost: int  # entries that the log had no room for
    placed: list[Placed]
    leads: Mapping[str, int]  # leading dimensions by name


class LaunchedKernel(RecordedKernel):
    """A kernel in record mode that runs in this process."""

    def __init__(self, one: Any, dimensions: frozenset[str], entries: int = ENTRIES) -> None:
        """`one`: a `Prepared`."""
        self._callbacks: list[Any] = []
        table = one.loaded.table
        super().__init__(table, one.function, one.template, dimensions, None, entries, self._symbols)

    def _symbols(self, program: LoweredProgram) -> dict[str, int]:
        """Functions of numbers are the C library's; those of the runtime do nothing."""
        out = {}
        for name, declaration in program.externals.items():
            if name.startswith("llvm."):
                continue
            result, parameters = runtime_signature(name, declaration)
            bare = name.removeprefix(PREFIX)
            if bare == name or bare in FUNCTIONS or "ptr" in (result, *parameters):
                maker = ctypes.CFUNCTYPE(*(LLVM_TO_C[t] for t in (result, *parameters)))
                self._callbacks.append(maker(partial(self._nothing, result)))
                out[name] = int(ctypes.cast(self._callbacks[-1], ctypes.c_void_p).value or 0)
            else:
                out[name] = library_address(bare)
        return out

    @staticmethod
    def _nothing(result: str, *_: Any) -> Any:
        return None if result == "void" else 0

    def launch(
        self, geometry: Geometry, arguments: Mapping[str, Any], leads: Mapping[str, int], dynamic: int = 0
    ) -> Recorded:
        """Run all blocks. `arguments` are those of the machine: numbers, pointers into buffers, lists of leaves. The
        contents of buffers are copied to the program's memory, and back after the launch."""
        memory = self.memory
        placed: dict[int, Placed] = {}
        for name, type_, offset in zip(self.names, self.parameters, self.offsets, strict=True):
            data = self._bytes(type_, arguments[name], placed)
            memory.cells(self.arguments + offset, ctypes.c_char, max(1, len(data)))[: len(data)] = data
        for name, sizes in (("gridDim", geometry.grid), ("blockDim", geometry.block)):
            memory.put(self.address_of(name), struct.pack("<3I", *sizes))
        count = memory.cells(self.recording.log, ctypes.c_int64, 1)
        count[0] = 0
        self.run_blocks(self.arguments, 0, geometry.blocks, geometry.threads, dynamic)
        kept = min(int(count[0]), self.recording.capacity)
        raw = memory.cells(self.recording.entries, ctypes.c_char, ENTRY_BYTES * kept)
        log = np.frombuffer(bytes(memoryview(raw)), LOG)
        for one in placed.values():
            one.buffer.data[:] = memory.view(one.address, one.buffer.data.nbytes).view(one.buffer.data.dtype)
        return Recorded(log, int(count[0]) - kept, list(placed.values()), leads)

    def _bytes(self, type_: Any, value: Any, placed: dict[int, Placed]) -> bytes:
        """An argument as the kernel reads it."""
        if isinstance(value, At):
            if isinstance(value.memory, MachineCells):
                raise EngineError("a pointer to a struct of matrices")
            if value.memory is None:
                return struct.pack("<q", 0)
            if id(value.memory) not in placed:
                placed[id(value.memory)] = self._placed(value.memory)
            one = placed[id(value.memory)]
            return struct.pack("<q", one.address + int(value.offset) * one.buffer.data.itemsize)
        if isinstance(type_, (Scalar, Pointer)):
            return bytes(np.asarray(value).tobytes())
        assert isinstance(type_, Record)
        out = bytearray(type_.size)
        for (leaf, at), part in zip(placed_leaves(type_), value, strict=True):
            data = self._bytes(leaf, part, placed)
            out[at : at + len(data)] = data
        return bytes(out)

    def _placed(self, buffer: Buffer) -> Placed:
        data = buffer.data
        made = self.memory.allocate(
            data.nbytes, "cudaMalloc", 0, buffer.name, device=True, host=False, state=CARD_UNINIT
        )
        self.memory.view(made.address, data.nbytes)[:] = data.view(np.uint8)
        if buffer.initialised is None:
            self.memory.change(made.address, data.nbytes, give=CARD_INIT)
        return Placed(buffer, made.address)


@dataclass
class Place:
    """An iteration or a call: entries of the log by site, and the places inside it."""

    entries: dict[int, list[int]] = field(default_factory=dict)
    inner: dict[int, list[Place]] = field(default_factory=dict)  # of a loop, by iteration; of a call, one

    def inside(self, site: int, number: int) -> Place:
        found = self.inner.setdefault(site, [])
        while len(found) <= number:
            found.append(Place())
        return found[number]


@dataclass(frozen=True)
class Step:
    """What threads did at one site at once; `place` and `site.statement` tell one execution of a statement."""

    number: int  # of the site
    place: int
    entries: list[int]


def steps_of(sites: list[Site], log: Column) -> Iterator[Step]:
    """The steps of one block in the order of lockstep execution; `log` is that block's, `entries` index it."""
    root = Place()
    open_: dict[int, list[tuple[Place, int, int]]] = {}  # of a thread: the places around it; loop and iteration
    for i, (number, thread) in enumerate(zip(log["site"].tolist(), log["thread"].tolist(), strict=True)):
        places = open_.setdefault(thread, [(root, -1, 0)])
        kind = sites[number].kind
        if kind not in MARKS:
            places[-1][0].entries.setdefault(number, []).append(i)
        elif kind is SiteKind.LOOP:
            places.append((places[-1][0], number, -1))
        elif kind is SiteKind.ITERATION:
            _, loop, count = places[-1]
            places[-1] = places[-2][0].inside(loop, count + 1), loop, count + 1
        elif kind is SiteKind.CALL:
            places.append((places[-1][0].inside(number, 0), -1, 0))
        else:
            places.pop()
    return _walk(root)


def _walk(place: Place) -> Iterator[Step]:
    for site in sorted(place.entries.keys() | place.inner.keys()):
        if site in place.entries:
            yield Step(site, id(place), place.entries[site])
        for inner in place.inner.get(site, ()):
            yield from _walk(inner)


@dataclass(frozen=True)
class Cells:
    """An array that entries access: its cells, and how they lie in rows."""

    name: str
    address: int
    size: int  # of a cell
    count: int
    pitch: int  # cells from row to row; 0: no rows
    shared: bool


def arrays_of(kernel: LaunchedKernel, made: Recorded) -> list[Cells]:
    """The arrays of a launch, the global ones first."""
    out = []
    for one in made.placed:
        buffer, matrix = one.buffer, one.buffer.matrix
        pitch = 0 if matrix is None else matrix.pitch
        out.append(Cells(buffer.name, one.address, buffer.data.itemsize, buffer.size, pitch, False))
    for name, type_, address in kernel.recording.shared:
        last = type_
        dims = []
        while isinstance(last, Array):
            dims.append(last.length)
            last = last.of
        cell = innermost(type_)
        count = type_.size // max(1, cell.size)
        out.append(Cells(name, address, cell.size, count, dims[-1] if len(dims) > 1 else 0, True))
    return out


def events_of(kernel: LaunchedKernel, made: Recorded, blocks: list[int] | None = None) -> tuple[Events, list[str]]:
    """The events of these blocks (None: all), and the names that their columns number."""
    arrays, sites = arrays_of(kernel, made), kernel.recording.sites
    names = [a.name for a in arrays]
    names += [n for n in dict.fromkeys(s.name for s in sites if s.kind is SiteKind.SUM) if n not in names]
    parts: list[dict[str, Any]] = []
    step = 0
    for block in np.unique(made.log["block"]).tolist() if blocks is None else blocks:
        parts.append(_block(made.log[made.log["block"] == block], arrays, sites, made.leads, names, step))
        step = int(parts[-1]["step"].max(initial=step))
    columns = {n: np.concatenate([part[n] for part in parts]).astype(dtype) for n, dtype in COLUMNS.items()}
    return Events(**columns), names


def _block(
    log: Column, arrays: list[Cells], sites: list[Site], leads: Mapping[str, int], names: list[str], step: int
) -> dict[str, Any]:
    """The columns of one block's events."""
    kind = np.array([s.kind for s in sites])[log["site"]]
    access = kind <= SiteKind.WRITE
    array = np.where(access, _arrays(log, arrays, sites), -1)
    shared = access & np.array([a.shared for a in arrays] or [False])[array]
    row, col, outside = _places(log, arrays, array)
    lead = np.array([leads.get(s.dimension.lstrip(GUESSED), 0) for s in sites], np.int64)[log["site"]]
    pitch = _of(arrays, "pitch", array)
    known = access & (lead > 0) & (log["row"] != NO_ROW) & (pitch > 0)
    requested_row = np.where(known, log["row"], row)
    requested_col = np.where(known, row * pitch + col - requested_row * lead, col)
    to, link = _destinations(log["thread"], sites, log["site"], kind, shared)
    order, steps, phases = _ordered(log, sites, shared, step)

    reads = kind == SiteKind.READ
    event = np.select(
        [kind == SiteKind.SUM, kind == SiteKind.BARRIER, reads & shared, reads, shared],
        [EventKind.SUM, EventKind.BARRIER, EventKind.USE, EventKind.LOAD, EventKind.FILL], EventKind.STORE,
    )  # fmt: skip
    carried = np.array([s.from_global for s in sites])[log["site"]]
    kept = ~((event == EventKind.FILL) & (link | carried))[order] & (kind <= SiteKind.BARRIER)[order]
    order, steps, phases = order[kept], steps[kept], phases[kept]
    sums = np.array([names.index(s.name) if s.kind is SiteKind.SUM else -1 for s in sites])[log["site"]]
    line = np.where(kind == SiteKind.BARRIER, log["row"], np.array([s.line for s in sites])[log["site"]])
    target = np.where(to >= 0, to, 0)

    def of(column: Any, where: Any = access, none: int = NONE) -> Any:
        return np.where(where, column, none)[order]

    return {
        "kind": event[order], "step": steps, "phase": phases, "block": log["block"][order],
        "thread": log["thread"][order], "line": line[order], "array": np.where(access, array, sums)[order],
        "row": of(requested_row), "col": of(requested_col), "got_row": of(row, access & ~outside),
        "got_col": of(col, access & ~outside),
        "value": np.where(kind == SiteKind.BARRIER, np.nan, log["value"])[order],
        "to_array": of(array[target], to >= 0, -1), "to_row": of(row[target], to >= 0),
        "to_col": of(col[target], to >= 0),
    }  # fmt: skip


def _of(arrays: list[Cells], what: str, array: Column) -> Column:
    made: Column = np.array([getattr(a, what) for a in arrays] or [1], np.int64)[array]
    return made


def _arrays(log: Column, arrays: list[Cells], sites: list[Site]) -> Column:
    """The array of each entry: the one that the text names, else the nearest one."""
    number = {a.name: i for i, a in enumerate(arrays)}
    named: Column = np.array([number.get(s.array, -1) for s in sites])[log["site"]]
    if not arrays:
        return named
    at = log["address"][:, None]
    first = np.array([a.address for a in arrays])
    last = first + np.array([a.size * a.count for a in arrays]) - 1
    nearest: Column = np.maximum(first - at, at - last).argmin(axis=1)
    return np.where(named >= 0, named, nearest)


def _places(log: Column, arrays: list[Cells], array: Column) -> tuple[Column, Column, Column]:
    """Row and column of the cell at each entry's address, and whether it is outside of its array."""
    pitch, count = _of(arrays, "pitch", array), _of(arrays, "count", array)
    cell = (log["address"] - _of(arrays, "address", array)) // _of(arrays, "size", array)
    row = np.where(pitch > 0, cell // np.maximum(pitch, 1), 0)
    return row, cell - row * pitch, (cell < 0) | (cell >= count)


def _destinations(
    thread: Column, sites: list[Site], site: Column, kind: Column, shared: Column
) -> tuple[Column, Column]:
    """For each load of global memory the entry that stores to shared memory in the same statement, or -1; and which
    stores have such a load."""
    to, link = np.full(len(site), -1), np.zeros(len(site), np.bool_)
    pending: dict[int, tuple[int, list[int]]] = {}
    statements = [s.statement for s in sites]
    wanted = (kind == SiteKind.READ) & ~shared | (kind == SiteKind.WRITE) & shared
    for i in np.flatnonzero(wanted).tolist():
        statement, who = statements[site[i]], int(thread[i])
        number, loads = pending.get(who, (0, []))
        if kind[i] == SiteKind.READ:
            if number != statement:
                loads = []
            pending[who] = statement, [*loads, i]
            continue
        if statement and number == statement and loads:
            to[loads], link[i] = i, True
        pending.pop(who, None)
    return to, link


def _ordered(log: Column, sites: list[Site], shared: Column, step: int) -> tuple[Column, Column, Column]:
    """The entries in the order of lockstep execution, their steps and their phases: a phase ends where shared memory is
    stored to after it was read."""
    writes = np.array([s.kind is SiteKind.WRITE for s in sites])[log["site"]]
    filling = {sites[i].statement for i in np.unique(log["site"][shared & writes]).tolist()} - {0}
    order: list[int] = []
    steps: list[int] = []
    phases: list[int] = []
    phase, read, now = 0, False, (0, 0)
    for one in steps_of(sites, log):
        site = sites[one.number]
        if not site.statement or now != (one.place, site.statement):
            step += 1
            now = one.place, site.statement
            if site.statement in filling and read:
                phase, read = phase + 1, False
        order += one.entries
        steps += [step] * len(one.entries)
        phases += [phase] * len(one.entries)
        read = read or (site.kind is SiteKind.READ and bool(shared[one.entries].any()))
    return np.array(order, np.int64), np.array(steps, np.int64), np.array(phases, np.int64)
