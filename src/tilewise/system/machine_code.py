"""Cost formulas written in Python and compiled: the index of the row with the least value.

A `Formula` is a function of a row of numbers and of numbers that all rows share; `least` evaluates it for every row. A
`Search` evaluates the tables of many formulas for an object, a problem, in one call. Both run in Python for the first
calls, or until `compile_formulas` is called; then as native code, translated to LLVM (`python_to_llvm`). Both give the
same bits.
"""

from __future__ import annotations

import contextlib
import math
from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from threading import Thread
from typing import Any, NamedTuple

from tilewise.errors import UsageError
from tilewise.system.builtin_call import builtin, compiled_functions, native_calls
from tilewise.system.formula_text import translated
from tilewise.system.llvm_lock import LLVM
from tilewise.system.python_to_llvm import Attributes

LARGEST = 2**52
PATIENCE = 40  # calls in Python before compiling pays
INFINITE = math.inf
Row = Sequence[float]
_formulas: list[Formula] = []  # not compiled yet
_weighings: list[Weighing] = []
_attributes = Attributes()  # of objects, that all compiled functions read


def takes_all(of: Row, figures: Row) -> bool:
    return True


def no_passes(row: Row, given: Row) -> int:
    """Launches beside the product's own: none."""
    return 0


def as_it_is(row: Row, given: Row, seconds: float) -> float:
    return seconds


class Rows:
    """A table of candidates: a row of numbers for each."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = tuple(map(tuple, rows))
        self._flat = array("d", chain.from_iterable(self.rows))
        width = len(self.rows[0]) if self.rows else 0
        self.place = self._flat.buffer_info()[0], len(self.rows), width  # as machine code finds them
        self.answer = bytes(8 * (1 + len(self.rows)))  # room for the least value, then that of every row


class Formula:
    """`function(row, given)`: a float, infinite where the row is not possible. For a `Search`: `takes(object, figures)`
    is whether there may be possible rows; `given(object, figures)` what all rows share; `passes(row, given)` a count;
    `final(row, given, seconds)` what the least row is weighed by.
    """

    def __init__(
        self,
        function: Callable[[Row, Row], float],
        given: Callable[[Any, Any], Row] | None = None,
        takes: Callable[[Any, Any], bool] = takes_all,
        passes: Callable[[Row, Row], int] = no_passes,
        final: Callable[[Row, Row, float], float] = as_it_is,
    ) -> None:
        self.function, self.given, self.takes, self.passes, self.final = function, given, takes, passes, final
        self._calls = 0
        self._native: Callable[..., int] | None = None
        self.offered = 0  # the address of its native function for a search
        _formulas.append(self)

    def __call__(self, row: Row, given: Row) -> float:
        return self.function(row, given)

    def least(self, table: Rows, given: Row, largest: int) -> tuple[int, float]:
        """The first row with the least value, and that value. `largest`: the largest intermediate integer, but for a
        small factor; beyond 2⁵² Python evaluates all rows."""
        if self._native is None or largest > LARGEST:
            return self._in_python(table, given)
        held, values = array("d", given), array("d", table.answer)
        return self._native(*table.place, held.buffer_info()[0], values.buffer_info()[0]), values[0]

    def each(self, table: Rows, given: Row, largest: int) -> Sequence[float]:
        """The value of every row."""
        if self._native is None or largest > LARGEST:
            return [self.function(row, given) for row in table.rows]
        held, values = array("d", given), array("d", table.answer)
        self._native(*table.place, held.buffer_info()[0], values.buffer_info()[0])
        return values[1:]

    def _in_python(self, table: Rows, given: Row) -> tuple[int, float]:
        self._calls += 1
        if self._calls == PATIENCE:
            compile_formulas()
        function = self.function
        values = [function(row, given) for row in table.rows]
        least = min(values)
        return values.index(least), least

    def use(self, least: int, offered: int = 0) -> None:
        """Call the compiled functions of `translated` at these addresses."""
        self._native, self.offered = builtin(least, "wwwww", keeps_gil=True), offered


class Candidates(NamedTuple):
    """One table of a search: a formula, its rows, what is known of a kind of object, numbers for weighing; whether it
    is the last of a group. Of a group's tables the least value is weighed."""

    formula: Formula
    rows: Rows
    figures: Row
    limits: Row
    fit: Row
    last: bool


class Found(NamedTuple):
    """The best of a search: the table's number and the row's, their weighed value, what else weighing gave, passes."""

    table: int
    row: int
    cost: float
    corrected: float
    predicted: float
    passes: int


class Weighing:
    """What a search does beside its formulas: `admits(object, limits)`; `known(object, kind)`, numbers that all tables
    share; `cost(object, limits, fit, known, seconds, passes)`: the value to compare, and two more."""

    def __init__(self, admits: Callable[..., bool], known: Callable[..., Row], cost: Callable[..., Row]) -> None:
        self.admits, self.known, self.cost = admits, known, cost
        self.native: Callable[..., int] | None = None
        _weighings.append(self)


class Search:
    """The table and the row with the least cost; the first of equal ones. `kind`: what `known` takes of the object."""

    def __init__(self, weighing: Weighing, tables: Sequence[Candidates], kind: Row) -> None:
        self._weighing, self._tables, self._kind = weighing, tables, kind
        self._held: tuple[int, ...] = ()
        self._answer = bytes(8 * (65 + max((len(one.rows.rows) for one in tables), default=0)))

    def least(self, of: Any, largest: int) -> Found | None:
        """None where no table has a possible row. `largest`: as of `Formula.least`."""
        native = self._weighing.native
        if native is None or largest > LARGEST or not (self._held or self._laid_out()):
            return self._in_python(of, largest)
        tables, count, kind = self._held
        numbers, answer = array("d", _attributes.numbers(of)), array("d", self._answer)
        if native(tables, count, numbers.buffer_info()[0], kind, answer.buffer_info()[0]) == 0:
            return None
        cost, corrected, predicted, _, passes, row, table = answer[:7]
        return Found(int(table), int(row), cost, corrected, predicted, int(passes))

    def _laid_out(self) -> bool:
        """Lay out the tables as native code reads them, if all formulas are compiled."""
        if not all(one.formula.offered for one in self._tables):
            return False
        every, kind = array("Q"), array("d", self._kind)
        keep: list[Any] = [kind]
        for one in self._tables:
            vectors = [array("d", x) for x in (one.figures, one.limits, one.fit)]
            keep += vectors
            every.extend((one.formula.offered, *one.rows.place, *(x.buffer_info()[0] for x in vectors), one.last))
        keep.append(every)
        self._kept = keep
        self._held = every.buffer_info()[0], len(self._tables), kind.buffer_info()[0]
        return True

    def _in_python(self, of: Any, largest: int) -> Found | None:
        weighing, best = self._weighing, None
        known = weighing.known(of, self._kind)
        group: tuple[float, int, int, int] | None = None  # the least seconds, passes, row and table
        for number, one in enumerate(self._tables):
            formula = one.formula
            assert formula.given is not None
            if weighing.admits(of, one.limits) and formula.takes(of, one.figures):
                given = formula.given(of, one.figures)
                row, seconds = formula.least(one.rows, given, largest)
                if seconds < INFINITE:
                    seconds = formula.final(one.rows.rows[row], given, seconds)
                if seconds < (INFINITE if group is None else group[0]):
                    group = seconds, formula.passes(one.rows.rows[row], given), row, number
            if one.last and group is not None:
                seconds, passes, row, table = group
                chosen = self._tables[table]
                cost, corrected, predicted = weighing.cost(of, chosen.limits, chosen.fit, known, seconds, passes)
                if best is None or cost < best.cost:
                    best = Found(table, row, cost, corrected, predicted, passes)
            group = None if one.last else group
        return best


def compile_formulas() -> None:
    """Compile every formula that is not compiled yet, if there is a compiler."""
    with LLVM:  # the one lock that a fork waits for
        waiting, weighing = ([*_formulas], [*_weighings]) if native_calls() else ([], [])
        _formulas.clear()
        _weighings.clear()
        if not waiting:
            return
        try:
            names = [f"{kind}.{number}" for number in range(len(waiting)) for kind in ("least", "offer")]
            names += [f"search.{number}" for number in range(len(weighing))]
            addresses = compiled_functions(translated(_attributes, waiting, weighing), names, kept=True)
        except (ImportError, RuntimeError, OSError, AttributeError, UsageError):
            return  # Python gives the same values
        _attributes.close()
        for number, formula in enumerate(waiting):
            formula.use(*addresses[2 * number : 2 * number + 2])
        for one, search in zip(weighing, addresses[2 * len(waiting) :], strict=True):
            one.native = builtin(search, "wwwww", keeps_gil=True)


def compile_in_background() -> None:
    """The same in a background thread, which the interpreter joins at exit."""
    if _formulas and not _threads:
        _threads.append(Thread(target=compile_formulas, name="tilewise compiles"))
        with contextlib.suppress(RuntimeError):  # no thread could be started: `least` compiles later
            _threads[0].start()


_threads: list[Thread] = []
