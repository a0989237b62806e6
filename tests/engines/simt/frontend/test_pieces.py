"""Pieces of a source, as the lexer's one expression takes them."""

from __future__ import annotations

import tracemalloc

import pytest

from tilewise.engines.simt.frontend.lexer import PIECE


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
