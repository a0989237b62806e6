"""Bodies of header functions as marshalled tokens: a program parses a few of a thousand."""

from __future__ import annotations

import marshal

from tilewise.emulator.source.lexer import Token


def pack(tokens: list[Token]) -> bytes:
    return marshal.dumps([(t.kind, t.text, t.line, t.column, t.spaced) for t in tokens])


def tokens_of(body: list[Token] | bytes) -> list[Token]:
    """The tokens of a body, packed or not; packed ones lack `origin` and `hidden`."""
    return [Token(*fields) for fields in marshal.loads(body)] if isinstance(body, bytes) else body
