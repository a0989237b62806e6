"""printf's formats."""

from __future__ import annotations

import re
from typing import Any

PART = re.compile(r"%([-+ #0]*)(\d+|\*)?(?:\.(\d+|\*))?(hh|h|ll|l|z|j|t|L)?([diouxXeEfFgGcsp%])")


def _whole(value: Any) -> int:
    """What * takes: a number that is none, or too large for an int, counts as 0."""
    try:
        return int(value) if abs(int(value)) < 1 << 31 else 0
    except (ValueError, OverflowError, TypeError):
        return 0


def formatted(pattern: str, values: list[Any]) -> str:
    """C's printf on scalars; what does not fit prints as it is."""
    rest = list(values)

    def one(match: re.Match[str]) -> str:
        flags, width, precision, _, kind = match.groups()
        if kind == "%":
            return "%"
        if width == "*":
            width = str(_whole(rest.pop(0))) if rest else ""
        if precision == "*":
            precision = str(max(0, _whole(rest.pop(0)))) if rest else ""
        if not rest:
            return match.group(0)
        value = rest.pop(0)
        if width and int(width) < 0:  # C: a flag -, and a width
            flags, width = f"{flags}-", str(-int(width))
        width = width if not width or int(width) < 1000 else "1000"
        precision = precision if precision is None or int(precision or 0) < 100 else "100"
        text = f"%{flags}{width or ''}{'.' + precision if precision is not None else ''}"
        try:
            if kind == "s":
                return (text + "s") % str(value)
            if kind == "c":
                return (text + "c") % chr(int(value) & 0x7F)
            if kind in "diu":
                return (text + "d") % int(value)
            if kind in "oxX":
                bits = int(value) & 0xFFFFFFFF if int(value) < 0 else int(value)
                return (text + kind) % bits
            if kind == "p":
                return "(pointer)"
            return (text + kind) % float(value)
        except (ValueError, OverflowError, TypeError):
            return str(value)

    return PART.sub(one, pattern)
