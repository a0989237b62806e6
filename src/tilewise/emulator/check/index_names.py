"""The program's names for hints: in `P[Row * Width + Col]` the row is Row, the column Col, the stride Width."""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.emulator.check.binding import Bound
from tilewise.emulator.source.lexer import closing
from tilewise.emulator.source.source import Place


@dataclass(frozen=True)
class Index:
    row: str
    column: str
    stride: str = ""  # what the row is multiplied by; empty for [row][column]


def index_at(place: Place | None, sizes: set[str]) -> Index | None:
    """Row and column of the subscript at a place; None if they cannot be distinguished."""
    if place is None:
        return None
    text = place.text[place.column - 1 :]
    inside = _brackets(text)
    if not inside:
        return None
    if len(inside) >= 2:
        return Index(inside[0].strip(), inside[1].strip())
    terms = _split(inside[0], "+")
    for i, term in enumerate(terms):
        factors = [f.strip() for f in _split(term, "*")]
        strides = [f for f in factors if f in sizes]
        if len(strides) == 1 and len(factors) >= 2:
            factors.remove(strides[0])
            row = " * ".join(factors)
            rest = [t.strip() for j, t in enumerate(terms) if j != i]
            if rest and row:
                return Index(_bare(row), _bare(" + ".join(rest)), strides[0])
    return None


def _bare(text: str) -> str:
    """The text without enclosing brackets, spaces normalised."""
    while text.startswith("(") and text.endswith(")") and closing(text, 0, "()") == len(text) - 1:
        text = text[1:-1].strip()
    return " ".join(text.split())


def _brackets(text: str) -> list[str]:
    """The first subscripts in a text: `a[i][j] = …` -> i, j."""
    start = text.find("[")
    out: list[str] = []
    while 0 <= start < len(text) and text[start] == "[":
        end = closing(text, start)
        if end == len(text):
            return []
        out.append(text[start + 1 : end])
        start = end + 1
    return out


def _split(text: str, operator: str) -> list[str]:
    parts, depth, last = [], 0, 0
    for i, ch in enumerate(text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(ch, 0)
        if ch == operator and depth == 0:
            parts.append(text[last:i])
            last = i + 1
    return [*parts, text[last:]]


def size_name(bound: Bound, value: int, preferred: str = "") -> str:
    """The kernel's name for a size of this value; the number if it has none."""
    names = [n for n, v in bound.sizes.items() if v == value] or [
        n for n, v in bound.symbols.items() if v == value and "." in n
    ]
    if preferred and bound.symbols.get(preferred) == value:
        return preferred
    return names[0] if names else str(value)
