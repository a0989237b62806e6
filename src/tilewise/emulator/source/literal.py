"""Numbers, characters and strings as C writes them, to values and types."""

from __future__ import annotations

import re
import struct

from tilewise.emulator.source.lexer import Token
from tilewise.emulator.source.source import Source

INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlLzZ]*)\Z")
FLOAT = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([fFlLhH]?)\Z")
HEX_FLOAT = re.compile(r"(0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+)([fFlL]?)\Z")
INTEGERS = (("int", 31), ("unsigned int", 32), ("long", 63), ("unsigned long", 64))  # and bits of a value
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)


def number(source: Source, token: Token) -> tuple[str, int | float]:
    """The name of the type of a numeric literal, and its value; a float is rounded where it is stored."""
    text = token.text.replace("'", "")
    match = INTEGER.match(text)
    if match:
        value = integer_value(source, token)
        suffix = match.group(2).lower()
        unsigned, long = "u" in suffix, "l" in suffix or "z" in suffix
        decimal = not text.startswith("0") or text == "0"
        for name, bits in INTEGERS:
            wrong_sign = name.startswith("u") != unsigned and (unsigned or decimal)
            if not wrong_sign and not (long and bits < 63) and value < 1 << bits:
                return name, value
        raise source.error(f"{token.text} does not fit any integer type", token.line, token.column, len(text))
    match = FLOAT.match(text) or HEX_FLOAT.match(text)
    if match:
        hexadecimal = text[:2].lower() == "0x"
        try:
            real = float.fromhex(match.group(1)) if hexadecimal else float(match.group(1))
        except (OverflowError, ValueError):  # past the largest double, as 1e999 is
            real = float("inf")
        return ("float", _single(real)) if match.group(2) in ("f", "F") else ("double", real)
    raise source.error(f"{token.text} is not a number", token.line, token.column, len(token.text))


def _single(real: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", real))[0])
    except OverflowError:
        return float("inf")


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
