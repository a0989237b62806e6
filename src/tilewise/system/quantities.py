"""Seconds, bytes and counts as text."""

from __future__ import annotations


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


def counted(count: int, noun: str) -> str:
    """ "1 phase", "2 phases"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
