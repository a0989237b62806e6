"""The tuned table of a card: the fastest measured config for each class of shapes, and the cost model's errors.

The cost model is accurate to a few per cent. Among configs that it expects to be close, the table decides: it prefers
the config that `tilewise tune` measured as the fastest for this class. A config that the model expects to be much
slower for the given shape is never taken: another shape of the class may fill its waves differently.
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

JSON_VERSION = 2  # tables of version 1 have errors of another form and are ignored
CLOSE = 1.15  # configs whose expected times differ by no more than this factor are decided by measurement
WORTH = 1.01  # a measured gain below this is ignored


class NamedConfig(Protocol):
    """A config that a table can name."""

    def spec(self) -> str:
        """Its name, stable across versions."""


C = TypeVar("C", bound=NamedConfig)


@dataclass(frozen=True)
class TunedClass:
    """One measured class: its shape, the fastest config with its seconds, and the model's config with its seconds."""

    shape: tuple[int, int, int]
    spec: str
    seconds: float
    model_spec: str
    model_seconds: float

    @property
    def gain(self) -> float:
        return self.model_seconds / self.seconds if self.seconds else 1.0


class Fit(NamedTuple):
    """The fitted error of a kernel's expected times (`kernels/calibration.py`): weights of its terms, the least and the
    most that they make, and for each kind of element what is added: an offset, and a slope over the expected time."""

    weights: tuple[float, ...]
    least: float
    most: float
    kinds: Mapping[str, tuple[float, float]] = {}


@dataclass(frozen=True)
class TunedTable:
    """The measured classes of one card."""

    card: str
    entries: Mapping[str, TunedClass]
    fits: Mapping[str, Fit] = field(default_factory=dict)  # of the cost models, by kernel

    def measured(self, kind: str, shape: tuple[int, int, int]) -> bool:
        """Whether a class of this kernel and dtype has such sizes: a quick test before the whole key is built."""
        sizes = self.kinds.get(kind)
        return sizes is not None and octaves(shape) in sizes

    @cached_property
    def kinds(self) -> dict[str, set[str]]:
        """The sizes of the classes, by kernel and dtype."""
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
        fits = {key: {**x._asdict(), "kinds": dict(sorted(x.kinds.items()))} for key, x in sorted(self.fits.items())}
        return {"version": JSON_VERSION, "card": self.card, "classes": rows, "fits": fits}


def table_of(document: Any) -> TunedTable | None:
    """A table from its JSON; None where that is damaged or of another version: plans then use the model alone."""
    try:
        if document["version"] != JSON_VERSION:
            return None
        entries = {}
        for key, row in document["classes"].items():
            m, k, n = (int(extent) for extent in row["shape"])
            times = float(row["seconds"]), float(row["model_seconds"])
            entries[str(key)] = TunedClass((m, k, n), str(row["way"]), times[0], str(row["model_way"]), times[1])
        fits = {}
        for key, x in document.get("fits", {}).items():
            kinds = {str(name): (float(offset), float(slope)) for name, (offset, slope) in x["kinds"].items()}
            weights = tuple(float(weight) for weight in x["weights"])
            fits[str(key)] = Fit(weights, float(x["least"]), float(x["most"]), kinds)
        return TunedTable(str(document["card"]), entries, fits)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


HALVES = [f"{number / 2:g}" for number in range(2 * 64)]  # half octaves as text


def class_of(kernel: str, dtype: str, shape: tuple[int, int, int], layouts: str, aligned: bool) -> str:
    """The key of a class: shapes within half an octave of each other, with the same layouts."""
    return f"{kernel} {dtype} {layouts} {'aligned' if aligned else 'ragged'} 2^{octaves(shape)}"


def octaves(shape: tuple[int, int, int]) -> str:
    """Extents rounded to half an octave, as text."""
    return "x".join([HALVES[round(2 * math.log2(max(extent, 1)))] for extent in shape])


def preferred(timed: Sequence[tuple[float, int, C]], key: str, table: TunedTable | None) -> tuple[float, C, bool]:
    """(expected seconds, config, whether the table chose it) from (expected seconds, index, config)."""
    seconds, _, best = min(timed)
    entry = table.entries.get(key) if table else None
    if entry is not None and entry.gain >= WORTH and entry.spec != best.spec():
        for other, _, config in sorted(timed):
            if other <= CLOSE * seconds and config.spec() == entry.spec:
                return other, config, True
    return seconds, best, entry is not None and entry.spec == best.spec()


def slug(card: str) -> str:
    """A card's name as a file's: NVIDIA H200 → h200."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"nvidia|geforce|tesla", "", card.lower())).strip("-")


def table_for(card: str, folder: Path | None = None) -> TunedTable | None:
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
