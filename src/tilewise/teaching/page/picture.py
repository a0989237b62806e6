"""One phase of one block as an SVG for slides, like the lecture's figure, from the trace alone."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path

from tilewise.errors import UsageError
from tilewise.i18n.messages import say
from tilewise.system.output import write_whole
from tilewise.teaching.page.replay import (
    FILLED,
    KINDS,
    SILENT,
    Cell,
    MemoryAccess,
    Replay,
    State,
    TileGeometry,
    geometry_of,
)
from tilewise.teaching.trace import Matrix, TraceData
from tilewise.teaching.trace.table import block_name, thread_name

CELL, GAP, LABEL, EDGE = 44, 34, 26, 18
SHARED_CELL = 60
MOST = 32  # largest number of rows or columns of a matrix in a picture

STYLE = """
text{font-family:system-ui,'Noto Sans','DejaVu Sans',sans-serif;fill:#1c2126}
.name{font-size:14px;font-weight:600;fill:#56606a}
.title{font-size:20px;font-weight:650}.small{font-size:11px;fill:#56606a}
.value{font-size:17px;font-weight:550;text-anchor:middle}.who{font-size:11px;text-anchor:middle;fill:#56606a}
.kind text{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.ground{fill:#f4f4f0}.grid{stroke:#c3c8c5;fill:none}.strip{fill:#e7ecef}
.tile{fill:none;stroke:#0b5c8f;stroke-width:2.5}
.loaded .tint{fill:#d3e7f5;stroke:#0072b2}.filled .tint{fill:#e9eaec;stroke:#5b6470}
.silent .tint{fill:#fde3b8;stroke:#b35c00}.outside .tint{fill:#f8dbe8;stroke:#a8326e}
.tint{stroke-width:1.5}.hatch{opacity:.5}
.reach{fill:none;stroke:#b35c00;stroke-width:2.6}.register{fill:#fff;stroke:#8a949c}.caption{font-size:14px}
"""
DEFS = """<defs>
<pattern id="t-filled" width="6" height="6" patternUnits="userSpaceOnUse"><circle cx="3" cy="3" r="1.1" fill="#5b6470"/></pattern>
<pattern id="t-silent" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="2.2" height="7" fill="#b35c00"/></pattern>
<pattern id="t-outside" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0H7M0 0V7" stroke="#a8326e" stroke-width="2"/></pattern>
<marker id="t-head" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="#b35c00"/></marker>
</defs>"""  # noqa: E501


def draw_phase(trace: TraceData, phase: int, block: int, language: str = "en") -> str:
    """The picture of a phase: tiles in M and N, shared memory after loading, registers after the phase."""
    return _Drawing(trace, phase, block, language).text()


def save_phases(trace: TraceData, folder: Path, language: str = "en") -> list[Path]:
    """Every phase of every recorded block, one file each."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for block in trace.blocks:
        name = block_name(trace, block, brief=True).replace(" ", "-")
        for phase in range(trace.phases):
            path = folder / f"block-{name}-phase-{phase}.svg"
            write_whole(path, draw_phase(trace, phase, block, language))
            made.append(path)
    return made


def number(value: float) -> str:
    if math.isnan(value):
        return "?"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.5g}".replace("-", "−") if abs(value) < 1e6 else f"{value:.3g}"


class _Drawing:
    def __init__(self, trace: TraceData, phase: int, block: int, language: str) -> None:
        if block not in trace.blocks:
            raise UsageError(f"block {block_name(trace, block)} was not recorded")
        if not 0 <= phase < trace.phases:
            raise UsageError(f"phase {phase} is not there: the run has phases 0 to {trace.phases - 1}")
        if set(trace.matrices) != {"M", "N", "P"}:
            raise UsageError("an SVG shows a product of two matrices, and this kernel is none")
        if max(max(m.values.shape) for m in trace.matrices.values()) > MOST:
            raise UsageError(f"an SVG shows matrices up to {MOST}x{MOST}: choose a smaller --shape, or use --html")
        self.trace, self.phase, self.language, self.block = trace, phase, language, block
        replay = Replay(trace, block)
        self.geometry: TileGeometry = geometry_of(replay)
        self.loads = [a for f in replay.frames if f.phase == phase for a in replay.accesses(f)]
        self.loaded: State = replay.state(replay.last_of(phase, "load"))
        self.after: State = replay.state(replay.last_of(phase))
        self.barriers = sorted(
            {int(replay.events.line[f.first]) for f in replay.frames if (f.stage, f.phase) == ("barrier", phase)}
        )
        self.parts: list[str] = []

    def say(self, key: str, **values: object) -> str:
        return escape(say(self.language, key, **values))

    def text(self) -> str:
        down, right = self._matrices(EDGE, EDGE + 48)
        bottom, side = self._shared(right + 46, EDGE + 48)
        height = max(down, bottom) + 16
        width = max(side, right, 560) + EDGE
        height = self._legend(height, width)
        title = self.say("svg.title", block=block_name(self.trace, self.block), phase=self.phase)
        run = self.trace.run
        name = escape(f"{run.entry}  {'×'.join(map(str, run.shape or ()))}  TILE_WIDTH {run.tile}")
        lines = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{title}" lang="{self.language}">',
            f"<title>{title}: {name}</title>",
            f"<style>{STYLE}</style>",
            DEFS,
            '<rect width="100%" height="100%" fill="#fff"/>',
            f'<text class="title" x="{EDGE}" y="{EDGE + 12}">{title}</text>',
            f'<text class="small" x="{EDGE}" y="{EDGE + 30}">{name}</text>',
            *self.parts,
            "</svg>\n",
        )
        return "\n".join(lines)

    def _extent(self, role: str) -> Cell:
        """Rows and columns to draw: the matrix, and the cells of tiles outside it."""
        matrix = self.trace.matrices[role]
        rows, cols = matrix.values.shape
        requested = [a.requested for a in self.loads if a.array == matrix.name]
        for shared, array in self.geometry.feeds.items():
            if array == matrix.name and self.phase in self.geometry.tiles[array]:
                top, left = self.geometry.tiles[array][self.phase]
                height, width = self.geometry.sizes[shared]
                requested.append((top + height - 1, left + width - 1))
        if role == "P" and self.geometry.rows and self.geometry.cols:
            requested.append((self.geometry.rows[-1], self.geometry.cols[-1]))
        return (
            max([rows, *(min(r + 1, 2 * MOST) for r, _ in requested)]),
            max([cols, *(min(c + 1, 2 * MOST) for _, c in requested)]),
        )

    def _matrices(self, x: float, y: float) -> tuple[float, float]:
        extent = {role: self._extent(role) for role in "MNP"}
        left, above = extent["M"][1] * CELL, extent["N"][0] * CELL
        x2, y2 = x + left + GAP, y + LABEL + above + GAP
        self._matrix("N", x2, y + LABEL)
        self._matrix("M", x, y2)
        self._matrix("P", x2, y2)
        rows, cols = max(extent["M"][0], extent["P"][0]), max(extent["N"][1], extent["P"][1])
        return y2 + rows * CELL, x2 + cols * CELL

    def _matrix(self, role: str, x: float, y: float) -> None:
        matrix = self.trace.matrices[role]
        rows, cols = matrix.values.shape
        self._rect(x, y, cols * CELL, rows * CELL, "ground")
        self._strip(role, x, y, rows, cols)
        lines = "".join(f"M{x} {y + r * CELL}h{cols * CELL}" for r in range(rows + 1))
        lines += "".join(f"M{x + c * CELL} {y}v{rows * CELL}" for c in range(cols + 1))
        self.parts.append(f'<path class="grid" d="{lines}"/>')
        for access, cell in self._accesses_of(matrix):
            self._mark(x + cell[1] * CELL, y + cell[0] * CELL, CELL, access.kind)
        self._values(role, matrix, x, y)
        self._outline(role, matrix, x, y)
        middle = CELL / 2
        for access, cell in self._accesses_of(matrix):
            if access.kind == SILENT and access.reached:
                start = (x + cell[1] * CELL + middle, y + cell[0] * CELL + middle)
                end = (x + (access.reached[1] + 0.8) * CELL, y + (access.reached[0] + 0.2) * CELL)
                bend = (
                    (start[0] + end[0]) / 2 - (end[1] - start[1]) * 0.18,
                    (start[1] + end[1]) / 2 + (end[0] - start[0]) * 0.18,
                )
                points = f"M{start[0]:g} {start[1]:g}Q{bend[0]:g} {bend[1]:g} {end[0]:g} {end[1]:g}"
                self.parts.append(f'<path class="reach" d="{points}" marker-end="url(#t-head)"/>')
        self.parts.append(f'<text class="name" x="{x:g}" y="{y - 8:g}">{escape(matrix.name)} {rows}×{cols}</text>')

    def _accesses_of(self, matrix: Matrix) -> list[tuple[MemoryAccess, Cell]]:
        """The phase's accesses of this matrix with their cells; a fill is at its tile's cell outside the matrix."""
        out = []
        for a in self.loads:
            array = self.geometry.feeds.get(a.target, "") if a.kind == FILLED else a.array
            if array != matrix.name:
                continue
            cell = a.requested
            if a.kind == FILLED and a.put:
                if self.phase not in self.geometry.tiles.get(array, {}):
                    continue
                top, left = self.geometry.tiles[array][self.phase]
                cell = (top + a.put[0], left + a.put[1])
            out.append((a, cell))
        return out

    def _strip(self, role: str, x: float, y: float, rows: int, cols: int) -> None:
        down = self.geometry.rows if role in "MP" else range(rows)
        across = self.geometry.cols if role in "NP" else range(cols)
        if down is None or across is None:
            return
        height, width = min(down.stop, rows) - down.start, min(across.stop, cols) - across.start
        if height > 0 and width > 0:
            self._rect(x + across.start * CELL, y + down.start * CELL, width * CELL, height * CELL, "strip")

    def _values(self, role: str, matrix: Matrix, x: float, y: float) -> None:
        rows, cols = matrix.values.shape
        for r in range(rows):
            for c in range(cols):
                stored = self.after.stored.get((r, c))
                if role == "P" and stored is None:
                    continue
                value = stored.value if role == "P" and stored else float(matrix.values[r, c])
                self._number(value, x + c * CELL + CELL / 2, y + r * CELL + CELL / 2 + 6, CELL)

    def _outline(self, role: str, matrix: Matrix, x: float, y: float) -> None:
        g = self.geometry
        if role == "P" and g.rows and g.cols:
            self._rect(x + g.cols[0] * CELL, y + g.rows[0] * CELL, len(g.cols) * CELL, len(g.rows) * CELL, "tile", 5)
        for shared, array in g.feeds.items():
            if array == matrix.name and self.phase in g.tiles[array]:
                (top, left), (height, width) = g.tiles[array][self.phase], g.sizes[shared]
                self._rect(x + left * CELL, y + top * CELL, width * CELL, height * CELL, "tile", 5)

    def _shared(self, x: float, y: float) -> tuple[float, float]:
        """Draw the shared tiles and the threads' registers; returns the bottom and the right end."""
        side, bottom = x, y
        if self.geometry.sizes:
            self.parts.append(f'<text class="name" x="{x:g}" y="{y:g}">{self.say("svg.shared")}</text>')
        top, left = y + LABEL + 10, x
        for name, (rows, cols) in self.geometry.sizes.items():
            size = SHARED_CELL if cols <= 8 else CELL
            self.parts.append(f'<text class="name" x="{left:g}" y="{top - 8:g}">{escape(name)}</text>')
            self._rect(left, top, cols * size, rows * size, "ground")
            for (r, c), held in sorted(self.loaded.shared.get(name, {}).items()):
                at = (left + c * size, top + r * size)
                self._mark(*at, size, held.kind, self._cell_text(held.value, held.thread, *at, size))
            self._rect(left, top, cols * size, rows * size, "tile", 5)
            bottom, side = max(bottom, top + rows * size), max(side, left + cols * size)
            left += cols * size + 24
        return self._registers(x, bottom + 40, side)

    def _cell_text(self, value: float, thread: int, x: float, y: float, size: int) -> str:
        who = f'<text class="who" x="{x + size / 2:g}" y="{y + size - 7:g}">← {self._thread(thread)}</text>'
        return self._shown(value, x + size / 2, y + size / 2 + 2, size) + (who if size >= 56 else "")

    def _registers(self, x: float, y: float, side: float) -> tuple[float, float]:
        names = list(dict.fromkeys(n for n, _ in self.after.sums))
        wide, tall, _ = self.trace.run.block
        if names and wide <= 16 and wide * tall <= 256:
            self.parts.append(
                f'<text class="name" x="{x:g}" y="{y:g}">{self.say("svg.registers", register=names[0])}</text>'
            )
            for thread in range(wide * tall):
                at = (x + (thread % wide) * 66, y + 12 + (thread // wide) * 46)
                self._rect(*at, 60, 40, "register", 7)
                self.parts.append(
                    f'<text class="who" x="{at[0] + 30:g}" y="{at[1] + 13:g}">{self._thread(thread)}</text>'
                )
                value = self.after.sums.get((names[0], thread))
                self._number(float("nan") if value is None else value, at[0] + 30, at[1] + 32, 56)
            y, side = y + 12 + tall * 46, max(side, x + wide * 66, x + 300)
        lines = (
            self.say("svg.lines", lines=", ".join(map(str, self.barriers)))
            if self.barriers
            else self.say("svg.nobarrier")
        )
        fills = sum(a.kind == FILLED for a in self.loads)
        counts = self.say("svg.counts", loads=sum(a.kind != FILLED and a.target != "" for a in self.loads), fills=fills)
        self.parts.append(f'<text class="caption" x="{x:g}" y="{y + 24:g}">{counts}</text>')
        self.parts.append(f'<text class="caption" x="{x:g}" y="{y + 46:g}">{lines}</text>')
        return y + 52, max(side, x + 290)

    def _legend(self, y: float, width: float) -> float:
        """Draw the legend of the four kinds in as many columns as fit; returns the picture's height."""
        columns = max(1, int((width - EDGE) // 430))
        for i, kind in enumerate(KINDS):
            at = (EDGE + (i % columns) * 430, y + (i // columns) * 26)
            self._mark(*at, 18, kind)
            self.parts.append(
                f'<text class="caption" x="{at[0] + 26:g}" y="{at[1] + 14:g}">{self.say("legend." + kind)}</text>'
            )
        return y + -(-len(KINDS) // columns) * 26 + 8

    def _thread(self, thread: int) -> str:
        return thread_name(self.trace, thread, brief=True)

    def _rect(self, x: float, y: float, width: float, height: float, name: str, round_: float = 0) -> None:
        corner = f' rx="{round_:g}"' if round_ else ""
        self.parts.append(f'<rect class="{name}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{corner}/>')

    def _mark(self, x: float, y: float, size: float, kind: str, inside: str = "") -> None:
        frame = f'x="{x + 1.5:g}" y="{y + 1.5:g}" width="{size - 3:g}" height="{size - 3:g}" rx="4"'
        hatch = f'<rect class="hatch" {frame} fill="url(#t-{kind})"/>' if kind != "loaded" else ""
        self.parts.append(f'<g class="kind {kind}"><rect class="tint" {frame}/>{hatch}{inside}</g>')

    def _shown(self, value: float, x: float, y: float, size: float) -> str:
        text = number(value)
        font = f' style="font-size:{size * 1.5 / len(text):.3g}px"' if len(text) > 4 else ""
        return f'<text class="value" x="{x:g}" y="{y:g}"{font}>{text}</text>'

    def _number(self, value: float, x: float, y: float, size: float) -> None:
        self.parts.append(self._shown(value, x, y, size))
