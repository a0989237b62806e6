"""A trace as text: threads down, phases across, as the course draws it; tiles, partial sums, barriers, counters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial

import numpy as np

from tilewise.emulator.machine.events import NONE, EventKind, Events
from tilewise.emulator.machine.lanes import name_of
from tilewise.i18n.messages import say
from tilewise.system.quantities import coordinates, extent
from tilewise.teaching.trace.findings_text import findings_text, summary, wrapped
from tilewise.teaching.trace.trace_data import TraceData

Message = Callable[..., str]  # a sentence in the reader's language
THREADS_SHOWN = 16
PRODUCTS_SHOWN = 4
TILE_SHOWN = 16


def draw(trace: TraceData, width: int = 80, phases: tuple[int, ...] | None = None, language: str = "en") -> str:
    """The trace as text; `phases` selects some. What does not fit is omitted, with a note."""
    run, message = trace.run, partial(say, language)
    shape = "" if run.shape is None else f", {'x'.join(map(str, run.shape))}"
    phases_ = f", {say(language, 'count.phase', count=trace.phases)}" if run.shape is not None and trace.phases else ""
    lines = [f"{run.entry}{shape}{phases_}: " + message("table.launch", grid=extent(run.grid), block=extent(run.block))]
    lines += wrapped("; ".join(run.binding), width)
    if run.supplied:
        lines += wrapped(message("table.supplied", names="; ".join(run.supplied)), width)
    for block in trace.blocks:
        lines += ["", *_block(trace, block, width, phases, message)]
    lines += ["", *_counters(trace, width, message)]
    if run.findings:
        lines += ["", *_findings(trace, width, language)]
    return "\n".join(_cut(line.rstrip(), width) for line in lines)


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"


def thread_name(trace: TraceData, thread: int, brief: bool = False) -> str:
    return coordinates(name_of(thread, trace.run.block), brief)


def block_name(trace: TraceData, block: int, brief: bool = False) -> str:
    return coordinates(name_of(block, trace.run.grid), brief)


def _block(trace: TraceData, block: int, width: int, chosen: tuple[int, ...] | None, message: Message) -> list[str]:
    events = trace.events.where(trace.events.block == block)
    lines = [message("table.block", block=block_name(trace, block))]
    if not len(events):
        return [*lines, "  " + message("table.nothing")]
    numbers = [p for p in range(int(events.phase.max()) + 1) if chosen is None or p in chosen]
    cells = {p: _cells(trace, events.where(events.phase == p), message) for p in numbers}
    column = max([20, *(len(s) for c in cells.values() for lines_ in c.values() for s in lines_)]) + 2
    threads = sorted(set(events.thread.tolist()))
    shown = threads[:THREADS_SHOWN]
    first_column = max(len(thread_name(trace, thread)) for thread in shown) + 2
    across = max(1, (width - first_column) // column)
    for first in range(0, len(numbers), across):
        group = numbers[first : first + across]
        heads = "".join(message("table.phase", phase=p).ljust(column) for p in group)
        lines.append(message("table.thread").ljust(first_column) + heads)
        for thread in shown:
            stacks = [cells[p].get(thread, []) for p in group]
            for i in range(max((len(s) for s in stacks), default=0)):
                head = thread_name(trace, thread) if i == 0 else ""
                parts = [(s[i] if i < len(s) else "").ljust(column) for s in stacks]
                lines.append(head.ljust(first_column) + "".join(parts))
        for p in group:
            lines += _phase_notes(trace, events.where(events.phase == p), p, width, message)
    if len(shown) < len(threads):
        lines.append("  " + message("table.threads.more", count=len(threads) - len(shown)))
    return lines


def _name(trace: TraceData, array: int, row: int, col: int) -> str:
    if row == NONE:
        return trace.names[array]
    return f"{trace.names[array]}[{row}][{col}]"


def _cells(trace: TraceData, events: Events, message: Message) -> dict[int, list[str]]:
    """The lines of each thread's cell for one phase."""
    out: dict[int, list[str]] = defaultdict(list)
    used: dict[int, dict[int, list[str]]] = defaultdict(dict)  # thread → step → cells
    stores: dict[int, list[str]] = defaultdict(list)
    term = "+ {}".format if trace.matrices else str  # other kernels than products do with a value what they like
    between = "·" if trace.matrices else ", "
    for i in range(len(events)):
        kind, thread = int(events.kind[i]), int(events.thread[i])
        row, col = int(events.row[i]), int(events.col[i])
        name = _name(trace, int(events.array[i]), row, col)
        if kind == EventKind.LOAD:
            got = (int(events.got_row[i]), int(events.got_col[i]))
            if got[0] == NONE:
                name += f" ✗ {message('table.outside')}"
            elif got != (row, col):
                name += f" ✗ [{got[0]}][{got[1]}]"
            to = int(events.to_array[i])
            if to >= 0 and int(events.to_row[i]) != NONE:
                name += f" → {_name(trace, to, int(events.to_row[i]), int(events.to_col[i]))}"
            out[thread].append(name)
        elif kind == EventKind.FILL:
            out[thread].append(f"{_number(float(events.value[i]))} → {name}")
        elif kind == EventKind.USE:
            used[thread].setdefault(int(events.step[i]), []).append(name)
        elif kind == EventKind.STORE:
            text = f"{name} = {_number(float(events.value[i]))}"
            if int(events.got_row[i]) == NONE:
                text += f" ✗ {message('table.outside')}"
            elif (int(events.got_row[i]), int(events.got_col[i])) != (row, col):
                text += f" ✗ [{int(events.got_row[i])}][{int(events.got_col[i])}]"
            stores[thread].append(text)
    for thread in {**used, **stores}:
        lines = terms = [term(between.join(s)) for s in used[thread].values()]
        if len(lines) > PRODUCTS_SHOWN:
            lines = [
                *lines[: PRODUCTS_SHOWN - 1],
                message("table.products.more", count=len(terms) - PRODUCTS_SHOWN + 1),
            ]
        out[thread] += lines + stores[thread]
    for thread, lines in out.items():
        if len(lines) > 24:
            out[thread] = [*lines[:23], message("table.more", count=len(lines) - 23)]
    return out


def _number(value: float) -> str:
    return f"{value:g}"


def _phase_notes(trace: TraceData, events: Events, phase: int, width: int, message: Message) -> list[str]:
    """Text under the table: the shared tiles of the phase, the partial sums after it, its barriers."""
    lines = [f"  {message('table.phase', phase=phase)}: {_barriers(events, message)}"]
    tiles = _tiles(events)
    grids = []
    for array, tile in tiles.items():
        if max(tile.shape) > TILE_SHOWN:
            grids.append([message("table.tile.large", name=trace.names[array], rows=tile.shape[0], cols=tile.shape[1])])
            continue
        texts = [[("·" if v != v else _number(v)) for v in row] for row in tile.tolist()]
        most = max(len(t) for row in texts for t in row)
        grids.append([trace.names[array], *(" ".join(t.rjust(most) for t in row) for row in texts)])
    lines += _side_by_side(grids, width)
    sums = events.of(EventKind.SUM)
    if len(sums):
        last: dict[tuple[int, int], float] = {}
        for i in range(len(sums)):
            last[int(sums.array[i]), int(sums.thread[i])] = float(sums.value[i])
        for array in dict.fromkeys(a for a, _ in last):
            mine = [(t, v) for (a, t), v in last.items() if a == array][:THREADS_SHOWN]
            text = "  ".join(f"{thread_name(trace, t, brief=True)}: {_number(v)}" for t, v in mine)
            lines += ["  " + s for s in wrapped(message("table.sofar", name=trace.names[array], sums=text), width - 2)]
    return lines


def _barriers(events: Events, message: Message) -> str:
    barriers = events.of(EventKind.BARRIER)
    if not len(barriers):
        return message("table.barrier.none")
    steps = dict(zip(barriers.step.tolist(), barriers.line.tolist(), strict=True))
    lines = ", ".join(message("findings.line", line=line) for line in steps.values())
    return message("table.barrier", count=len(steps), lines=lines)


def _tiles(events: Events) -> dict[int, np.ndarray]:
    """Shared arrays after the phase's loads and fills; NaN in cells that were not written."""
    puts: dict[int, list[tuple[int, int, float]]] = defaultdict(list)
    for i in range(len(events)):
        kind = int(events.kind[i])
        if kind == EventKind.LOAD and int(events.to_array[i]) >= 0 and int(events.to_row[i]) != NONE:
            where = int(events.to_array[i]), int(events.to_row[i]), int(events.to_col[i])
        elif kind == EventKind.FILL and int(events.row[i]) != NONE:
            where = int(events.array[i]), int(events.row[i]), int(events.col[i])
        else:
            continue
        puts[where[0]].append((where[1], where[2], float(events.value[i])))
    out: dict[int, np.ndarray] = {}
    for array, cells in puts.items():
        tile = np.full((max(r for r, _, _ in cells) + 1, max(c for _, c, _ in cells) + 1), np.nan)
        for r, c, v in cells:
            tile[r, c] = v
        out[array] = tile
    return out


def _side_by_side(grids: list[list[str]], width: int) -> list[str]:
    """Small tables side by side if they fit, else one below the other."""
    if not grids:
        return []
    widths = [max(len(s) for s in g) for g in grids]
    if sum(widths) + 4 * len(grids) > width:
        return [f"    {s}"[:width] for g in grids for s in g]
    rows = max(len(g) for g in grids)
    return [
        "    " + "    ".join((g[i] if i < len(g) else "").ljust(w) for g, w in zip(grids, widths, strict=True))
        for i in range(rows)
    ]


def uses_per_value(events: Events) -> dict[int, int]:
    """The number of shared values by the number of threads that read them. A value is of one phase of one block."""
    uses = events.of(EventKind.USE)
    if not len(uses):
        return {}
    keys = np.stack([uses.block, uses.phase, uses.array, uses.row, uses.col, uses.thread], dtype=np.int64)
    ordered = keys[:, np.lexsort(keys[::-1])]
    changed = ordered[:, 1:] != ordered[:, :-1]
    first = np.append(True, changed.any(axis=0))  # of a thread that reads the value
    value = np.append(0, np.cumsum(changed[:-1].any(axis=0)))
    how_many = np.bincount(np.bincount(value[first]))
    return {threads: values for threads, values in enumerate(how_many.tolist()) if values}


def block_loads(trace: TraceData, block: int) -> tuple[int, int]:
    """(loads of one block, loads of an untiled kernel for the same part of P)."""
    events = trace.events.where(trace.events.block == block)
    loads = len(events.of(EventKind.LOAD))
    if trace.run.shape is None:
        return loads, 0
    m, k, n = trace.run.shape
    stores = events.of(EventKind.STORE)
    inside = (stores.row >= 0) & (stores.row < m) & (stores.col >= 0) & (stores.col < n)
    return loads, int(np.count_nonzero(inside)) * 2 * k


def _counters(trace: TraceData, width: int, message: Message) -> list[str]:
    c = trace.counters
    names = ("loads", "fills", "stores", "uses", "barriers")
    lines = wrapped(message("table.grid", **{name: c.get(name, 0) for name in names}), width)
    if "loads without tiles" in c:
        lines.append("      " + message("table.without", loads=c.get("loads", 0), without=c["loads without tiles"]))
    for block in trace.blocks[:4]:
        loads, without = block_loads(trace, block)
        key = "table.block.without" if without else "table.block.loads"
        values = {"without": without} if without else {}
        lines.append(message(key, block=block_name(trace, block), loads=loads, **values))
    shared = uses_per_value(trace.events)
    if len(shared) == 1:
        lines.append(message("table.reuse", threads=next(iter(shared))))
    elif shared:
        parts = ", ".join(message("table.reuse.part", values=values, threads=n) for n, values in shared.items())
        lines += wrapped(message("table.reuse.many", parts=parts), width)
    return lines


def _findings(trace: TraceData, width: int, language: str) -> list[str]:
    lines = [summary([trace.run], language)]
    if trace.run.faults:
        lines += ["", *findings_text([trace.run], width, lang=language).split("\n")]
    return lines
