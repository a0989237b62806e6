"""An assignment, read from TOML: the points of each item, what its kernels compute and what its program does.

Kernels with roles (M, N, P) run on the grader's data: the items `product` and `traffic`. A program runs unchanged,
once per `[[test]]`, and its output is compared. One assignment may have both.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewise.algebra.builtin import find_semiring
from tilewise.core.problem import parse_shape
from tilewise.emulator.machine.findings import COSTS, Kind
from tilewise.errors import FileError, ShapeError, UsageError
from tilewise.scale.budget import budget
from tilewise.system.files import here

Shape = tuple[int, int, int]
Text = str | Mapping[str, str]  # a text, or one for each language
MAX_BYTES = 1 << 20  # of an assignment's file
MOST_POINTS = 1_000_000
ROLES = ("product", "traffic", "proof")  # items for kernels with parameters M, N and P
UNCOUNTED = tuple(str(kind) for kind in COSTS - {Kind.LEAK})  # by runs of whole programs
KINDS = tuple(str(kind) for kind in Kind)
ITEMS = ("parses", "product", "faults", "traffic", "proof", "calls", "program", "kernels", *KINDS)
TYPE_NAMES = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}
EXPECTATIONS = ("expected", "expected_file", "reference", "property")


@dataclass(frozen=True)
class Test:
    """One run of the program, and its expected result."""

    __test__ = False  # no class of pytest's

    name: str
    points: float = 0.0
    arguments: tuple[str, ...] = ()  # {seed} is the grading's seed
    stdin: str = ""
    stdin_file: str = ""
    inputs: tuple[
        str, ...
    ] = ()  # files beside the assignment, or FILE.py:FUNCTION of the seed that gives {name: bytes}
    expected: str | None = None
    expected_file: str = ""
    reference: str = ""  # FILE.cu, run with the same input
    property: str = ""  # FILE.py:FUNCTION of the output
    output: str = ""  # the file that the program writes; by default its stdout
    dtype: str = ""  # of the numbers in a binary output
    tolerance: float = 0.0  # relative and absolute; 0: all tokens of a text must be equal
    partial: bool = False  # points in proportion to the right share
    status: int = 0
    seconds: float | None = None
    memory: int | None = None
    hidden: bool = False  # reports omit the expected values and the program's
    title: Text = ""
    message: Text = ""  # the lecturer's text if the test fails


@dataclass(frozen=True)
class Assignment:
    """An assignment: the items that `points` names, and the tests."""

    title: str = "matrix product"
    points: dict[str, float] = field(default_factory=lambda: {"parses": 1.0, "product": 5.0, "faults": 4.0})
    tests: tuple[Test, ...] = ()
    shapes: tuple[Shape, ...] = ((4, 4, 4), (6, 6, 6), (9, 9, 9))  # square: a course's kernel may take one size
    tile: int | None = None  # overrides the file's TILE_WIDTH
    kernel: str | None = None  # the __global__ function to grade
    block: tuple[int, ...] | None = None
    grid: tuple[int, ...] | None = None
    reference: str = "plus_times"  # a semiring; FILE.py:FUNCTION; FILE.cu
    tiles_of: int | None = None  # the tile width whose traffic is the limit; by default `tile`
    forbidden: tuple[str, ...] = ()  # names that must not be called
    required: tuple[str, ...] = ()  # names that must be called
    kernels: tuple[str, ...] = ()  # kernels that every run must launch
    provided: tuple[str, ...] = ()  # files beside the assignment that replace a submission's: a main, a header
    defines: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()  # of main, if there is no test
    seconds: float = 10.0  # of CPU time, for each run of the program
    memory: int = 1 << 30
    folder: Path = Path()  # of its file, and of the files that it names
    unsafe: bool = False  # run main even without a sandbox: an option of the command, never of the file

    @property
    def most(self) -> float:
        return sum(self.items.values())

    @property
    def items(self) -> dict[str, float]:
        """The points of every item and test, in the order of the report."""
        return self.points | {test.name: test.points for test in self.tests}

    @property
    def has_roles(self) -> bool:
        return any(key in self.points for key in ROLES)

    @property
    def runs(self) -> tuple[Test, ...]:
        """The runs of the program that its items need."""
        if self.tests:
            return self.tests
        program = [
            key for key in self.points if key in ("program", "kernels") or (not self.has_roles and key != "calls")
        ]
        return (Test("program", arguments=self.arguments),) if program else ()

    def titled(self, item: str, language: str) -> str:
        """The lecturer's name for a test; empty for other items."""
        return next((in_language(t.title, language) or t.name for t in self.tests if t.name == item), "")


def in_language(text: Text, language: str) -> str:
    if isinstance(text, str):
        return text
    return text.get(language) or text.get("en") or next(iter(text.values()), "")


def read_table(path: Path) -> dict[str, Any]:
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
    _check_integers(table, path)
    return table


def read_assignment(path: Path) -> Assignment:
    return assignment_of(read_table(path), path)


def _check_integers(table: dict[str, Any], path: Path) -> None:
    """Refuse integers of more than TOML's 64 bits, which tomllib accepts."""
    left: list[Any] = [table]
    while left:
        value = left.pop()
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise UsageError(f"{path}: a whole number of {value.bit_length()} bits is too large; TOML's have 64")
        left += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


class _Reader:
    """The checked keys of one table; the error names the first invalid one."""

    def __init__(self, table: dict[str, Any], path: Path, prefix: str = "") -> None:
        self.table, self.path, self.prefix = table, path, prefix

    def fail(self, key: str, text: str) -> UsageError:
        return UsageError(f"{self.path}: {self.prefix}{key} {text}")

    def known(self, keys: Mapping[str, object], what: str) -> None:
        unknown = [key for key in self.table if key not in keys]
        if unknown:
            raise UsageError(f"{self.path}: {unknown[0]!r} is not known; {what} has {', '.join(keys)}")

    def value(self, key: str, kind: Any) -> Any:
        """The value of a present key, checked and converted for its field."""
        value = self.table[key]
        if callable(kind) and not isinstance(kind, type):
            return kind(self, key)
        right = isinstance(value, int | float) if kind is float else isinstance(value, kind)
        if not right or (isinstance(value, bool) and kind is not bool):
            raise self.fail(key, f"must be {TYPE_NAMES[kind]}, not {value!r}")
        return value

    def fields(self, kinds: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
        return {name: self.value(key, kind) for key, (name, kind) in kinds.items() if key in self.table}


def _texts(reader: _Reader, key: str) -> tuple[str, ...]:
    return tuple(str(one) for one in reader.value(key, list))


def _text(reader: _Reader, key: str) -> Text:
    value = reader.table[key]
    if isinstance(value, dict) and all(isinstance(text, str) for text in value.values()):
        return value
    return reader.value(key, str)  # type: ignore[no-any-return]


def _table(reader: _Reader, key: str) -> dict[str, str]:
    return {str(k): str(v) for k, v in reader.value(key, dict).items()}


def _shapes(reader: _Reader, key: str) -> tuple[Shape, ...]:
    try:
        return tuple(parse_shape(str(text)) for text in reader.value(key, list)) or Assignment.shapes
    except ShapeError as error:
        raise UsageError(f"{reader.path}: {error}") from None


def _sizes(reader: _Reader, key: str) -> tuple[int, ...]:
    value = reader.value(key, list)
    if not 1 <= len(value) <= 3 or not all(isinstance(v, int) and v > 0 for v in value):
        raise reader.fail(key, f"must be up to three whole numbers such as [16, 16], not {value!r}")
    return tuple(value)


def _points(reader: _Reader, key: str) -> float:
    value = reader.table[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_POINTS:
        raise reader.fail(key, f"must be a number from 0 to {MOST_POINTS:,}, not {value!r}")
    return float(value)


def _memory(reader: _Reader, key: str) -> int:
    return budget(reader.table[key], f"{reader.path}: {reader.prefix}{key}")


def _file(reader: _Reader, key: str) -> str:
    """FILE or FILE.py:FUNCTION, with a file beside the assignment."""
    return _checked(reader, key, reader.value(key, str))


def _files(reader: _Reader, key: str) -> tuple[str, ...]:
    return tuple(_checked(reader, key, name) for name in _texts(reader, key))


def _checked(reader: _Reader, key: str, given: str) -> str:
    file, _, function = given.partition(":")
    if not _is_beside(reader.path.parent, file):
        raise UsageError(f"{reader.path}: the {reader.prefix}{key} {file} is not beside it")
    if file.endswith(".py") and not function:
        raise reader.fail(key, f"must be {file}:FUNCTION")
    return given


def _reference(reader: _Reader, key: str) -> str:
    given: str = reader.value(key, str)
    file, _, function = given.partition(":")
    if file.endswith(".py") and _is_beside(reader.path.parent, file) and not function:
        raise UsageError(f"{reader.path}: the reference must be {file}:FUNCTION, a function of M and N that gives P")
    if file.endswith((".py", ".cu")):
        return _checked(reader, key, given)
    find_semiring(given)
    return given


def _is_beside(folder: Path, name: str) -> bool:
    try:
        return (folder / name).is_file()
    except (OSError, ValueError):  # a name too long for the system, or with a zero byte
        return False


def _tests(reader: _Reader, key: str) -> tuple[Test, ...]:
    made: list[Test] = []
    for i, table in enumerate(reader.value(key, list), 1):
        one = _Reader(table if isinstance(table, dict) else {}, reader.path, f"test {i}: ")
        one.known(TEST_KEYS, "a test")
        test = Test(**{"name": f"test {i}"} | one.fields(TEST_KEYS))
        if test.name in {t.name for t in made} or test.name in ITEMS:
            raise one.fail("name", f"{test.name!r} is used twice")
        given = [name for name in EXPECTATIONS if name in table]
        if len(given) > 1:
            raise one.fail(given[1], f"and {given[0]} cannot both be given")
        made.append(test)
    return tuple(made)


TEST_KEYS: dict[str, tuple[str, Any]] = {
    "name": ("name", str), "points": ("points", _points), "arguments": ("arguments", _texts), "stdin": ("stdin", str),
    "stdin_file": ("stdin_file", _file), "inputs": ("inputs", _files), "expected": ("expected", str),
    "expected_file": ("expected_file", _file), "reference": ("reference", _file), "property": ("property", _file),
    "output": ("output", str), "dtype": ("dtype", str), "tolerance": ("tolerance", float), "partial": ("partial", bool),
    "status": ("status", int), "seconds": ("seconds", float), "memory": ("memory", _memory), "hidden": ("hidden", bool),
    "title": ("title", _text), "message": ("message", _text),
}  # fmt: skip
KEYS: dict[str, tuple[str, Any]] = {
    "title": ("title", str), "shapes": ("shapes", _shapes), "tile": ("tile", int), "kernel": ("kernel", str),
    "block": ("block", _sizes), "grid": ("grid", _sizes), "reference": ("reference", _reference),
    "traffic": ("tiles_of", int), "forbidden": ("forbidden", _texts), "required": ("required", _texts),
    "kernels": ("kernels", _texts), "provided": ("provided", _files), "defines": ("defines", _table),
    "arguments": ("arguments", _texts), "seconds": ("seconds", float), "memory": ("memory", _memory),
    "test": ("tests", _tests),
}  # fmt: skip


def assignment_of(table: dict[str, Any], path: Path) -> Assignment:
    """The assignment of a table; every key and its type is checked, and the error names the first invalid one."""
    reader = _Reader(table, path)
    reader.known({**KEYS, "points": None}, "an assignment")
    given = reader.fields(KEYS)
    points = table.get("points", {} if given.get("tests") else Assignment().points)
    wrong = [key for key in points if key not in ITEMS] if isinstance(points, dict) else [points]
    if wrong:
        known = ", ".join(ITEMS[: -len(KINDS)])
        raise UsageError(f"{path}: points for {wrong[0]!r} are not known; there are {known}, and kinds of findings")
    one = _Reader(points, path, "points.")
    made = Assignment(points={key: _points(one, key) for key in points}, folder=path.parent, **given)
    uncounted = [] if made.has_roles else [key for key in points if key in UNCOUNTED]
    if uncounted:  # which every submission would get
        raise one.fail(uncounted[0], f"is counted for matrix products: it needs points for {' or '.join(ROLES)}")
    return made
