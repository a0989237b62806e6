"""Numbers, characters and strings as C writes them, to values and types."""

from __future__ import annotations

import re
import struct

from tilewise.emulator.source.lexer import Token
from tilewise.emulator.source.source import Source

INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlLzZ]*)\Z")
FLOAT = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([fFlLhH]?)\Z")
HEX_FLOAT = re.compile(r"(0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+)([fFlL]?)\Z")
INTEGERS = (("int", 31), ("unsigned int", 32), ("long", 63), ("unsigned long", 64))  # type, bits of its largest value
ESCAPES = {"n": 10, "t": 9, "r": 13, "\\": 92, "'": 39, '"': 34, "a": 7, "b": 8, "f": 12, "v": 11, "?": 63, "e": 27}


def number(source: Source, token: Token) -> tuple[str, int | float]:
    """The type's name and the value of a numeric literal."""
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


def string_bytes(source: Source, token: Token) -> bytes:
    """The bytes of a string or character literal, escape sequences decoded."""
    try:
        return _decoded(token.text[1:-1])
    except ValueError as error:
        raise source.error(str(error), token.line, token.column, len(token.text)) from None


def character_value(source: Source, token: Token) -> int:
    """The value of a character literal, as signed char; the last one of several."""
    code = (string_bytes(source, token) or b"\0")[-1]
    return code - 256 if code > 127 else code


def _universal(letter: str, digits: str) -> bytes:
    r"""UTF-8 of \u1234 or \U00012345."""
    wanted = 4 if letter == "u" else 8
    if len(digits) < wanted or set(digits) - set("0123456789abcdefABCDEF"):
        raise ValueError(f"\\{letter} is followed by {wanted} hexadecimal digits")
    code = int(digits, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise ValueError(f"\\{letter}{digits} is no character")
    return chr(code).encode()


def _decoded(body: str) -> bytes:
    out = bytearray()
    i = 0
    while i < len(body):
        ch = body[i]
        if ch != "\\" or i + 1 >= len(body):
            out += ch.encode("utf-8", "surrogateescape")
            i += 1
            continue
        follow = body[i + 1]
        j = i + 2
        if follow == "x":
            while j < len(body) and body[j] in "0123456789abcdefABCDEF":
                j += 1
            out.append(int(body[i + 2 : j] or "0", 16) & 255)
        elif follow in "01234567":
            j = i + 1
            while j < len(body) and j < i + 4 and body[j] in "01234567":
                j += 1
            out.append(int(body[i + 1 : j], 8) & 255)
        elif follow in "uU":
            j = min(len(body), i + (6 if follow == "u" else 10))
            out += _universal(follow, body[i + 2 : j])
        else:
            out.append(ESCAPES.get(follow, ord(follow) & 255))
        i = j
    return bytes(out)
