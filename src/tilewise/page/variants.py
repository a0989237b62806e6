"""What if: a rung of the ladder with one boundary check or one barrier taken out, as text → text.

The line stays where it was and says what it was, so line numbers agree between a rung and its variants.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations

CHECK, BARRIER = "check", "barrier"


@dataclass(frozen=True)
class Drop:
    """One thing that can be left out: `pattern` finds its line, the `nth` of those that fit."""

    name: str  # check-M, check-N, check-P, barrier-1, barrier-2
    pattern: str
    nth: int = 0

    @property
    def kind(self) -> str:
        return self.name.partition("-")[0]


_M = Drop("check-M", r"if \(row < m && phase \* TILE_WIDTH \+ tx < k\)")
_N = Drop("check-N", r"if \(phase \* TILE_WIDTH \+ ty < k && col < n\)")
_P = Drop("check-P", r"if \(row < m && col < n\)")
_LOADED = Drop("barrier-1", r"__syncthreads\(\);", 0)
_USED = Drop("barrier-2", r"__syncthreads\(\);", 1)

DROPS: dict[str, tuple[Drop, ...]] = {
    "naive": (Drop("check-P", r"if \(row >= m \|\| col >= n\) return;"),),
    "tiled": (_LOADED, _USED),
    "tiled_edges": (_M, _N, _P, _LOADED, _USED),
    "coarsened": (_M, _N, _P, _LOADED, _USED),
    "register_tiled": (
        Drop("check-M", r"if \(top \+ r < m && start \+ i \+ j < k\)"),
        Drop("check-N", r"if \(start \+ i < k && left \+ c \+ j < n\)"),
        _P,
        _LOADED,
        _USED,
    ),
}


def drops_of(kernel: str) -> tuple[Drop, ...]:
    return DROPS.get(kernel, ())


def line_of(text: str, drop: Drop) -> int:
    """The line, from 1, that a drop changes."""
    found = [i for i, line in enumerate(text.split("\n")) if re.search(drop.pattern, line)]
    if len(found) <= drop.nth:
        raise ValueError(f"{drop.name}: no line of the kernel reads {drop.pattern}")
    return found[drop.nth] + 1


def without(text: str, drops: tuple[Drop, ...]) -> str:
    """The kernel with these checks and barriers left out."""
    lines = text.split("\n")
    for drop, number in [(d, line_of(text, d)) for d in drops]:
        line = lines[number - 1]
        what = re.search(drop.pattern, line)
        assert what is not None
        keep = "if (true)" if drop.kind == CHECK and not what[0].endswith(";") else ""
        lines[number - 1] = f"{line[: what.start()]}{keep}{'  ' if keep else ''}// was: {what[0]}"
    return "\n".join(lines)


def combinations_of(drops: tuple[Drop, ...]) -> list[tuple[Drop, ...]]:
    """Each drop alone first, then two together, and so on to all of them."""
    return [some for size in range(1, len(drops) + 1) for some in combinations(drops, size)]
