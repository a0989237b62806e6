"""The state of a block after any frame (shared cells, partial sums, cells of P), from the events alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewise.emulator.machine.events import NONE, EventKind, Events
from tilewise.teaching.page.frames import PageFrame, frames_of
from tilewise.teaching.trace import TraceData

LOADED, FILLED, SILENT, OUTSIDE = "loaded", "filled", "silent", "outside"
KINDS = (LOADED, FILLED, SILENT, OUTSIDE)
Cell = tuple[int, int]


@dataclass(frozen=True)
class MemoryAccess:
    """One thread's memory access in a frame; `requested` and `reached` are cells of `array`."""

    kind: str
    thread: int
    array: str
    requested: Cell
    reached: Cell | None
    value: float
    target: str = ""
    put: Cell | None = None
    line: int = 0


@dataclass(frozen=True)
class SharedValue:
    """A shared cell: its value, the thread and kind of its last write, the value's origin, and the previous value."""

    value: float
    thread: int
    kind: str
    origin: MemoryAccess | None
    former: float | None


@dataclass
class State:
    """A block after a frame; `touched` are the accesses of that frame, `arrived` the threads at its barrier."""

    frame: PageFrame | None
    shared: dict[str, dict[Cell, SharedValue]] = field(default_factory=dict)
    sums: dict[tuple[str, int], float] = field(default_factory=dict)
    stored: dict[Cell, MemoryAccess] = field(default_factory=dict)
    touched: list[MemoryAccess] = field(default_factory=list)
    used: list[tuple[int, str, Cell, float]] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)


class Replay:
    """One recorded block of a trace, frame by frame."""

    def __init__(self, trace: TraceData, block: int) -> None:
        self.trace = trace
        self.block = block
        self.events: Events = trace.events.where(trace.events.block == block)
        self.frames = frames_of(self.events)

    def state(self, frame: int) -> State:
        """After frame number `frame`; -1 is before the first."""
        state = State(self.frames[frame] if frame >= 0 else None)
        for number in range(frame + 1):
            self._apply(state, self.frames[number], number == frame)
        return state

    def last_of(self, phase: int, stage: str | None = None) -> int:
        """The last frame of a phase, or of a stage of it; -1 if there is none."""
        fits = [i for i, f in enumerate(self.frames) if f.phase == phase and stage in (None, f.stage)]
        return fits[-1] if fits else -1

    def accesses(self, frame: PageFrame) -> list[MemoryAccess]:
        """The loads, fills and stores of a frame."""
        return [a for i in range(frame.first, frame.last) if (a := self._access(i)) is not None]

    def _access(self, i: int) -> MemoryAccess | None:
        e, names = self.events, self.trace.names
        kind = int(e.kind[i])
        if kind not in (EventKind.LOAD, EventKind.FILL, EventKind.STORE):
            return None
        cell = (int(e.row[i]), int(e.col[i]))
        thread, value, line = int(e.thread[i]), float(e.value[i]), int(e.line[i])
        array = names[int(e.array[i])]
        if kind == EventKind.FILL:
            return MemoryAccess(FILLED, thread, "", cell, cell, value, array, cell, line)
        got = (int(e.got_row[i]), int(e.got_col[i]))
        how = OUTSIDE if got[0] == NONE else LOADED if got == cell else SILENT
        put = (int(e.to_row[i]), int(e.to_col[i]))
        target = names[int(e.to_array[i])] if int(e.to_array[i]) >= 0 and put[0] != NONE else ""
        reached = None if how == OUTSIDE else got
        return MemoryAccess(how, thread, array, cell, reached, value, target, put if target else None, line)

    def _apply(self, state: State, frame: PageFrame, current: bool) -> None:
        e, names = self.events, self.trace.names
        for i in range(frame.first, frame.last):
            kind, thread, value = int(e.kind[i]), int(e.thread[i]), float(e.value[i])
            if kind == EventKind.SUM:
                state.sums[names[int(e.array[i])], thread] = value
            elif kind == EventKind.BARRIER and current:
                state.arrived.append(thread)
            elif kind == EventKind.USE and current:
                state.used.append((thread, names[int(e.array[i])], (int(e.row[i]), int(e.col[i])), value))
            access = self._access(i)
            if access is None:
                continue
            if current:
                state.touched.append(access)
            if kind == EventKind.STORE:
                if access.reached is not None:
                    state.stored[access.reached] = access
            elif access.put is not None:
                cells = state.shared.setdefault(access.target, {})
                before = cells.get(access.put)
                origin = access if access.kind != FILLED else None
                former = before.value if before else None
                cells[access.put] = SharedValue(value, thread, access.kind, origin, former)


@dataclass(frozen=True)
class TileGeometry:
    """The positions of a block's tiles: `tiles[matrix][phase]` is the (row, column) of the tile's first cell."""

    feeds: dict[str, str]  # shared array -> the matrix it is loaded from
    sizes: dict[str, Cell]  # shared array -> rows, columns
    tiles: dict[str, dict[int, Cell]]
    rows: range | None  # of M and P that the block works on
    cols: range | None  # of N and P


def geometry_of(replay: Replay) -> TileGeometry:
    """Tiles and strips, from the source and destination of loaded cells; edge tiles extend past their matrix."""
    feeds: dict[str, str] = {}
    sizes: dict[str, Cell] = {}
    tiles: dict[str, dict[int, Cell]] = {}

    def holds(name: str, cell: Cell) -> None:
        rows, cols = sizes.get(name, (0, 0))
        sizes[name] = (max(rows, cell[0] + 1), max(cols, cell[1] + 1))

    for frame in replay.frames:
        for a in replay.accesses(frame):
            if a.put is None:
                continue
            holds(a.target, a.put)
            if a.array:
                feeds.setdefault(a.target, a.array)
                origin = (a.requested[0] - a.put[0], a.requested[1] - a.put[1])
                tiles.setdefault(a.array, {}).setdefault(frame.phase, origin)
    uses = replay.events.of(EventKind.USE)
    for array in set(uses.array.tolist()):  # a cell that is read belongs to the tile, even if no thread wrote it
        mine = uses.where(uses.array == array)
        holds(replay.trace.names[array], (int(mine.row.max()), int(mine.col.max())))
    roles = {m.name: role for role, m in replay.trace.matrices.items()}
    rows_, cols_ = None, None
    for shared, array in feeds.items():
        first = next(iter(tiles[array].values()))
        if roles.get(array) == "M":
            rows_ = range(first[0], first[0] + sizes[shared][0])
        elif roles.get(array) == "N":
            cols_ = range(first[1], first[1] + sizes[shared][1])
    return TileGeometry(feeds, sizes, tiles, rows_, cols_)
