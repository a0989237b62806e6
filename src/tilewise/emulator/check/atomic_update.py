"""The atomic function for a racing update: hist[b]++, *s = *s + x, if (x > *s) *s = x."""

from __future__ import annotations

import re

from tilewise.emulator.machine.findings import Finding

FUNCTIONS = {"+": "Add", "-": "Sub", "&": "And", "|": "Or", "^": "Xor", ">": "Max", "<": "Min"}


def atomic_update(finding: Finding) -> str:
    """The atomic call that replaces the update; '' if the line is no update of one cell, or also reads other cells,
    which needs a barrier."""
    place, other = finding.place, finding.other_place
    if place is None or (other is not None and other.line != place.line):
        return ""
    line = place.text.split("//")[0]
    cell = line[place.column - 1 : place.column - 1 + place.length].strip()
    target = re.escape(cell)
    if not cell:
        return ""
    if found := re.search(rf"([-+])\1\s*{target}|{target}\s*(?:([-+])\2|([-+&|^])=\s*([^;]*))", line):
        operator, value = found[1] or found[2] or found[3], found[4] or ""
    elif found := re.search(rf"{target}\s*=(?!=)\s*([^;]*)", line):
        operator, value = _store_operator(cell, found[1], line[: found.start()])
    else:
        return ""
    names = "|".join(map(re.escape, {finding.array, re.sub(r"\W.*", "", cell.lstrip("*( "))}))
    if operator not in FUNCTIONS or re.search(rf"\b({names})\b", value):
        return ""
    return f"atomic{FUNCTIONS[operator]}({cell[1:] if cell.startswith('*') else '&' + cell}, …)"


def _store_operator(cell: str, value: str, before: str) -> tuple[str, str]:
    """`cell = value` as an operator and its other operand; `before` may hold the condition of the store."""
    rest = value.replace(cell, "", 1).strip()
    if rest != value.strip() and (chosen := re.search(r"(max|min)", rest)):
        return {"max": ">", "min": "<"}[chosen[1]], rest
    if rest != value.strip():
        return rest[:1], rest[1:]
    compared = re.search(rf"if\s*\(.*([<>])=?\s*{re.escape(cell)}", before)
    return (compared[1], "") if compared else ("", "")
