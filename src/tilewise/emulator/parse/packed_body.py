"""Bodies of library functions as bytes: a program reads a few of the thousand that headers have."""

from __future__ import annotations

import marshal

from tilewise.emulator.source.lexer import Token


def pack(tokens: list[Token]) -> bytes:
    return marshal.dumps([(t.kind, t.text, t.line, t.column, t.spaced) for t in tokens])


def tokens_of(body: list[Token] | bytes) -> list[Token]:
    """The tokens of a body, packed or not; what macros they came from is no longer known of packed ones."""
    return [Token(*fields) for fields in marshal.loads(body)] if isinstance(body, bytes) else body
