"""Formulas as machine code give what Python gives, to the last bit."""

from __future__ import annotations

import math
import random
from math import erf, exp, gcd, sqrt
from typing import NamedTuple

import pytest

from seeds import next_seed
from tilewise.system import machine_code
from tilewise.system.builtin_call import compiled_functions, native_calls
from tilewise.system.formula_text import translated
from tilewise.system.machine_code import INFINITE, LARGEST, Candidates, Formula, Row, Rows, Search, Weighing
from tilewise.system.python_to_llvm import Attributes

SHARE, SEVEN = 0.3, 7


def second(row: Row, at: int) -> float:
    return row[at] ** 4


def across(extent: int, side: int) -> int:
    return -(-extent // side)


def everything(row: Row, given: Row) -> float:
    """All that the translation knows."""
    m, n = int(given[0]), int(given[1])
    tall, wide = int(row[0]), int(row[1])
    tiles = across(m, tall) * across(n, wide)
    if (tiles % SEVEN == 3 and n > 5) or not tiles:
        return INFINITE
    total = 0.0
    for i in range(2, tiles % 5 + 2):
        total += max(i * row[2], SHARE, given[2]) / (1 + i)
    total = total + (row[2] * 2 if tiles > 9 else 1)
    signed = -n // tall if not m < n <= 50 else 3
    rest = -m % wide
    total += erf(given[2])
    return total * signed + min(tiles, SEVEN) - float(rest) + sqrt(given[2]) ** SHARE * second(row, 1)


@pytest.fixture
def rng():
    seed = next_seed() % 10**9
    print(f"seed {seed}")
    return random.Random(seed)


def in_machine_code(function):
    if not native_calls():
        pytest.skip("no machine code is made here")
    pytest.importorskip("llvmlite")
    made = Formula(function)
    machine_code._formulas.remove(made)
    made.use(*compiled_functions(translated(Attributes(), [made]), ["least.0"]))
    return made


def test_the_same_row_and_the_same_bits(rng):
    quick = in_machine_code(everything)
    for _ in range(500):
        rows = Rows([(rng.randint(1, 40), rng.randint(1, 40), rng.random()) for _ in range(rng.randint(1, 30))])
        given = (rng.randint(0, 200), rng.randint(0, 200), rng.random())
        values = [everything(row, given) for row in rows.rows]
        assert quick.least(rows, given, 1) == (values.index(min(values)), min(values))
        assert list(quick.each(rows, given, 1)) == values


def test_the_first_of_equal_rows_wins():
    rows = Rows([(3, 1, 0.5), (2, 1, 0.5), (2, 1, 0.5)])
    assert in_machine_code(_first).least(rows, (0.0,), 1) == (1, 2.0)


def _first(row: Row, given: Row) -> float:
    return row[0] + given[0]


def test_numbers_beyond_64_bits_are_left_to_python():
    quick = in_machine_code(_squared)
    assert quick.least(Rows([(2**40,), (2**41,)]), (0,), LARGEST + 1) == (0, float(2**80))


def _squared(row: Row, given: Row) -> float:
    whole = int(row[0]) * int(row[0])
    return whole + given[0]


def shared(row: Row, given: Row) -> float:
    return float(int(given[0]) // int(row[0]) + 2 * (int(given[0]) % int(row[0])))


def test_a_division_by_nothing_ends_no_process():
    """On x86 an integer division by 0 is a signal: planning an empty product must not raise it."""
    native = in_machine_code(shared)
    assert native.least(Rows([(0.0,)]), (7.0,), 7) == (0, 7.0)
    assert native.least(Rows([(2.0,), (-2.0,)]), (7.0,), 7) == (1, shared((-2.0,), (7.0,)))


class Size(NamedTuple):
    """What a search takes of a kind."""

    unit: float
    least: int


class Inner(NamedTuple):
    row: int
    stack: tuple[int, ...]


class Thing(NamedTuple):
    """An object with numbers, and with an object that has numbers."""

    m: int
    inner: Inner
    other: Inner


def stride(inner: Inner, times: int) -> int:
    return gcd(inner.row, times) * abs(inner.row)


def pair(x: Thing, size: Size) -> Row:
    return stride(x.inner, 12), stride(x.other, 18) * size.unit


def given_of(x: Thing, size: Size) -> Row:
    return (x.m, *pair(x, size), exp(size.unit) if x.m > 3 else 0.5)


def takes(x: Thing, size: Size) -> bool:
    return x.m >= size.least and x.inner.row != 7


def by_row(row: Row, given: Row) -> float:
    return INFINITE if row[0] > given[0] else abs(given[1] - given[2] * row[0]) + given[3]


def passes(row: Row, given: Row) -> int:
    return int(row[0]) % 3


def admits(x: Thing, size: Size) -> bool:
    return x.m < 90


def known(x: Thing, size: Size) -> Row:
    return (x.m * size.unit,)


def cost(x: Thing, limits: Size, fit: Row, both: Row, seconds: float, passes: int) -> Row:
    return seconds * fit[0] + passes + both[0], seconds, both[0]


def halved(row: Row, given: Row, seconds: float) -> float:
    return seconds / 2


def test_a_search_finds_what_python_finds(rng, monkeypatch):
    """The least of a group is weighed; tables that do not take the object, and rows that are not possible, are none."""
    if not native_calls():
        pytest.skip("no machine code is made here")
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(machine_code, "_formulas", [])
    monkeypatch.setattr(machine_code, "_weighings", [])
    monkeypatch.setattr(machine_code, "_attributes", Attributes())
    formulas = [Formula(by_row, given_of, takes, passes), Formula(by_row, given_of, takes, final=halved)]
    weighing, searches = Weighing(admits, known, cost), []
    for _ in range(20):
        tables = [
            Candidates(
                rng.choice(formulas), Rows([(rng.randint(1, 40),) for _ in range(rng.randint(1, 9))]),
                Size(rng.random(), rng.randint(0, 60)), Size(1.0, 0), (rng.random(),), last,
            )
            for last in (*(rng.random() < 0.5 for _ in range(5)), True)
        ]  # fmt: skip
        searches.append(Search(weighing, tables, Size(rng.random(), 0)))
    things = [
        Thing(rng.randint(1, 100), *(Inner(rng.choice((7, rng.randint(-50, 50))), ()) for _ in range(2)))
        for _ in range(40)
    ]
    slow = [search.least(thing, 1) for search in searches for thing in things]
    machine_code.compile_formulas()
    assert weighing.native is not None
    assert [search.least(thing, 1) for search in searches for thing in things] == slow
    assert None in slow
    assert len({found.table for found in slow if found}) == 6


def test_where_no_row_can_be_had_the_answer_is_infinite():
    assert in_machine_code(_never).least(Rows([(1.0,), (2.0,)]), (0.0,), 1) == (0, math.inf)


def _never(row: Row, given: Row) -> float:
    return INFINITE


def test_formulas_become_machine_code_behind_a_call(monkeypatch):
    monkeypatch.setattr(machine_code, "_formulas", [])
    monkeypatch.setattr(machine_code, "_threads", [])
    formula, table = Formula(_first), Rows([(2.0,), (1.0,)])
    for _ in range(2):
        machine_code.compile_in_background()
    (thread,) = machine_code._threads
    thread.join()
    assert not thread.daemon, "a compiler may crash if the process exits while it runs"
    assert formula.least(table, (3.0,), 1) == (1, 4.0)
    assert formula._native is not None or not native_calls()
