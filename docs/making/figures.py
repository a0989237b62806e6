"""The figures of README and guides, compared with the measurements they come from.

`docs/figures.toml` says which figure is which field of which row. `python docs/making/figures.py` updates them.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NUMBER = r"(\d+(?:,\d{3})*(?:\.\d+)?)"
UNITS = re.compile(r"TFLOP/s|GFLOP/s|TOP/s|GB/s|TB/s|steps/s|µs|\bms\b")
# a figure, and not the 4096 of 4096³, the 200 of H200, the 32 of float32 or the 16 of TILE_WIDTH 16
FIGURE = re.compile(r"(?<![\w.×³/-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w³×/-]|\.\d)")


@dataclass(frozen=True)
class Stale:
    document: str
    written: str
    measured: str
    start: int
    end: int


def measured(source: dict[str, Any]) -> float:
    """The field of the one row that the keys choose."""
    keys = {k: v for k, v in source.items() if k not in ("file", "field")}
    rows = json.loads((ROOT / "docs" / "benchmarks" / f"{source['file']}.json").read_text(encoding="utf-8"))["rows"]
    found = [row for row in rows if all(row.get(k) == v for k, v in keys.items())]
    if len(found) != 1:
        raise LookupError(f"{len(found)} rows of {source['file']}.json have {keys}, not one")
    return float(found[0][source["field"]])


def pattern(text: str) -> re.Pattern[str]:
    """A pattern that matches any whitespace between words; … matches one cell of a table."""
    made = re.escape(" ".join(text.split())).replace(r"\ ", r"\s+")
    return re.compile(made.replace("…", "[^|\n]*").replace(r"\{\}", NUMBER))


def claims() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((ROOT / "docs" / "figures.toml").read_text(encoding="utf-8"))["figure"]
    return found


def claimed(document: str, text: str) -> list[tuple[int, int, str, dict[str, Any]]]:
    """Every figure of a document that has a source: its span, its text, and the source."""
    out = []
    for claim in claims():
        if document not in claim["documents"]:
            continue
        match = pattern(claim["text"]).search(text)
        if match is None:
            raise LookupError(f"{document} has no {claim['text']!r}: docs/figures.toml")
        assert len(match.groups()) == len(claim["from"]), claim["text"]
        out += [(*match.span(i), match[i], source) for i, source in enumerate(claim["from"], 1)]
    return out


def stale(document: str, text: str) -> list[Stale]:
    """Figures that are not the measured ones, rounded as they are written."""
    out = []
    for start, end, written, source in claimed(document, text):
        places = len(written.partition(".")[2])
        value = f"{measured(source):,.{places}f}" if "," in written else f"{measured(source):.{places}f}"
        if value != written:
            out.append(Stale(document, written, value, start, end))
    return out


def unclaimed(document: str, text: str) -> list[str]:
    """Figures with a unit of speed or time (in the line, or in the head of the table) that no source is named for."""
    taken = [(start, end) for start, end, *_ in claimed(document, text)]
    out, at, head, code = [], 0, "", False
    for line in text.splitlines(keepends=True):
        code ^= line.startswith("```")
        head = (head or line) if line.startswith("|") else ""
        if not code and UNITS.search(line + head) and line != head:
            for match in FIGURE.finditer(line):
                where = at + match.start()
                unit = UNITS.match(line[match.end() :].lstrip())
                last = head and line[match.end() :].strip() == "|"  # the column that the head's unit is for
                if (unit or last) and not any(start <= where < end for start, end in taken):
                    out.append(f"{document}: {match[0]} in {line.strip()[:80]!r}")
        at += len(line)
    return out


def documents() -> list[str]:
    found = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").rglob("*.md"))]
    found += sorted((ROOT / "docs" / "students").glob("*.md"))
    return [path.relative_to(ROOT).as_posix() for path in found]


def main() -> int:
    for document in documents():
        path = ROOT / document
        text = path.read_text(encoding="utf-8")
        for one in sorted(stale(document, text), key=lambda s: -s.start):
            text = text[: one.start] + one.measured + text[one.end :]
            print(f"{document}: {one.written} -> {one.measured}")
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
