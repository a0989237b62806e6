"""The parser's token stream, with the names that are types, templates and namespaces so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tilewise.emulator.parse import tree
from tilewise.emulator.parse.declared import Entities, Names
from tilewise.emulator.source.lexer import Token
from tilewise.emulator.source.source import Source, Span
from tilewise.errors import KernelError

MAX_NESTING = 120
ATTRIBUTES = ("__attribute__", "__declspec", "alignas", "__align__", "__launch_bounds__")


CLOSING = {"(": ")", "[": "]", "{": "}"}


class Reader(ABC):
    """The token stream, and the grammar's recursive rules: a type contains expressions (an array's length), a class
    contains any declaration, a lambda contains statements. `Parser` has the rules."""

    def __init__(
        self, source: Source, tokens: list[Token], names: Names, entities: Entities, scope: str = "",
        library: bool = False,
    ) -> None:  # fmt: skip
        self.source = source
        self.tokens = tokens
        self.position = 0
        self.names = names
        self.entities = entities  # declarations are added to them
        self.scope = scope
        self.library = library
        self.local_types: list[set[str]] = [set()]
        self.local_values: list[set[str]] = [set()]
        self.local_templates: set[str] = set()
        self.angle = 0  # inside template arguments, where > closes
        self.depth = 0
        self.lenient = False  # statements that cannot be parsed are skipped
        self.of_pack = False  # the tokens are one version of a variadic template
        self.splits: list[tuple[int, Token]] = []  # `>>` tokens of which one > was taken: position, original

    # -- recursive rules

    @abstractmethod
    def assignment(self) -> Any:
        """An expression without a comma operator."""

    @abstractmethod
    def comma(self) -> Any:
        """An expression."""

    @abstractmethod
    def arguments(self) -> list[Any]:
        """( … ) of a call."""

    @abstractmethod
    def braces(self) -> tree.Braces:
        """{ … } as a value."""

    @abstractmethod
    def lambda_(self) -> tree.Lambda:
        """[…] (…) { … }"""

    @abstractmethod
    def entity(self, template: list[tree.TemplateParameter]) -> None:
        """A declaration at file or class level."""

    @abstractmethod
    def local_entity(self) -> Any:
        """A class, enum, alias or static_assert inside a function; None if it is a variable."""

    # -- tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def advance(self) -> Token:
        token = self.tokens[self.position]
        if token.kind != "end":
            self.position += 1
        return token

    def at(self, text: str) -> bool:
        token = self.tokens[self.position]
        return token.text == text and token.kind in ("punct", "name")

    def take(self, text: str) -> bool:
        if self.at(text):
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        if not self.at(text):
            before = self.tokens[self.position - 1] if self.position else self.token
            if text == ";" and before.line < self.token.line:
                raise self.error("';' is missing after this", before)
            raise self.error(f"{text} is expected here, not {self.token.text or 'the end of the file'}")
        return self.advance()

    def since(self, start: Token) -> Span:
        """The span from `start` to the last token read; `start` alone if that is on another line."""
        last = self.tokens[max(0, self.position - 1)]
        if last.line == start.line and last.column >= start.column:
            return Span(start.line, start.column, last.column + len(last.text) - start.column)
        return Span(start.line, start.column, max(1, len(start.text)))

    def error(self, message: str, at: Any = None) -> KernelError:
        token = at or self.token
        return self.source.error(message, token.line, token.column, len(getattr(token, "text", "") or "x"))

    def rewind(self, position: int) -> None:
        self.position = position
        while self.splits and self.splits[-1][0] >= position:
            where, token = self.splits.pop()
            self.tokens[where] = token

    def close_angle(self) -> None:
        """Take the > that ends template arguments, also one of >>."""
        token = self.token
        if token.text in (">>", ">=", ">>="):
            self.splits.append((self.position, token))
            self.tokens[self.position] = token._replace(text=token.text[1:], column=token.column + 1)
            return
        self.expect(">")

    @contextmanager
    def angles(self) -> Iterator[None]:
        """Inside < >; takes the closing >."""
        kept, self.angle = self.angle, 1
        yield
        self.close_angle()
        self.angle = kept

    @contextmanager
    def brackets(self, close: str = "") -> Iterator[None]:
        """Inside ( ), [ ] or { }, where > is an operator again; takes `close`."""
        kept, self.angle = self.angle, 0
        with self.deeper():
            yield
        self.angle = kept
        if close:
            self.expect(close)

    def skip_past(self, text: str) -> None:
        while not self.at(text):
            self.advance()
        self.advance()

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.error(f"nested more than {MAX_NESTING} deep")
        try:
            yield
        finally:
            self.depth -= 1

    @contextmanager
    def local_scope(self) -> Iterator[None]:
        self.local_types.append(set())
        self.local_values.append(set())
        try:
            yield
        finally:
            self.local_types.pop()
            self.local_values.pop()

    def skip_balanced(self) -> list[Token]:
        """Skip to the closing bracket; the tokens from one bracket to the other. A brace closes what was left open
        inside it, and no other bracket closes a brace: where one is too many, the reader of the inside reports it."""
        start = self.position
        opened: list[str] = []
        while self.token.kind != "end":
            token = self.advance()
            if token.kind != "punct":
                continue
            if token.text in CLOSING:
                opened.append(CLOSING[token.text])
            elif token.text == "}" and "}" in opened:
                while opened.pop() != "}":
                    pass
            elif token.text == opened[-1]:
                opened.pop()
            elif token.text == "}":
                break
            if not opened:
                return self.tokens[start : self.position]
        raise self.error(f"this {self.tokens[start].text} is never closed", self.tokens[start])

    def skip_attributes(self) -> None:
        while True:
            if self.at("[") and self.peek().text == "[":
                self.skip_balanced()
            elif self.token.text in ATTRIBUTES:
                self.advance()
                if self.at("("):
                    self.skip_balanced()
            else:
                return

    # -- names

    def qualified(self) -> str:
        """Take `a::b::c`, a leading :: dropped."""
        self.take("::")
        parts = [self.advance().text]
        while self.at("::") and self.peek().kind == "name" and self.peek().text != "operator":
            self.advance()
            parts.append(self.advance().text)
        return "::".join(parts)

    def ahead_qualified(self, position: int) -> tuple[str, int]:
        """The qualified name at `position`, and where it ends; takes nothing."""
        tokens = self.tokens
        if tokens[position].text == "::":
            position += 1
        parts = [tokens[position].text]
        position = min(position + 1, len(tokens) - 1)  # of the end token the name is empty
        while tokens[position].text == "::" and tokens[position + 1].kind == "name":
            parts.append(tokens[position + 1].text)
            position += 2
        return "::".join(parts), position

    def local_type(self, name: str) -> bool | None:
        """True for a type of an inner scope, False for a variable, None if the name is not local."""
        for types, values in zip(reversed(self.local_types), reversed(self.local_values), strict=True):
            if name in values:
                return False
            if name in types:
                return True
        return None

    def type_name(self, name: str) -> str | None:
        """The qualified name of a type; None if `name` is no type."""
        local = self.local_type(name)
        if local is not None:
            return name if local else None
        return self.names.find(name, self.scope, self.names.types)

    def is_class_template(self, name: str) -> bool:
        if name in self.local_templates:
            return True
        return self.names.find(name, self.scope, self.names.class_templates) is not None

    def is_function_template(self, name: str) -> bool:
        return self.names.find(name, self.scope, self.names.function_templates) is not None
