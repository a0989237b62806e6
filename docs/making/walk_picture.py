"""The moving picture of the README: `python docs/making/walk_picture.py` writes docs/page/walk.svg.

The 3x3 walk of the lecture notes with TILE_WIDTH 2, block after block: tiles come into shared memory, are multiplied,
P fills. Every number is a recorded run's; the frames are groups of one SVG that show themselves in turn.
"""

from __future__ import annotations

from pathlib import Path

import tilewise as tw
from tilewise.teaching.page.picture import number
from tilewise.teaching.page.recording import COURSE
from tilewise.teaching.page.replay import Replay, State, geometry_of

TARGET = Path(__file__).parents[1] / "page" / "walk.svg"
CELL, SECONDS = 34, 1.1
AT = {"N": (190, 40), "M": (40, 204), "P": (190, 204), "tileMs": (400, 90), "tileNs": (500, 90)}
COLOURS = {"M": "#0072b2", "N": "#00694d", "P": "#a3320b"}
STYLE = """
text { font: 600 14px system-ui, 'Segoe UI', 'Noto Sans', sans-serif; fill: #1c2126; text-anchor: middle; }
.name { text-anchor: start; fill: #56606a; font-size: 13px; } .say { text-anchor: start; font-size: 16px; }
.cell { fill: #f4f4f0; stroke: #c3c8c5; } .fill { fill: #e9eaec; stroke: #5b6470; stroke-dasharray: 3 2; }
.frame { visibility: hidden; }
"""


def cell(x: float, y: float, text: str, style: str = 'class="cell"') -> str:
    middle = f'<text x="{x + CELL / 2}" y="{y + CELL / 2 + 5}">{text}</text>' if text else ""
    return f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" {style}/>{middle}'


def grid(name: str, texts: dict[tuple[int, int], str], rows: int, cols: int, title: str = "") -> str:
    x, y = AT[name]
    label = f'<text class="name" x="{x}" y="{y - 8}">{title or name}</text>'
    return label + "".join(
        cell(x + c * CELL, y + r * CELL, texts.get((r, c), "")) for r in range(rows) for c in range(cols)
    )


def tile(name: str, row: int, col: int, colour: str) -> str:
    x, y = AT[name]
    return (
        f'<rect x="{x + col * CELL}" y="{y + row * CELL}" width="{2 * CELL}" height="{2 * CELL}" rx="5" '
        f'fill="{colour}" fill-opacity=".16" stroke="{colour}" stroke-width="3"/>'
    )


def shared(state: State) -> str:
    out = ""
    for name in ("tileMs", "tileNs"):
        x, y = AT[name]
        out += f'<text class="name" x="{x}" y="{y - 8}">{name}</text>'
        for r in range(2):
            for c in range(2):
                held = state.shared.get(name, {}).get((r, c))
                style = 'class="fill"' if held and held.kind == "filled" else 'class="cell"'
                out += cell(x + c * CELL, y + r * CELL, number(held.value) if held else "", style)
    return out


def frames(trace: tw.Trace) -> list[str]:
    values = {
        role: {(r, c): number(v) for r, row in enumerate(m.values.tolist()) for c, v in enumerate(row)}
        for role, m in trace.matrices.items()
    }
    stored: dict[tuple[int, int], str] = {}
    made = []
    for block in trace.blocks:
        replay = Replay(trace, block)
        place = geometry_of(replay)
        by, bx = divmod(block, trace.run.grid[0])
        steps = [(p, s) for p in range(trace.phases) for s in ("load", "use")] + [(trace.phases - 1, "store")]
        for phase, stage in steps:
            state = replay.state(replay.last_of(phase, stage))
            stored |= {at: number(a.value) for at, a in state.stored.items()}
            action = {"load": "load a tile of M and of N", "use": "multiply and add", "store": "write P"}[stage]
            title = f"phase {phase}: {action}" if stage != "store" else action
            text = f'<text class="say" x="360" y="40">block (x {bx}, y {by}), {title}</text>'
            body = grid("M", values["M"], 3, 3) + grid("N", values["N"], 3, 3) + grid("P", stored, 3, 3)
            if stage != "store":
                body += tile("M", *place.tiles["M"][phase], COLOURS["M"])
                body += tile("N", *place.tiles["N"][phase], COLOURS["N"])
            body += tile("P", 2 * by, 2 * bx, COLOURS["P"]) + shared(state)
            for thread in range(4):
                total = next((v for (_, t), v in state.sums.items() if t == thread), None)
                x, y = 400 + thread % 2 * 62, 220 + thread // 2 * CELL
                body += f'<rect x="{x}" y="{y}" width="58" height="{CELL - 4}" rx="8" fill="#fff" stroke="#c3c8c5"/>'
                body += f'<text x="{x + 29}" y="{y + 20}">{"" if total is None else number(total)}</text>'
            made.append(text + '<text class="name" x="400" y="212">registers</text>' + body)
    return made


def main() -> None:
    made = frames(tw.trace(COURSE, shape=(3, 3, 3), tile=2, blocks="all"))
    whole = SECONDS * len(made)
    groups = []
    for i, body in enumerate(made):
        start, end = i / len(made), (i + 1) / len(made)
        times = f"0;{start:.5f};{end:.5f}" if i else f"0;{end:.5f}"
        values = "hidden;visible;hidden" if i else "visible;hidden"
        show = (
            f'<animate attributeName="visibility" values="{values}" keyTimes="{times}" calcMode="discrete" '
            f'dur="{whole:.1f}s" repeatCount="indefinite"/>'
        )
        groups.append(f'<g class="frame">{show}{body}</g>')
    TARGET.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 330" width="700" height="330" role="img" '
        'aria-label="The 3x3 product in tiles of 2, block by block and phase by phase">'
        f'<style>{STYLE}</style><rect width="700" height="330" rx="14" fill="#fbfaf7"/>{"".join(groups)}</svg>\n',
        encoding="utf-8",
    )
    print(TARGET, f"{TARGET.stat().st_size:,} bytes, {len(made)} frames")


if __name__ == "__main__":
    main()
