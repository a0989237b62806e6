"""Seconds, bytes, counts, and the places of threads and blocks as text."""

from __future__ import annotations

from collections.abc import Iterable


def seconds(value: float) -> str:
    """A time with a suitable unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def size(count: float) -> str:
    """Bytes with a suitable unit."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"


def counted(count: int, noun: str, plural: str = "") -> str:
    """ "1 phase", "2 phases"; "2 axes" by its plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {plural or noun + 's'}"


def coordinates(name: Iterable[object], brief: bool = False) -> str:
    """Where a thread or a block is, in CUDA's order: (x 1, y 0); x1 y0 where a label has little room."""
    parts = [f"{axis}{'' if brief else ' '}{at}" for axis, at in zip("xyz", name, strict=False)]
    return " ".join(parts) if brief else f"({', '.join(parts)})"


def extent(sides: Iterable[int]) -> str:
    """The sides of a grid or of a block as text, x first: 256 × 1 × 1."""
    return " × ".join(map(str, sides))
