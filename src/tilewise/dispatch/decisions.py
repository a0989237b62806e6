"""A Python function of whole numbers as a table of its decisions, evaluated in native code.

The function runs once on numbers that record what is done with them: comparisons become branches of the table,
arithmetic the steps between them. Calls that take the same branches run no Python; a branch that none has taken yet is
recorded when one does. The function may use + − · // % comparisons, and rounded quotients; where it needs a number
itself, as an index or a hash, its path is for that number alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

from tilewise.backends.cpu.runtime.compile import load
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.dispatch.decisions_text import FIELDS, OPERATIONS, REGISTERS, find_text
from tilewise.system.builtin_call import builtin, native_calls

MOST = 2**14  # rows of a table, whose memory is touched as they are added
# Recording a path takes as long as a dozen calls without the table, and calls of every layout and size at random hardly
# ever take a path again: after FREE paths one more is recorded for each HITS calls that found theirs, and each MISSES
# that did not, so that other calls than those so far have their paths too.
FREE, HITS, MISSES = 32, 16, 64
UNKNOWN = -1  # a path that is not in the table
Row = tuple[int, int, int, int, int]
Answer = tuple[Sequence[Any], Any] | None  # the numbers of a path, and its value


class NoTableError(Exception):
    """A function, or a number of paths, that no table holds."""


class Decisions:
    """The table of `function(*numbers)`, which returns numbers, that native code computes, and a value for all calls
    that take the same path; or None."""

    def __init__(self, function: Callable[..., Answer], inputs: int) -> None:
        self.values: list[Any] = [None]  # by path; 0 is None, for every path without an answer
        self._function, self._used, self._hits, self._misses = function, 1, 0, 0
        self._recording, self._open = Lock(), native_calls()
        if self._open:
            self._find, self._rows = _finder(inputs), (ctypes.c_int64 * (FIELDS * MOST))()
            self._rows[:FIELDS] = [OPERATIONS.index("le"), 0, 0, 0, 0]  # taken by all; its target is unknown
            self._address = ctypes.addressof(self._rows)

    def __call__(self, numbers: bytes, *inputs: int) -> Any:
        """The value of a call's path, whose numbers are written into a new bytes object; None where there is none."""
        if not self._open:
            return None
        path = self._find(self._address, numbers, *inputs)
        if path == UNKNOWN:
            self._misses += 1
            if len(self.values) - FREE <= self._hits // HITS + self._misses // MISSES:
                self._record(inputs)
                path = self._find(self._address, numbers, *inputs)
        if path <= 0:
            return None
        self._hits += 1
        return self.values[path]

    def _record(self, inputs: tuple[int, ...]) -> None:
        """Add the path of these inputs."""
        if not self._recording.acquire(blocking=False):  # held by another thread, or since a fork
            return
        try:
            path = Path(self._rows, self._used)
            answer = self._function(*(Recorded(path, value, at) for at, value in enumerate(inputs)))
            rows = path.ended(() if answer is None else answer[0], 0 if answer is None else len(self.values))
            if self._used + len(rows) > MOST:
                return
            if answer is not None:
                self.values.append(answer[1])
            self._rows[FIELDS * self._used : FIELDS * (self._used + len(rows))] = [x for row in rows for x in row]
            self._rows[path.open_end], self._used = self._used, self._used + len(rows)
        except (NoTableError, TypeError, AttributeError):
            self._open = False
        finally:
            self._recording.release()


@lru_cache(maxsize=4)
def _finder(inputs: int) -> Callable[..., int]:
    return builtin(load(find_text(inputs), host_target())["find"], "wo" + "w" * inputs, keeps_gil=True)


class Path:
    """What a function does for some inputs: along the table's rows as far as they go, then new ones."""

    def __init__(self, table: Any, used: int) -> None:
        self.new: list[Row] = []
        self.open_end = 3  # the position of the target that is to lead to the new rows: first that of row 0
        self._table, self._used, self._at = table, used, int(table[3])  # 0: past the known rows
        self._known: dict[tuple[int, int, int], Any] = {}
        self._constants: dict[int, int] = {}
        self._registers = 0

    def computed(self, name: str, value: int, x: Any, y: Any) -> Recorded:
        """A recorded number that is the result of an operation."""
        step = OPERATIONS.index(name), self.register(x), self.register(y)
        found: Recorded | None = self._known.get(step)
        if found is None:
            found = self._known[step] = Recorded(self, value, self._set(*step))
        return found

    def decided(self, name: str, outcome: bool, x: Any, y: Any) -> bool:
        """The outcome of a comparison, recorded as a branch."""
        step = OPERATIONS.index(name), self.register(x), self.register(y)
        if step not in self._known:
            self._known[step] = outcome
            if self._at:
                self._expect(*step)
                self.open_end = FIELDS * self._at + (3 if outcome else 4)
                self._at = int(self._table[self.open_end])
            else:
                following = self._used + len(self.new) + 1
                targets = (following, 0) if outcome else (0, following)
                self.new.append((*step, *targets))
        return bool(self._known[step])

    def fixed(self, x: Recorded) -> int:
        """The number itself: not equal to those for which the table has a branch here, or to one of them."""
        while not self.decided("eq", x.value == (tried := self._tried(x)), x, tried):
            pass
        return x.value

    def _tried(self, x: Recorded) -> int:
        """The number that the next row compares x with; x itself past the known rows, or where x is known."""
        own = self._constants.get(x.value)
        if not self._at or (own is not None and self._known.get((OPERATIONS.index("eq"), x.register, own))):
            return x.value
        operation, a, b = self._table[FIELDS * self._at : FIELDS * self._at + 3]
        if OPERATIONS[operation] == "constant":
            return int(a)
        return next((constant for constant, register in self._constants.items() if register == b), x.value)

    def ended(self, numbers: Sequence[Any], path: int) -> list[Row]:
        """The new rows, the last of which store `numbers` and end the path."""
        if self._at:
            raise NoTableError
        for place, number in enumerate(numbers):
            self.new.append((OPERATIONS.index("store"), place, self.register(number), 0, 0))
        self.new.append((OPERATIONS.index("end"), path, 0, 0, 0))
        return self.new

    def register(self, x: Any) -> int:
        """The register of a number; of a constant, one that is set on this path."""
        if x.__class__ is Recorded:
            return int(x.register)
        constant = int(x)
        if constant not in self._constants:
            self._constants[constant] = self._set(OPERATIONS.index("constant"), constant, 0)
        return self._constants[constant]

    def _set(self, operation: int, a: int, b: int) -> int:
        """The next register, set by a new row, or by one that is in the table."""
        self._registers += 1
        to = REGISTERS - self._registers
        if self._registers > REGISTERS - 16:  # the first are the inputs
            raise NoTableError
        if self._at:
            self._expect(operation, a, b, to)
            self._at += 1
        else:
            self.new.append((operation, a, b, to, 0))
        return to

    def _expect(self, *fields: int) -> None:
        """The function does the same after the same decisions."""
        if tuple(self._table[FIELDS * self._at : FIELDS * self._at + len(fields)]) != fields:
            raise NoTableError


class Recorded:
    """A whole number that records its operations."""

    __slots__ = ("path", "register", "value")

    def __init__(self, path: Path, value: int, register: int) -> None:
        self.path, self.value, self.register = path, value, register

    def fixed(self) -> int:
        """The number itself; the path is for this number alone from here on."""
        return self.path.fixed(self)

    __index__ = __int__ = fixed

    def __hash__(self) -> int:
        return hash(self.fixed())

    def __bool__(self) -> bool:
        return not self.path.decided("eq", self.value == 0, self, 0)

    def __neg__(self) -> Any:
        return self.path.computed("sub", -self.value, 0, self)

    def __abs__(self) -> Any:
        return -self if self.path.decided("lt", self.value < 0, self, 0) else self

    def __format__(self, form: str) -> str:
        return format(self.value, form)

    def __truediv__(self, other: Any) -> Quotient:
        return Quotient(self, other)


class Quotient:
    """A quotient of positive numbers that is going to be rounded."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y

    def __round__(self) -> Any:
        whole, twice = self.x // self.y, 2 * (self.x % self.y)
        return whole + 1 if twice > self.y or (twice == self.y and whole % 2 == 1) else whole

    def __ceil__(self) -> Any:
        return -(-self.x // self.y)


def _number(x: Any) -> Any:
    return x.value if x.__class__ is Recorded else x


def _operators(name: str, own: str) -> None:
    """The operator and its reflection."""

    def compute(x: Any, y: Any) -> Any:
        if not isinstance(_number(x), int) or not isinstance(_number(y), int):
            return NotImplemented
        recorded = x if x.__class__ is Recorded else y
        return recorded.path.computed(name, getattr(int, own)(_number(x), _number(y)), x, y)

    setattr(Recorded, own, lambda x, y: compute(x, y))
    setattr(Recorded, "__r" + own[2:], lambda y, x: compute(x, y))


def _comparison(own: str, name: str, swapped: bool = False, negated: bool = False) -> None:
    """A comparison by one that rows have."""

    def compare(x: Any, y: Any) -> Any:
        if not isinstance(_number(y), int):
            return NotImplemented
        outcome = getattr(int, own)(x.value, _number(y))
        made = x.path.decided(name, outcome != negated, *((y, x) if swapped else (x, y)))
        return made != negated

    setattr(Recorded, own, compare)


for _name, _own in {
    "add": "__add__",
    "sub": "__sub__",
    "mul": "__mul__",
    "div": "__floordiv__",
    "rem": "__mod__",
}.items():
    _operators(_name, _own)
for _own, *_how in (
    ("__lt__", "lt", False, False), ("__gt__", "lt", True, False), ("__le__", "le", False, False),
    ("__ge__", "le", True, False), ("__eq__", "eq", False, False), ("__ne__", "eq", False, True),
):  # fmt: skip
    _comparison(_own, *_how)  # type: ignore[arg-type]
