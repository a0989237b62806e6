"""Several files under one numbering of lines."""

from __future__ import annotations

from tilewise.emulator.source.lexer import Token, tokenize
from tilewise.emulator.source.source import SPAN, Place, Source
from tilewise.errors import KernelError


class Sources(Source):
    """Several files under one numbering of lines."""

    def __init__(self, main: Source) -> None:
        super().__init__(main.name, main.text)
        self.others: list[Source] = []

    def add(self, source: Source) -> int:
        """Add a file; the offset of its lines."""
        self.others.append(source)
        return len(self.others) * SPAN

    def _locate(self, line: int) -> tuple[Source | None, int]:
        number, rest = divmod(line, SPAN)
        return (self.others[number - 1] if number else None), rest

    def line(self, number: int) -> str:
        other, rest = self._locate(number)
        return super().line(number) if other is None else other.line(rest)

    def place(self, line: int, column: int, length: int = 1) -> Place:
        other, rest = self._locate(line)
        return super().place(line, column, length) if other is None else other.place(rest, column, length)

    def error(self, message: str, line: int, column: int, length: int = 1) -> KernelError:
        other, rest = self._locate(line)
        if other is None:
            return super().error(message, line, column, length)
        return other.error(message, rest, column, length)


def placed_tokens(sources: Sources, source: Source) -> list[Token]:
    """Add a file; its tokens."""
    shift = sources.add(source)
    return [Token(t.kind, t.text, t.line + shift, t.column, t.spaced) for t in tokenize(source)]
