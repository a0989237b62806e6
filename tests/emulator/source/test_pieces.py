"""Pieces of a source, as the lexer's one expression takes them."""

from __future__ import annotations

import tracemalloc

import pytest

from tilewise.emulator.source.lexer import PIECE
from tilewise.emulator.source.literal import character_value, string_value


@pytest.mark.parametrize("text", ["//" + "\\\n" * 10**6, "1'" * 10**6 + "1", "0x" + "f" * 10**6], ids=lambda t: t[:2])
def test_a_long_one_takes_no_memory_a_character(text):
    """An expression that keeps the way back took 250 bytes of it: a gigabyte for a file, within one call of C."""
    tracemalloc.start()
    try:
        piece = PIECE.match(text)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert piece is not None
    assert piece.group() == text
    assert taken < 10 * len(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [(r'"\033[1m\0"', "\x1b[1m\0"), (r'"\1018\x41g"', "A8Ag"), (r'"\v\f\?\\n\""', '\v\f?\\n"'), (r'"\0333"', "\x1b3")],
)
def test_escapes_are_undone_as_c_has_them(text, value):
    assert string_value(text) == value


def test_a_character_may_be_octal():
    assert [character_value(text) for text in (r"'\033'", r"'\0'", r"'\101'", r"'\377'")] == [27, 0, 65, -1]
