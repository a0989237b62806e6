"""The diagrams of the pages on kernels and programs: `python docs/making/diagrams.py` writes docs/pictures/*.svg.
The rows of the alignment diagram are computed from a stride.
"""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[1]
FOLDER = DOCS / "pictures"
BLUE, GREEN, RED, GREY = "#0072b2", "#00694d", "#a3320b", "#56606a"
CLASS_COLOURS = ("#0072b2", "#e69f00", "#00694d", "#cc79a7", "#56b4e9", "#a3320b", "#8a8d2a", "#6a51a3")
STYLE = """
text { font: 600 14px system-ui, 'Segoe UI', 'Noto Sans', sans-serif; fill: #1c2126; }
.small { font-weight: 400; font-size: 12.5px; fill: #56606a; }
.middle { text-anchor: middle; } .end { text-anchor: end; }
.white { fill: #ffffff; } .box { fill: #ffffff; stroke: #c3c8c5; stroke-width: 1.5; }
.arrow { stroke: #56606a; stroke-width: 1.6; fill: none; marker-end: url(#head); }
"""
HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 8 4 0 8z" fill="#56606a"/></marker></defs>'
)


def text(x: float, y: float, content: str, style: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{style}">{content}</text>'


def rect(x: float, y: float, width: float, height: float, fill: str, opacity: float = 1) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{fill}" '
        f'fill-opacity="{opacity:g}"/>'
    )


def box(x: float, y: float, width: float, title: str, *notes: str) -> str:
    """A box with a title and notes below it, as high as its notes need."""
    height = 30 + 17 * len(notes)
    out = f'<rect class="box" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'
    out += text(x + width / 2, y + 20, title, "middle")
    return out + "".join(text(x + width / 2, y + 39 + 17 * i, note, "small middle") for i, note in enumerate(notes))


def arrow(*points: tuple[float, float]) -> str:
    return '<path class="arrow" d="M' + " L".join(f"{x:g} {y:g}" for x, y in points) + '"/>'


def picture(width: int, height: int, label: str, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{label}"><style>{STYLE}</style>{HEAD}'
        f'<rect width="{width}" height="{height}" rx="14" fill="#fbfaf7"/>{body}</svg>\n'
    )


def program() -> str:
    """What `tilewise run` does with a program."""
    body = box(20, 90, 130, "program.cu", "and its files")
    body += box(200, 90, 150, "front end", "C++ and CUDA C", "to typed syntax")
    body += box(410, 30, 200, "host code", "LLVM, every access", "against shadow memory")
    body += box(410, 150, 200, "kernels", "by expected work")
    body += box(690, 106, 240, "interpreter", "all threads of a block in NumPy", "every check, races included")
    body += box(690, 206, 240, "compiled", "4 to 16 threads as vector lanes", "addresses and first values checked")
    body += arrow((150, 113), (198, 113)) + arrow((350, 108), (380, 108), (380, 60), (408, 60))
    body += arrow((350, 124), (380, 124), (380, 174), (408, 174)) + arrow((510, 94), (510, 148))
    body += text(518, 126, "launch", "small")
    body += arrow((610, 168), (650, 168), (650, 138), (688, 138)) + arrow(
        (610, 182), (650, 182), (650, 238), (688, 238)
    )
    body += f'<rect x="396" y="14" width="548" height="268" rx="12" fill="none" stroke="{RED}" stroke-dasharray="6 4"/>'
    body += text(670, 40, "sandboxed process")
    body += text(670, 60, "seccomp, Landlock, time, memory", "small")
    body += box(20, 210, 330, "parent process", "opens files, checks the report, prints findings by line")
    body += arrow((396, 233), (352, 233))
    return picture(960, 300, "From a CUDA program to its findings", body)


def pipeline() -> str:
    """The phases of mma_sync over time: copies run two phases ahead, fragments one step ahead."""
    left, top, step, height = 170, 56, 120, 30
    rows = ("cp.async", "ldmatrix", "mma.sync")
    body = "".join(text(left - 12, top + 20 + 46 * i, name, "end") for i, name in enumerate(rows))
    body += text(20, 28, "time →", "small")
    for phase in range(4):
        colour = (BLUE, GREEN, RED, GREY)[phase]
        x = left + step * phase
        body += rect(x, top, step * 0.96, height, colour, 0.85)
        body += text(x + step * 0.48, top + 20, f"phase {phase}", "middle white")
        for part in range(4):  # a phase is four steps of fragments; each is read one step before it is multiplied
            piece = step / 4
            at = left + step * (phase + 2) + piece * part
            body += rect(at - piece, top + 46, piece * 0.9, height, colour, 0.55)
            body += rect(at, top + 92, piece * 0.9, height, colour, 0.85)
    for phase in range(2, 6):
        x = left + step * phase - step / 4
        body += f'<path d="M{x:g} {top - 8} V{top + 128}" stroke="#1c2126" stroke-dasharray="3 3"/>'
    body += text(left + step * 2 - step / 4, top + 146, "one barrier a phase, before its last step", "small")
    return picture(920, 226, "Copies two phases ahead, fragments one step ahead, one barrier a phase", body)


def alignment(stride: int = 19, rows: int = 10, columns: int = 19) -> str:
    """Where rows of 16-bit elements start relative to 16-byte boundaries, for an odd stride."""
    cell, left, top = 17, 150, 50
    body = text(20, 28, f"rows of {stride} half-precision elements; the vertical lines are 16-byte boundaries")
    for row in range(rows):
        late = row * stride % 8  # elements after a boundary
        colour = CLASS_COLOURS[late]
        y = top + 24 * row
        body += text(left - 14, y + 14, f"row {row}: {2 * late} bytes late", "small end")
        for column in range(columns):
            body += rect(left + (late + column) * cell, y, cell - 2, 18, colour, 0.8 if row in (0, 8, 1, 9) else 0.35)
    for boundary in range(4):
        x = left + 8 * cell * boundary - 1
        body += f'<path d="M{x} {top - 8} V{top + 24 * rows + 4}" stroke="#1c2126" stroke-width="1.3"/>'
    x = left + 8 * cell * 4 + 16
    body += text(x, top + 14, "rows 0 and 8, 1 and 9, …")
    body += text(x, top + 34, "start equally late: one class.", "small")
    body += text(x, top + 54, "A tile that takes rows of one class", "small")
    body += text(x, top + 72, "shifts all of them alike, so one", "small")
    body += text(x, top + 90, "tensor map reads them unrealigned.", "small")
    return picture(960, top + 24 * rows + 24, "Eight alignment classes of rows with an odd stride", body)


def proof() -> str:
    """One generic thread's load, the question that is asked of it, and the intervals between barriers."""
    side, left, top = 176, 110, 66
    row, column, cell = 104, 118, 16
    body = text(left, 34, "one thread stands for all") + text(left, 52, "M, Width x Width", "small")
    body += f'<rect class="box" x="{left}" y="{top}" width="{side}" height="{side}"/>'
    body += rect(left, top + row, side, cell, BLUE, 0.16) + rect(left + side, top + row, 46, cell, RED, 0.3)
    body += rect(left + column, top + row, cell, cell, BLUE)
    body += text(left - 10, top + row + 13, "q", "end") + text(left + column + 4, top - 6, "r")
    body += text(left + side + 52, top + row - 4, "r &gt;= Width:", "small")
    body += text(left + side + 52, top + row + 13, "the next row", "small")
    body += text(left, top + side + 24, "q = 16 by + ty,  0 &lt;= ty &lt; 16")
    body += text(left, top + side + 44, "r = 16 t + tx,  0 &lt;= tx &lt; 16")
    x = 470
    body += box(x, 24, 460, "the checks in the program", "q &lt; Width   and   r &lt; Width")
    body += arrow((x + 230, 71), (x + 230, 92))
    body += box(x, 94, 460, "the question to the solver", "some Width &gt;= 1, by, ty, t and tx with both checks",
                "and r &lt; 0, or r &gt;= Width?")  # fmt: skip
    answers = (
        ("no: proved", GREEN, "at every size"),
        ("yes: refuted", RED, "smallest Width first;", "the emulator runs it", "and sees the fault"),
        ("else: not decided", GREY, "with line and reason:", "data, time, or C that", "is not modelled"),
    )
    for i, (title, colour, *notes) in enumerate(answers):
        at = x + 157 * i
        body += arrow((at + 73, 158), (at + 73, 182)) + rect(at, 184, 146, 28, colour)
        body += text(at + 73, 203, title, "middle white")
        body += "".join(text(at + 73, 230 + 17 * k, note, "small middle") for k, note in enumerate(notes))
    steps, begin, width, y = ("store", "read", "store", "read"), 150, 170, 348
    body += text(20, y - 36, "two threads of a block: what may happen at one time is what no barrier parts")
    for i, step in enumerate(steps):
        at, colour = begin + (width + 16) * i, (BLUE, GREEN)[i % 2]
        for k in range(2):
            body += rect(at, y + 34 * k, width, 26, colour, 0.85)
            body += text(
                at + width / 2, y + 34 * k + 18, f"{step} Mds, phase {'t' if i < 2 else 't + 1'}", "middle white"
            )
        if i:
            body += f'<path d="M{at - 8} {y - 10} V{y + 70}" stroke="#1c2126" stroke-width="2"/>'
            body += text(at - 8, y - 14, "ABA"[i - 1], "middle")
    body += text(begin - 12, y + 18, "thread 1", "end") + text(begin - 12, y + 52, "thread 2", "end")
    second = begin + width + 16
    body += (
        f'<path d="M{second} {y + 78} v8 H{second + 2 * width + 16} v-8" fill="none" stroke="{RED}" stroke-width="2"/>'
    )
    body += text(
        second + width + 8,
        y + 104,
        "one interval if barrier B is missing: same cell, two threads, one of them storing",
        "small middle",
    )
    return picture(960, y + 122, "A proof: the generic thread, its inequality and the intervals between barriers", body)


PICTURES = {"run": program, "proof": proof, "mma-pipeline": pipeline, "alignment-classes": alignment}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, make in PICTURES.items():
        target = FOLDER / f"{name}.svg"
        target.write_text(make(), encoding="utf-8")
        print(target.relative_to(DOCS.parent), f"{target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
