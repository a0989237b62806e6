"""What was measured on a card, as a value the planner consults: classes of shapes → the way that was the fastest.

The model of a plan is good to some per cent. Where it calls two ways close, a table decides: it prefers the way that
`tilewise tune` found the fastest for a product of this class. It never takes a way that the model holds to be much
slower for the very shape at hand, since a neighbour in the class may fill its waves differently.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from tilewise.system.resources import shipped

JSON_VERSION = 1
CLOSE = 1.15  # ways whose expected times differ by no more are decided by measurement
WORTH = 1.01  # a way that won by less decides nothing


class Way(Protocol):
    """A way that a table can name."""

    def spec(self) -> str:
        """What it is, in a word that stays the same from version to version."""


W = TypeVar("W", bound=Way)


@dataclass(frozen=True)
class Entry:
    """One measured class: the shape it was measured at, the fastest way, its seconds and those of the model's way."""

    shape: tuple[int, int, int]
    spec: str
    seconds: float
    model_spec: str
    model_seconds: float

    @property
    def gain(self) -> float:
        return self.model_seconds / self.seconds if self.seconds else 1.0


class Line(NamedTuple):
    """How far a kernel's times of stacks are off (`stack_calibration.py`): a weight for each term, and within what."""

    weights: tuple[float, ...]
    least: float
    most: float


@dataclass(frozen=True)
class Table:
    """The measured classes of one card."""

    card: str
    entries: Mapping[str, Entry]
    errors: Mapping[str, tuple[float, int]] = field(default_factory=dict)  # of the model: mean log, and how often
    saved: float = 0.0  # seconds of a product, since the errors were measured: launches that start early
    stacks: Mapping[str, Line] = field(default_factory=dict)  # errors on stacks, by kernel and dtype

    def measured(self, kind: str, shape: tuple[int, int, int]) -> bool:
        """Whether any class of this kernel with a dtype is of such sizes: few are, and only then is it asked which."""
        sizes = self._sizes.get(kind)
        return sizes is not None and octaves(shape) in sizes

    @cached_property
    def _sizes(self) -> dict[str, set[str]]:
        """By kernel with a dtype, those of its classes."""
        found = defaultdict[str, set[str]](set)
        for key in self.entries:
            kind, _, sizes = key.rpartition(" 2^")
            found[" ".join(kind.split(" ")[:2])].add(sizes)
        return dict(found)

    def to_json(self) -> dict[str, Any]:
        rows = {
            key: {
                "shape": list(e.shape),
                "way": e.spec,
                "seconds": e.seconds,
                "model_way": e.model_spec,
                "model_seconds": e.model_seconds,
            }
            for key, e in sorted(self.entries.items())
        }
        errors = {key: [round(mean, 4), count] for key, (mean, count) in sorted(self.errors.items())}
        more: dict[str, Any] = {"saved": self.saved} if self.saved else {}
        if self.stacks:
            more["stacks"] = {key: [x.least, x.most, *x.weights] for key, x in sorted(self.stacks.items())}
        return {"version": JSON_VERSION, "card": self.card, "classes": rows, "errors": errors, **more}


def table_of(document: Any) -> Table | None:
    """A table from its JSON; None where that is of another version or damaged: it costs speed, never a product."""
    try:
        if document["version"] != JSON_VERSION:
            return None
        entries = {}
        for key, row in document["classes"].items():
            m, k, n = (int(extent) for extent in row["shape"])
            times = float(row["seconds"]), float(row["model_seconds"])
            entries[str(key)] = Entry((m, k, n), str(row["way"]), times[0], str(row["model_way"]), times[1])
        errors = {str(key): (float(mean), int(count)) for key, (mean, count) in document.get("errors", {}).items()}
        stacks = {}
        for key, (least, most, *weights) in document.get("stacks", {}).items():
            stacks[str(key)] = Line(tuple(float(w) for w in weights), float(least), float(most))
        return Table(str(document["card"]), entries, errors, float(document.get("saved", 0.0)), stacks)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


HALVES = [f"{number / 2:g}" for number in range(2 * 64)]  # of octaves, as they are written


def class_of(kernel: str, dtype: str, shape: tuple[int, int, int], layouts: str, aligned: bool) -> str:
    """Shapes of one class lie within half an octave of each other; operands lie alike."""
    return f"{kernel} {dtype} {layouts} {'aligned' if aligned else 'ragged'} 2^{octaves(shape)}"


def octaves(shape: tuple[int, int, int]) -> str:
    """Extents to half an octave, as a class has them."""
    return "x".join([HALVES[round(2 * math.log2(max(extent, 1)))] for extent in shape])


def preferred(timed: Sequence[tuple[float, int, W]], key: str, table: Table | None) -> tuple[float, W, bool]:
    """(expected seconds, way, whether the table chose it) of the ways with their expected seconds."""
    seconds, _, best = min(timed)
    entry = table.entries.get(key) if table else None
    if entry is not None and entry.gain >= WORTH and entry.spec != best.spec():
        for other, _, way in sorted(timed):
            if other <= CLOSE * seconds and way.spec() == entry.spec:
                return other, way, True
    return seconds, best, entry is not None and entry.spec == best.spec()


def slug(card: str) -> str:
    """A card's name as a file's: NVIDIA H200 → h200."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"nvidia|geforce|tesla", "", card.lower())).strip("-")


def table_for(card: str, folder: Path | None = None) -> Table | None:
    """The table in the user's folder, else the one that ships with the package, else None."""
    name = f"{slug(card)}.json"
    for place in (*(() if folder is None else (folder / "tuned",)), shipped("core/tuned")):
        try:
            found = table_of(json.loads(place.joinpath(name).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
        if found is not None:
            return found
    return None
