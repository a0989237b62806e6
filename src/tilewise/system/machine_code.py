"""Cost formulas written in Python and compiled: the index of the row with the least value.

A `Formula` is a function of a row of numbers and of numbers that all rows share; `least` evaluates it for every row. It
runs in Python for the first calls, or until `compile_formulas` is called; then as native code, translated to LLVM
(`python_to_llvm`). Both give the same bits.
"""

from __future__ import annotations

import contextlib
import math
from array import array
from collections.abc import Callable, Sequence
from threading import Thread

from tilewise.errors import UsageError
from tilewise.system.builtin_call import builtin, compiled_functions, native_calls
from tilewise.system.llvm_lock import LLVM
from tilewise.system.python_to_llvm import DECLARED, Module

LARGEST = 2**52
PATIENCE = 40  # calls in Python before compiling pays
INFINITE = math.inf
Row = Sequence[float]
_formulas: list[Formula] = []  # not compiled yet


class Rows:
    """A table of candidates: a row of numbers for each."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = tuple(map(tuple, rows))
        self._flat = array("d", (number for row in self.rows for number in row))
        width = len(self.rows[0]) if self.rows else 0
        self.place = self._flat.buffer_info()[0], len(self.rows), width  # as machine code finds them
        self.answer = bytes(8 * (1 + len(self.rows)))  # room for the least value, then that of every row


class Formula:
    """`function(row, given)`: a float, infinite where the row is not possible."""

    def __init__(self, function: Callable[[Row, Row], float]) -> None:
        self.function = function
        self._calls = 0
        self._native: Callable[..., int] | None = None
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

    def use(self, least: int) -> None:
        """Call the compiled function of `translated` at this address."""
        self._native = builtin(least, "wwwww", keeps_gil=True)


def compile_formulas() -> None:
    """Compile every formula that is not compiled yet, if there is a compiler."""
    with LLVM:  # the one lock that a fork waits for
        waiting = [*_formulas] if native_calls() else []
        _formulas.clear()
        if not waiting:
            return
        names = [f"least.{number}" for number in range(len(waiting))]
        text = translated([formula.function for formula in waiting])
        try:
            addresses = compiled_functions(text, names, kept=True)
        except (ImportError, RuntimeError, OSError, AttributeError, UsageError):
            return  # Python gives the same values
        for formula, least in zip(waiting, addresses, strict=True):
            formula.use(least)


def compile_in_background() -> None:
    """The same in a background thread, which the interpreter joins at exit."""
    if _formulas and not _threads:
        _threads.append(Thread(target=compile_formulas, name="tilewise compiles"))
        with contextlib.suppress(RuntimeError):  # no thread could be started: `least` compiles later
            _threads[0].start()


_threads: list[Thread] = []


def translated(functions: Sequence[Callable[..., float]]) -> str:
    """The LLVM text of `least.0(rows, count, width, given, answer)` and so on for formulas."""
    module = Module()
    made = [module.function(function).name for function in functions]
    least = [LEAST.replace("NUMBER", str(number)).replace("FORMULA", name) for number, name in enumerate(made)]
    return DECLARED + module.text() + "".join(least)


LEAST = """
define i64 @least.NUMBER(ptr %rows, i64 %count, i64 %width, ptr %given, ptr %answer) {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %j, %evaluate ]
  %best = phi i64 [ 0, %entry ], [ %better, %evaluate ]
  %least = phi double [ 0x7FF0000000000000, %entry ], [ %lower, %evaluate ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %evaluate, label %done
evaluate:
  %skip = mul i64 %i, %width
  %row = getelementptr double, ptr %rows, i64 %skip
  %value = call double FORMULA(ptr %row, ptr %given)
  %below = fcmp olt double %value, %least
  %better = select i1 %below, i64 %i, i64 %best
  %lower = select i1 %below, double %value, double %least
  %j = add i64 %i, 1
  %at = getelementptr double, ptr %answer, i64 %j
  store double %value, ptr %at
  br label %next
done:
  store double %least, ptr %answer
  ret i64 %best
}
"""
