"""Evaluate `#if`: an integer expression over tokens; names left after macro expansion are 0."""

from __future__ import annotations

from collections.abc import Callable

from tilewise.emulator.source.lexer import Token
from tilewise.emulator.source.literal import character_value, integer_value
from tilewise.emulator.source.source import Source
from tilewise.errors import LimitError

BINARY: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (1, lambda a, b: int(bool(a) or bool(b))),
    "&&": (2, lambda a, b: int(bool(a) and bool(b))),
    "|": (3, lambda a, b: a | b),
    "^": (4, lambda a, b: a ^ b),
    "&": (5, lambda a, b: a & b),
    "==": (6, lambda a, b: int(a == b)),
    "!=": (6, lambda a, b: int(a != b)),
    "<": (7, lambda a, b: int(a < b)),
    ">": (7, lambda a, b: int(a > b)),
    "<=": (7, lambda a, b: int(a <= b)),
    ">=": (7, lambda a, b: int(a >= b)),
    "<<": (8, lambda a, b: a << (b & 63)),
    ">>": (8, lambda a, b: a >> (b & 63)),
    "+": (9, lambda a, b: a + b),
    "-": (9, lambda a, b: a - b),
    "*": (10, lambda a, b: a * b),
    "/": (10, lambda a, b: _divide(a, b)),
    "%": (10, lambda a, b: a - b * _divide(a, b)),
}


def _divide(a: int, b: int) -> int:
    if b == 0:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def evaluate_condition(source: Source, tokens: list[Token], hash_: Token, nesting: int) -> bool:
    """The truth of the tokens after `#if`, macros already expanded."""
    position = 0

    def fail(message: str) -> Exception:
        at = tokens[min(position, len(tokens) - 1)] if tokens else hash_
        return source.error(message, at.line, at.column)

    def primary(depth: int) -> int:
        nonlocal position
        if depth > nesting:
            raise LimitError(f"{source.name}:{hash_.line}: #if nested too deep")
        if position >= len(tokens):
            raise fail("this #if ends too early")
        token = tokens[position]
        position += 1
        if token.text == "(":
            value = expression(0, depth + 1)
            if position >= len(tokens) or tokens[position].text != ")":
                raise fail("a ) is missing in this #if")
            position += 1
            return value
        if token.text in ("!", "-", "+", "~"):
            value = primary(depth + 1)
            return {"!": int(not value), "-": -value, "+": value, "~": ~value}[token.text]
        if token.kind == "number":
            return integer_value(source, token)
        if token.kind == "char":
            return character_value(source, token)
        if token.kind == "name":
            return int(token.text == "true")
        raise fail(f"{token.text!r} is not understood in #if")

    def expression(precedence: int, depth: int) -> int:
        nonlocal position
        left = primary(depth)
        while position < len(tokens):
            text = tokens[position].text
            if text == "?" and precedence == 0:
                position += 1
                yes = expression(0, depth + 1)
                if position >= len(tokens) or tokens[position].text != ":":
                    raise fail("a : is missing in this #if")
                position += 1
                no = expression(0, depth + 1)
                return yes if left else no
            entry = BINARY.get(text)
            if entry is None or entry[0] <= precedence:
                break
            position += 1
            left = entry[1](left, expression(entry[0], depth + 1))
            left = (left + 2**63) % 2**64 - 2**63
        return left

    value = expression(0, 0)
    if position < len(tokens):
        raise fail(f"{tokens[position].text!r} is left over in this #if")
    return bool(value)
