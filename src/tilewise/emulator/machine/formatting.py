"""printf's conversions, as in glibc."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tilewise.errors import LimitError

MAX_PLACES = 1 << 24  # width or precision of one number
MAX_DIGITS = 6  # of a width or precision that is certainly below MAX_PLACES
SPEC = re.compile(
    rb"%(?P<flags>[-+ #0']*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|-?\d+)?)?"
    rb"(?P<length>hh|h|ll|l|q|j|z|t|L)?(?P<kind>.)",
    re.S,
)
PYTHON_CONVERSIONS = {
    (b"", b"d"): ("i4x", (0, 1)), (b"", b"u"): ("I4x", (0, 1)), (b"", b"x"): ("I4x", (0, 1)),
    (b"l", b"d"): ("q", (2,)), (b"l", b"u"): ("Q", (3,)), (b"ll", b"d"): ("q", (2,)), (b"ll", b"u"): ("Q", (3,)),
    (b"z", b"u"): ("Q", (3,)), (b"z", b"d"): ("q", (2, 3)),
    (b"", b"f"): ("d", (4,)), (b"", b"e"): ("d", (4,)), (b"", b"g"): ("d", (4,)),
    (b"l", b"f"): ("d", (4,)), (b"l", b"g"): ("d", (4,)),
}  # fmt: skip
BITS = {b"hh": 8, b"h": 16, b"l": 64, b"ll": 64, b"q": 64, b"j": 64, b"z": 64, b"t": 64, b"L": 64}


@lru_cache(maxsize=512)
def pieces(text: bytes) -> list[bytes | tuple[bytes, bytes | None, bytes | None, bool, bytes, bytes]]:
    """Literal bytes and conversions (flags, width, precision, has a dot, length, kind)."""
    out: list[bytes | tuple[bytes, bytes | None, bytes | None, bool, bytes, bytes]] = []
    at = 0
    for match in SPEC.finditer(text):
        if match.start() > at:
            out.append(text[at : match.start()])
        at = match.end()
        if match["kind"] == b"%":
            out.append(b"%")
        else:
            dotted = b"." in match.group(0)[: match.start("kind") - match.start()]
            out.append(
                (match["flags"], match["width"], match["precision"], dotted, match["length"] or b"", match["kind"])
            )
    if at < len(text):
        out.append(text[at:])
    return out


@dataclass(frozen=True)
class PythonFormat:
    """A format that Python's % operator prints like C: how the arguments are unpacked, and their allowed tags."""

    template: str
    layout: struct.Struct  # tag and value of each
    fits: tuple[tuple[int, ...], ...]


@lru_cache(maxsize=512)
def python_format(text: bytes) -> PythonFormat | None:
    """None if a conversion is printed differently by C and Python."""
    template, layout, fits = "", "<", []
    for piece in pieces(text):
        if isinstance(piece, bytes):
            template += piece.decode("latin-1").replace("%", "%%")
            continue
        flags, width, precision, dotted, length, kind = piece
        known = PYTHON_CONVERSIONS.get((length, kind))
        if len(width or b"") > MAX_DIGITS or len(precision or b"") > MAX_DIGITS:
            return None
        if known is None or width == b"*" or precision == b"*" or b"'" in flags or b"#" in flags:
            return None
        if (
            (kind in b"feg" and b"0" in flags)
            or (kind in b"dux" and dotted)
            or (kind == b"x" and flags)
            or (kind == b"u" and flags.strip(b"-0"))
        ):
            return None
        read, tags = known
        places = "." + (precision or b"").decode() if dotted else ""
        letter = "d" if kind == b"u" else kind.decode()
        template += f"%{flags.decode()}{(width or b'').decode()}{places}{letter}"
        layout += "q" + read
        fits.append(tags)
    return PythonFormat(template, struct.Struct(layout), tuple(fits))


def format_quickly(how: PythonFormat, packed: bytes) -> bytes | None:
    """The text; None if an argument has another type than its conversion, or is NaN."""
    values = how.layout.unpack(packed)
    given = values[1::2]
    for tag, tags, value in zip(values[::2], how.fits, given, strict=True):
        if tag not in tags or value != value:
            return None
    return (how.template % given).encode("latin-1")


def check_places(places: int) -> None:
    """Refuse a width or a precision that needs too much memory."""
    if places > MAX_PLACES:
        raise LimitError(f"a width or precision of {places}: at most {MAX_PLACES} places are printed")


def formatted(
    text: bytes, arguments: list[tuple[int, int]], string: Callable[[int], bytes], misused: Callable[[str], None]
) -> bytes:
    """`arguments` are (tag, bits): 0 int, 1 unsigned, 2 long, 3 unsigned long, 4 double, 5 pointer, 6 an object."""
    out: list[bytes] = []
    given = iter(arguments)

    def take() -> tuple[int, int] | None:
        return next(given, None)

    for piece in pieces(text):
        if isinstance(piece, bytes):
            out.append(piece)
            continue
        flags, width, precision, dotted, length, kind = piece
        if width == b"*":
            got = take()
            number = _signed(got[1], 32) if got else 0
            if number < 0:
                flags += b"-"
            width = str(abs(number)).encode()
        if precision == b"*":
            got = take()
            precision = str(_signed(got[1], 32)).encode() if got else b"0"
        places = int(precision) if precision else (0 if dotted else None)
        check_places(max(int(width or 0), places or 0))
        if places is not None and places < 0:
            places = None
        argument = take()
        spec = f"%{(length + kind).decode('latin-1')}"
        if argument is None:
            misused(f"{spec} has no argument: the format asks for more values than are given")
            out.append(b"%" + flags + (width or b"") + length + kind)
            continue
        out.append(_one(flags, int(width or 0), places, length, kind, argument, string, misused, spec))
    if next(given, None) is not None:
        misused("the format uses fewer values than are given")
    return b"".join(out)


def _one(
    flags: bytes, width: int, places: int | None, length: bytes, kind: bytes, argument: tuple[int, int],
    string: Callable[[int], bytes], misused: Callable[[str], None], spec: str,
) -> bytes:  # fmt: skip
    tag, bits = argument
    types = ("int", "unsigned int", "long", "unsigned long", "double", "pointer", "value of a class type")
    if kind in b"dioxXuc":
        if tag in (4, 6) or (tag == 5 and kind == b"c"):
            misused(f"{spec} is for integers, the argument is a {types[tag]}")
        elif (
            tag in (2, 3, 5)
            and BITS.get(length, 32) < 64
            and kind != b"c"
            and not -(1 << 31) <= _signed(bits, 64) < 1 << 32
        ):
            misused(f"{spec} reads 32 bits, the argument is a {types[tag]}: %l{kind.decode()} prints all of it")
        return _integer(flags, width, places, length, kind, bits)
    if kind in b"fFeEgGaA":
        if tag != 4:
            misused(f"{spec} is for floating-point numbers, the argument is a {types[tag]}")
            value = 0.0
        else:
            value = struct.unpack("<d", struct.pack("<Q", bits & (1 << 64) - 1))[0]
        return real(flags, width, places, kind, value)
    if kind == b"s":
        if tag == 6:
            misused("%s is for char pointers, the argument is an object: use .c_str()")
            return b""
        if tag != 5:
            misused(f"%s is for strings, the argument is a {types[tag]}")
            return b""
        data = b"(null)" if bits == 0 else string(bits)
        if places is not None:
            data = data[:places]
        return _padded(data, flags, width)
    if kind == b"p":
        data = b"(nil)" if bits == 0 else f"{bits & (1 << 64) - 1:#x}".encode()
        return _padded(data, flags, width)
    return b"%" + flags + length + kind


def _padded(text: bytes, flags: bytes, width: int) -> bytes:
    return text.ljust(width) if b"-" in flags else text.rjust(width)


def _signed(bits: int, size: int) -> int:
    bits &= (1 << size) - 1
    return bits - (1 << size) if bits >> (size - 1) else bits


def _integer(flags: bytes, width: int, places: int | None, length: bytes, kind: bytes, bits: int) -> bytes:
    size = BITS.get(length, 32)
    if kind == b"c":
        data = bytes([bits & 255])
        return _padded(data, flags, width)
    sign = ""
    if kind in b"di":
        value = _signed(bits, size)
        sign = "-" if value < 0 else "+" if b"+" in flags else " " if b" " in flags else ""
        digits = str(abs(value))
    else:
        value = bits & (1 << size) - 1
        digits = {b"u": f"{value}", b"x": f"{value:x}", b"X": f"{value:X}", b"o": f"{value:o}"}[kind]
        if b"#" in flags and value:
            sign = {b"x": "0x", b"X": "0X", b"o": "0"}.get(kind, "")
    if places is not None:
        digits = digits.rjust(places, "0") if places or digits != "0" else ""
    if b"0" in flags and b"-" not in flags and places is None:
        digits = digits.rjust(width - len(sign), "0")
    text = (sign + digits).encode()
    return _padded(text, flags, width)


def real(flags: bytes, width: int, places: int | None, kind: bytes, value: float) -> bytes:
    upper = kind.isupper()
    letter = kind.decode().lower()
    sign = "-" if math.copysign(1, value) < 0 else "+" if b"+" in flags else " " if b" " in flags else ""
    zero = b"0" in flags
    if not math.isfinite(value):
        digits, zero = ("nan" if math.isnan(value) else "inf"), False
    elif letter == "a":
        digits = value.hex().lstrip("-")
    else:
        alternate = "#" if b"#" in flags else ""
        digits = f"%{alternate}.{6 if places is None else places}{letter}" % abs(value)
    if upper:
        digits = digits.upper()
    if zero and b"-" not in flags:
        digits = digits.rjust(width - len(sign), "0")
    text = (sign + digits).encode()
    return _padded(text, flags, width)
