"""An assignment: sizes, tile, kernel, reference, and the points of each item. From TOML."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewise.algebra.builtin import find_semiring
from tilewise.core.problem import parse_shape
from tilewise.errors import FileError, ShapeError, UsageError
from tilewise.system.files import here

Shape = tuple[int, int, int]
MAX_BYTES = 1 << 20  # of an assignment
MOST_POINTS = 1_000_000
ITEMS = ("parses", "product", "faults", "traffic", "calls", "program")
KNOWN = (
    "title", "shapes", "tile", "kernel", "block", "grid", "reference", "points", "traffic", "forbidden", "defines",
    "arguments",
)  # fmt: skip


@dataclass(frozen=True)
class Assignment:
    """What a submission is graded by: every item that `points` names."""

    title: str = "matrix product"
    shapes: tuple[Shape, ...] = ((4, 4, 4), (6, 6, 6), (9, 9, 9))  # square: a course's kernel may take one size
    tile: int | None = None  # overrides the file's TILE_WIDTH
    kernel: str | None = None  # the __global__ function meant
    block: tuple[int, ...] | None = None
    grid: tuple[int, ...] | None = None
    reference: str = "plus_times"  # a semiring; FILE.py:FUNCTION; FILE.cu
    points: dict[str, float] = field(default_factory=lambda: {"parses": 1.0, "product": 5.0, "faults": 4.0})
    tiles_of: int | None = None  # the tile width whose traffic is the limit; by default `tile`
    forbidden: tuple[str, ...] = ()  # names that must not be called
    defines: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()  # of main, for the item "program"
    folder: Path = Path()  # of its file, and of the reference
    unsafe: bool = False  # run main even without a sandbox: an option of the command, never of the file

    @property
    def most(self) -> float:
        return sum(self.points.values())


def read_assignment(path: Path) -> Assignment:
    try:
        with os.fdopen(here().open(path), "rb") as file:  # a FIFO or a device would never end
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise FileError(f"{path} is larger than {MAX_BYTES >> 20} MiB, which is no assignment")
        table = tomllib.loads(data.decode())
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error
    except RecursionError:
        raise UsageError(f"{path} is not TOML that can be read: it is nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, UnicodeDecodeError, and int()'s for a number of thousands of digits
        raise UsageError(f"{path} is not TOML: {error}") from None
    _fits(table, path)
    return assignment_of(table, path)


def _fits(table: dict[str, Any], path: Path) -> None:
    """TOML's whole numbers have 64 bits; tomllib reads longer ones, which may be too long even to be printed."""
    left: list[Any] = [table]
    while left:
        value = left.pop()
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise UsageError(f"{path}: a whole number of {value.bit_length()} bits is too large; TOML's have 64")
        left += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def assignment_of(table: dict[str, Any], path: Path) -> Assignment:
    """Checks every key and its type; the error names the first that is wrong."""
    unknown = [key for key in table if key not in KNOWN]
    if unknown:
        raise UsageError(f"{path}: {unknown[0]!r} is not known; an assignment has {', '.join(KNOWN)}")
    points = table.get("points", Assignment().points)
    wrong = [key for key in points if key not in ITEMS] if isinstance(points, dict) else [points]
    if wrong:
        raise UsageError(f"{path}: points for {wrong[0]!r} are not known; there are {', '.join(ITEMS)}")
    for key, value in points.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_POINTS:
            raise UsageError(f"{path}: points.{key} must be a number from 0 to {MOST_POINTS:,}, not {value!r}")
    made = Assignment(
        title=_of(table, "title", str, path, Assignment.title),
        shapes=_shapes(_of(table, "shapes", list, path, []), path) or Assignment.shapes,
        tile=_of(table, "tile", int, path, None),
        kernel=_of(table, "kernel", str, path, None),
        block=_sizes(table, "block", path),
        grid=_sizes(table, "grid", path),
        reference=_of(table, "reference", str, path, "plus_times"),
        points={key: float(value) for key, value in points.items()},
        tiles_of=_of(table, "traffic", int, path, None),
        forbidden=tuple(str(name) for name in _of(table, "forbidden", list, path, [])),
        defines={str(k): str(v) for k, v in _of(table, "defines", dict, path, {}).items()},
        arguments=tuple(str(argument) for argument in _of(table, "arguments", list, path, [])),
        folder=path.parent,
    )
    _check_reference(made, path)
    return made


def _shapes(given: list[Any], path: Path) -> tuple[Shape, ...]:
    try:
        return tuple(parse_shape(str(text)) for text in given)
    except ShapeError as error:
        raise UsageError(f"{path}: {error}") from None


def _of(table: dict[str, Any], key: str, kind: type, path: Path, default: Any) -> Any:
    value = table.get(key, default)
    if value is not default and (not isinstance(value, kind) or isinstance(value, bool)):
        raise UsageError(f"{path}: {key} must be {_TYPE_NAMES[kind]}, not {value!r}")
    return value


_TYPE_NAMES = {str: "a text", int: "a whole number", list: "a list", dict: "a table"}


def _sizes(table: dict[str, Any], key: str, path: Path) -> tuple[int, ...] | None:
    value = _of(table, key, list, path, None)
    if value is None:
        return None
    if not 1 <= len(value) <= 3 or not all(isinstance(v, int) and v > 0 for v in value):
        raise UsageError(f"{path}: {key} must be up to three whole numbers such as [16, 16], not {value!r}")
    return tuple(value)


def _is_beside(folder: Path, name: str) -> bool:
    try:
        return (folder / name).is_file()
    except (OSError, ValueError):  # a name too long for the system, or with a zero byte
        return False


def _check_reference(made: Assignment, path: Path) -> None:
    file = made.reference.partition(":")[0]
    if file.endswith((".py", ".cu")):
        if not _is_beside(made.folder, file):
            raise UsageError(f"{path}: the reference {file} is not beside it")
        if file.endswith(".py") and not made.reference.partition(":")[2]:
            raise UsageError(f"{path}: the reference must be {file}:FUNCTION, a function of M and N that gives P")
    else:
        find_semiring(made.reference)
