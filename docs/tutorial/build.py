"""The tutorial: texts in source/, one a language, with every figure and picture taken from a run.

python docs/tutorial/build.py            writes en.md, vi.md, pt.md and pictures/
python docs/tutorial/build.py --check    says what is out of date; exit 1 when something is
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import tilewise as tw
from tilewise.emulator.machine.findings import Finding, Kind
from tilewise.i18n.messages import REVIEWED
from tilewise.teaching.page.picture import draw_phase, number
from tilewise.teaching.page.variants import drops_of, without
from tilewise.teaching.page.views import Trace
from tilewise.teaching.trace.rungs import rung_text
from tilewise.teaching.trace.table import block_loads, uses_per_value

HERE = Path(__file__).parent
BENCHMARK = HERE.parent / "benchmarks" / "tiles.json"


def variant(shape: tuple[int, int, int], *names: str, semiring: str = "plus_times") -> Trace:
    """tiled_edges, TILE_WIDTH 2, without the checks and barriers named."""
    text = rung_text("tiled_edges", 2, semiring, "float32").text
    whole = tw.trace("tiled_edges", shape=shape, tile=2, blocks="all", semiring=semiring)
    drops = tuple(d for d in drops_of(whole) if d.name in names)
    return tw.trace(without(text, drops), shape=shape, tile=2, blocks="all", adversarial=True, semiring=semiring)


def runs() -> dict[str, Trace]:
    zero = rung_text("tiled_edges", 2, "min_plus", "float32").text
    zero = re.sub(r"#define (PAD_[MN]) .*", r"#define \1 0.0f", zero)
    return {
        "four": tw.trace("tiled_edges", shape=(4, 4, 4), tile=2, blocks="all"),
        "naive": tw.trace("naive", shape=(4, 4, 4), tile=2, blocks="all"),
        "three": tw.trace("tiled_edges", shape=(3, 3, 3), tile=2, blocks="all"),
        "unchecked": variant((3, 3, 3), "check-M", "check-N", "check-P"),
        "rectangle": tw.trace("tiled_edges", shape=(3, 5, 4), tile=2, blocks="all"),
        "shortest": tw.trace("tiled_edges", shape=(3, 3, 3), tile=2, blocks="all", semiring="min_plus"),
        "shortest_zero": tw.trace(zero, shape=(3, 3, 3), tile=2, blocks="all", semiring="min_plus"),
        "no_first": variant((4, 4, 4), "barrier-1"),
        "no_second": variant((4, 4, 4), "barrier-2"),
    }


PICTURES = {  # name: (run, block, phase)
    "four-phase-0": ("four", 0, 0),
    "four-phase-1": ("four", 0, 1),
    "three-phase-1": ("three", 0, 1),
    "three-block-1-1": ("three", 3, 0),
    "three-unchecked": ("unchecked", 0, 1),
    "rectangle": ("rectangle", 0, 2),
    "shortest": ("shortest", 0, 1),
}


def facts(made: dict[str, Trace]) -> dict[str, object]:
    """Every figure that the texts name."""
    out: dict[str, object] = {}
    for name in ("four", "three", "rectangle", "naive", "unchecked"):
        run = made[name].run
        out |= {f"{name}_{key}": run.counters.get(key, 0) for key in ("loads", "fills", "stores", "phases")}
        out[f"{name}_without"] = run.counters["loads without tiles"]
        out[f"{name}_blocks"] = run.grid[0] * run.grid[1]
        out[f"{name}_threads"] = out[f"{name}_blocks"] * run.block[0] * run.block[1]  # type: ignore[operator]
    out["four_block_loads"], out["four_block_without"] = block_loads(made["four"], 0)
    (out["four_readers"],) = uses_per_value(made["four"].events)
    out["four_ratio"] = number(made["four"].counters["loads without tiles"] / made["four"].counters["loads"])
    for array in "MNP":
        for kind, prefix in ((Kind.SILENT_OVERRUN, "silent"), (Kind.OUT_OF_BOUNDS, "outside")):
            out[f"{prefix}_{array}"] = sum(f.count for f in found(made["unchecked"], kind) if f.array == array)
    for name in ("no_first", "no_second"):
        races = found(made[name], Kind.RACE)
        shown = next((f.wrong for f in races if f.wrong), None)
        out[f"{name}_races"] = sum(f.count for f in races)
        out[f"{name}_hazard"] = races[0].hazard
        out[f"{name}_cells"] = shown.cells if shown else 0
        if shown:
            out[f"{name}_cell"] = f"P[{shown.cell[0]}][{shown.cell[1]}]"
            out[f"{name}_held"], out[f"{name}_expected"] = number(shown.held), number(shown.expected)
    (wrong,) = found(made["shortest_zero"], Kind.WRONG_PRODUCT)
    assert wrong.wrong is not None
    out |= {"zero_cells": wrong.wrong.cells, "zero_cell": f"P[{wrong.wrong.cell[0]}][{wrong.wrong.cell[1]}]"}
    out |= {"zero_held": number(wrong.wrong.held), "zero_expected": number(wrong.wrong.expected)}
    out["line_load"] = next(int(line) for line in made["three"].events.line)
    return out


def found(made: Trace, kind: Kind) -> list[Finding]:
    return [f for f in made.findings if f.kind is kind]


def speeds() -> list[tuple[int, int, float]]:
    """TILE_WIDTH, loads of a traced 16x16 product, and TFLOP/s measured at 4096³."""
    rows = json.loads(BENCHMARK.read_text(encoding="utf-8"))["rows"]
    measured = {r["tile"]: r["tflops"] for r in rows if r["kernel"] == "tiled_edges" and r["shape"] == [4096] * 3}
    out = []
    for tile in sorted(measured):
        loads = tw.trace("tiled_edges", shape=(32, 32, 32), tile=tile).counters["loads"]
        out.append((tile, loads, measured[tile]))
    return out


def build() -> dict[Path, str]:
    """Every file of the tutorial with its text."""
    made = runs()
    values = facts(made)
    rows = "\n".join(f"| {tile} | {loads} | {speed:.2f} |" for tile, loads, speed in speeds())
    out: dict[Path, str] = {}
    for language in REVIEWED:
        for name, (run, block, phase) in PICTURES.items():
            out[HERE / "pictures" / language / f"{name}.svg"] = draw_phase(made[run], phase, block, language)
        text = (HERE / "source" / f"{language}.md").read_text(encoding="utf-8")
        text = re.sub(r"\{\{(\w+)\}\}", lambda m: rows if m[1] == "speeds" else str(values[m[1]]), text)
        out[HERE / f"{language}.md"] = text
    return out


def main(arguments: list[str]) -> int:
    wanted = build()
    old = [p for p, text in wanted.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for path in old:
            print(f"out of date: {path.relative_to(HERE)}", file=sys.stderr)
        return 1 if old else 0
    for path in old:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
        print(path.relative_to(HERE))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
