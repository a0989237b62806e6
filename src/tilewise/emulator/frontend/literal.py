"""Numbers, characters and strings as C writes them, to values and types."""

from __future__ import annotations

import re

import numpy as np

from tilewise.emulator.frontend import ctype
from tilewise.emulator.frontend.ctype import Scalar
from tilewise.emulator.frontend.lexer import Token
from tilewise.emulator.frontend.source import Source

INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlLzZ]*)\Z")
FLOAT = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([fFlLhH]?)\Z")
HEX_FLOAT = re.compile(r"(0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+)([fFlL]?)\Z")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)


def number(source: Source, token: Token) -> tuple[Scalar, np.generic]:
    """The type and value of a numeric literal."""
    text = token.text.replace("'", "")
    match = INTEGER.match(text)
    if match:
        value = integer_value(source, token)
        suffix = match.group(2).lower()
        unsigned, long = "u" in suffix, "l" in suffix or "z" in suffix
        decimal = not text.startswith("0") or text == "0"
        order: list[Scalar] = []
        for type_ in (ctype.INT, ctype.UINT, ctype.LONG, ctype.ULONG):
            if unsigned and not type_.unsigned:
                continue
            if long and type_.size < 8:
                continue
            if type_.unsigned and not unsigned and decimal:
                continue
            order.append(type_)
        for type_ in order:
            if value <= int(np.iinfo(type_.dtype).max):
                return type_, type_.dtype.type(value)
        raise source.error(f"{token.text} does not fit any integer type", token.line, token.column, len(text))
    match = FLOAT.match(text) or HEX_FLOAT.match(text)
    if match:
        hexadecimal = text[:2].lower() == "0x"
        try:
            real = float.fromhex(match.group(1)) if hexadecimal else float(match.group(1))
        except (OverflowError, ValueError):  # past the largest double, as 1e999 is
            real = float("inf")
        if match.group(2) in ("f", "F"):
            with np.errstate(over="ignore"):
                return ctype.FLOAT, np.float32(real)
        return ctype.DOUBLE, np.float64(real)
    raise source.error(f"{token.text} is not a number", token.line, token.column, len(token.text))


def integer_value(source: Source, token: Token) -> int:
    text = token.text.replace("'", "")
    match = INTEGER.match(text)
    if match is None or len(text) > 80:
        raise source.error(f"{token.text} is not an integer", token.line, token.column, len(token.text))
    digits = match.group(1)
    if digits[:2].lower() == "0x":
        return int(digits, 16)
    if digits[:2].lower() == "0b":
        return int(digits, 2)
    if digits.startswith("0") and len(digits) > 1:
        if not set(digits) <= set("01234567"):
            raise source.error(f"{token.text} is not an octal number", token.line, token.column, len(text))
        return int(digits, 8)
    return int(digits)


def string_value(text: str) -> str:
    """The characters between the quotes, escapes undone."""
    return ESCAPE.sub(_unescaped, text[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    what = found[1]
    if what[0] == "x" and len(what) > 1:
        return chr(int(what[1:], 16))
    return chr(int(what, 8) & 255) if what[0] in "01234567" else ESCAPES.get(what, what)


def character_value(text: str) -> int:
    value = string_value(text)
    code = ord(value[-1]) if value else 0
    return code if code < 128 else (code & 0xFF) - 256
