"""A memory budget: 16GB, 512 MiB, 0.5TB, or a number of bytes."""

from __future__ import annotations

import re

from tilewise.errors import UsageError

UNITS = {"": 1, "B": 1} | {
    f"{prefix}{suffix}": base**power
    for power, prefix in enumerate("KMGTP", 1)
    for suffix, base in (("", 1000), ("B", 1000), ("IB", 1024))
}


def budget(memory: object, name: str = "memory") -> int:
    """Bytes, from an int or a string such as "1GB" (10⁹) or "1GiB" (2³⁰)."""
    if isinstance(memory, int) and not isinstance(memory, bool) and memory > 0:
        return memory
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z]*)\s*", memory) if isinstance(memory, str) else None
    if found and found[2].upper() in UNITS and float(found[1]) * UNITS[found[2].upper()] >= 1:
        return int(float(found[1]) * UNITS[found[2].upper()])
    raise UsageError(f"{name}={memory!r} is no amount of memory: write bytes, or a string such as '512MB' or '16GiB'")
