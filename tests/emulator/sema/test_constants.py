"""Constant expressions: as C++ has them, or refused in a sentence."""

from __future__ import annotations

import pytest

from tilewise.emulator.check.loading import load
from tilewise.emulator.limits import DEFAULT
from tilewise.emulator.sema.symbol_table import Unknown


def value(expression: str) -> float:
    table = load(f"enum {{ E = {expression} }};\n__global__ void k() {{}}", None, None, DEFAULT).table
    return table.enumerator("E")[0]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("7 / 2 * 2 % 4", 2), ("-7 / 2", -3), ("-7 % 4", -3), ("1 << 4 | 3 & 6 ^ 1", 19), ("(1 << 31) >> 31", -1),
        ("~5", -6), ("!1.5", 0), ("(int)2.75", 2), ("(unsigned char)300", 44), ("(int)1e10", -(1 << 31)),
        ("(int)(1e308 * 10)", -(1 << 31)), ("(char)1e10", 0), ("sizeof(long) == 8 ? 3 : 4", 3),
        ("(unsigned)3e9 == 3000000000u", 1), ("(unsigned long long)1e19 == 10000000000000000000ull", 1),
        ("(long)-1e300 == (long)1 << 63", 1),
    ],
)  # fmt: skip
def test_as_a_compiler_has_it(expression: str, expected: float) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    "expression",
    ["1 << -1", "1 << 32", "1 << 4000000000", "1.5 << 1", "1 >> 2.0", "~1.5", "1.5 & 1", "1 | 2.5", "1 / 0", "1.0 / 0"],
)
def test_what_has_no_value_is_no_constant(expression: str) -> None:
    with pytest.raises(Unknown):
        value(expression)
