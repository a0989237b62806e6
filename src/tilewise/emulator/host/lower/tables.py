"""Long arrays of literals as bytes: a table of 10,000 numbers is one copy, not 10,000 stores to be optimised."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Scalar, Type, innermost

LEAST = 32  # numbers
MOST = 1 << 26  # bytes: of a larger array the text holds a part only
NOT_TAKEN = -(1 << 40)


def table_bytes(array: Array, init: tree.Braces) -> bytes | None:
    """The array's bytes; None if it is short, or something is no number that its type holds."""
    element = innermost(array)
    if (
        not isinstance(element, Scalar)
        or element.kind not in ("int", "float")
        or isinstance(element, types.Enum)
        or array.size > MOST
    ):
        return None
    values = np.zeros(array.size // element.size, f"{_letter(element)}{element.size}")
    return values.tobytes() if _fill(values, array, init) >= LEAST else None


def _letter(element: Scalar) -> str:
    return "f" if element.floating else "i" if element.signed else "u"


def _fill(values: np.ndarray[Any, np.dtype[Any]], type_: Type, init: Any) -> int:
    """How many numbers are given; negative where something is not taken."""
    if isinstance(type_, Array):
        if not isinstance(init, tree.Braces) or len(init.items) > type_.length or any(init.names):
            return NOT_TAKEN
        each = len(values) // type_.length
        parts = (_fill(values[i * each : (i + 1) * each], type_.of, item) for i, item in enumerate(init.items))
        return sum(parts)
    number = _number(init)
    if number is None:
        return NOT_TAKEN
    if values.dtype.kind != "f":
        limits = np.iinfo(values.dtype)
        if not isinstance(number, int) or not limits.min <= number <= limits.max:
            return NOT_TAKEN
    with np.errstate(over="ignore"):
        values[0] = number
    return 1


def _number(node: Any) -> int | float | None:
    if isinstance(node, tree.Unary) and node.op == "-" and isinstance(node.operand, tree.Number):
        held = node.operand.type
        return None if isinstance(held, Scalar) and held.integral and not held.signed else -node.operand.value
    return node.value if isinstance(node, tree.Number) and isinstance(node.value, (int, float)) else None
