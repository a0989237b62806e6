"""The token stream with its symbol table, and types as C++ writes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

from tilewise.emulator.frontend import ctype
from tilewise.emulator.frontend.lexer import Token
from tilewise.emulator.frontend.source import Source
from tilewise.emulator.frontend.syntax import (
    ArrayType,
    AutoType,
    Expr,
    FixedType,
    NamedType,
    PointerType,
    ReferenceType,
    Span,
    TypeNode,
)  # fmt: skip
from tilewise.emulator.limits import DEFAULT, Limits
from tilewise.errors import KernelError, LimitError

T = TypeVar("T")
BASIC = {"void", "bool", "char", "short", "int", "long", "float", "double", "signed", "unsigned"}
QUALIFIERS = {
    "const",
    "volatile",
    "__restrict__",
    "__restrict",
    "restrict",
    "__const__",
    "register",
    "typename",
}
ELABORATED = {"struct", "class", "union", "enum"}
SUPPLIED_TYPES = {"Matrix", "DATA_TYPE", "DTYPE"}


class TypeParser(ABC):
    def __init__(self, source: Source, tokens: list[Token], limits: Limits = DEFAULT) -> None:
        self.source = source
        self.tokens = tokens
        self.limits = limits
        self.position = 0
        self.depth = 0
        self.angle = 0  # inside template arguments, where > closes
        self.launching = 0  # inside <<< >>>
        self.types: list[set[str]] = [set(ctype.NAMED) | set(ctype.BFLOAT_NAMES) | {"cudaError_t"}]
        self.values: list[set[str]] = [set()]
        self.templates: set[str] = set()
        self.type_templates: set[str] = set()
        self.namespaces = {
            b.text for a, b in pairwise(tokens) if a.text == "namespace" and b.kind == "name" and a.kind == "name"
        }

    # -- the stream

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def peek(self, ahead: int) -> Token:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def advance(self) -> Token:
        token = self.tokens[self.position]
        if token.kind != "end":
            self.position += 1
        return token

    def is_punct(self, text: str) -> bool:
        token = self.tokens[self.position]
        return token.text == text and token.kind == "punct"

    def is_word(self, text: str) -> bool:
        token = self.tokens[self.position]
        return token.text == text and token.kind == "name"

    def expect(self, text: str) -> Token:
        if not self.is_punct(text):
            got = self.token.text or "the end of the file"
            before = self.tokens[self.position - 1] if self.position else self.token
            if text == ";" and before.line < self.token.line:
                raise self.source.error(f"{text!r} is missing after this", before.line, before.column, len(before.text))
            raise self.refuse(f"{text!r} is expected here, not {got!r}")
        return self.advance()

    def refuse(self, message: str, token: Token | None = None) -> KernelError:
        at = token or self.token
        return self.source.error(message, at.line, at.column, max(1, len(at.text)))

    def span(self, start: Token) -> Span:
        last = self.tokens[max(0, self.position - 1)]
        if last.line == start.line and last.column >= start.column:
            return Span(start.line, start.column, last.column + len(last.text) - start.column)
        return Span(start.line, start.column, max(1, len(start.text)))

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > self.limits.nesting:
            line = self.token.line
            raise LimitError(f"{self.source.name}:{line}: nested more than {self.limits.nesting} deep")
        try:
            yield
        finally:
            self.depth -= 1

    def bracketed(self, parse: Callable[[], T]) -> T:
        """Inside brackets > and >> are operators again."""
        kept = self.angle, self.launching
        self.angle = self.launching = 0
        try:
            with self.deeper():
                return parse()
        finally:
            self.angle, self.launching = kept

    def in_angle(self, parse: Callable[[], T]) -> T:
        self.angle += 1
        try:
            return parse()
        finally:
            self.angle -= 1

    def close_angle(self) -> None:
        if self.is_punct(">>"):  # the first half closes; the second stays
            token = self.token
            half = Token("punct", ">", token.line, token.column + 1, hidden=token.hidden)
            self.tokens[self.position] = half
            return
        self.expect(">")

    # -- the symbol table

    def declare_type(self, name: str) -> None:
        self.types[-1].add(name)

    def declare_value(self, name: str) -> None:
        self.values[-1].add(name)

    @contextmanager
    def scope(self) -> Iterator[None]:
        self.types.append(set())
        self.values.append(set())
        try:
            yield
        finally:
            self.types.pop()
            self.values.pop()

    def is_type(self, name: str) -> bool:
        for types, values in zip(reversed(self.types), reversed(self.values), strict=True):
            if name in values:
                return False
            if name in types:
                return True
        return name in SUPPLIED_TYPES

    def is_value(self, name: str) -> bool:
        return any(name in values for values in self.values)

    def is_template(self, name: str) -> bool:
        return name in self.templates and not self.is_value(name)

    def starts_type(self, ahead: int) -> bool:
        token = self.peek(ahead)
        if token.kind != "name":
            return False
        text = token.text
        if text in BASIC or text in QUALIFIERS or text in ELABORATED or text == "auto":
            return True
        if text == "std" and self.peek(ahead + 1).text == "::":
            return self.is_type(self.peek(ahead + 2).text) and self.peek(ahead + 2).text in ctype.NAMED
        return self.is_type(text)

    # -- types

    def qualified_name(self) -> str:
        parts = [self.advance().text]
        while self.is_punct("::"):
            self.advance()
            if self.token.kind != "name":
                raise self.refuse("a name is expected after ::")
            parts.append(self.advance().text)
        while len(parts) > 1 and (parts[0] == "std" or parts[0] in self.namespaces):
            parts.pop(0)
        return "::".join(parts)

    def template_arguments(self) -> list[Any]:
        self.expect("<")
        arguments: list[Any] = []

        def parse() -> None:
            while not self.is_punct(">") and not self.is_punct(">>"):
                if self.starts_type(0):
                    arguments.append(self.type_name())
                else:
                    arguments.append(self.template_value())
                if not self.is_punct(","):
                    break
                self.advance()

        with self.deeper():
            self.in_angle(parse)
        self.close_angle()
        return arguments

    @abstractmethod
    def template_value(self) -> Expr:
        """Filled in further up the chain."""

    @abstractmethod
    def array_length(self) -> Expr | None:
        """Filled in further up the chain."""

    def specifiers(self, words: set[str] | None = None) -> tuple[TypeNode, bool]:
        """The type before any * or name, and whether it is const. `words` collects storage words."""
        start = self.token
        basic: list[str] = []
        const = False
        named: TypeNode | None = None
        while self.token.kind == "name":
            text = self.token.text
            if words is not None and text in STORAGE:
                words.add(text)
                self.advance()
                if text in ("__launch_bounds__", "__align__", "alignas", "__attribute__"):
                    self.skip_brackets()
                continue
            if text in QUALIFIERS:
                const = const or text in ("const", "__const__")
                if text == "const" and words is not None:
                    words.add("const")
                self.advance()
            elif text in BASIC and named is None:
                basic.append(text)
                self.advance()
            elif named is None and not basic:
                if text in ELABORATED:
                    self.advance()
                    if self.token.kind != "name":
                        raise self.refuse("a nameless struct is not supported here")
                    named = NamedType(self.qualified_name(), span=self.span(start))
                elif text == "auto":
                    self.advance()
                    named = AutoType(span=self.span(start))
                else:
                    first = self.token
                    name = self.qualified_name()
                    arguments: list[Any] = []
                    if self.is_punct("<") and (name in self.type_templates):
                        arguments = self.template_arguments()
                    named = NamedType(name, arguments, span=self.span(first))
            else:
                break
        if basic:
            return FixedType(self._basic(basic, start), span=self.span(start)), const
        if named is None:
            raise self.refuse("a type is expected here")
        return named, const

    def _basic(self, words: list[str], token: Token) -> ctype.Type:
        key = tuple(sorted(w for w in words if w not in ("signed", "unsigned", "int")))
        unsigned = "unsigned" in words
        table: dict[tuple[str, ...], tuple[ctype.Type, ctype.Type | None]] = {
            (): (ctype.INT, ctype.UINT),
            ("char",): (ctype.SCHAR if "signed" in words else ctype.CHAR, ctype.UCHAR),
            ("short",): (ctype.SHORT, ctype.USHORT),
            ("long",): (ctype.LONG, ctype.ULONG),
            ("long", "long"): (ctype.LLONG, ctype.ULLONG),
            ("float",): (ctype.FLOAT, None),
            ("double",): (ctype.DOUBLE, None),
            ("double", "long"): (ctype.LONGDOUBLE, None),
            ("bool",): (ctype.BOOL, None),
            ("void",): (ctype.VOID, None),
        }
        pair = table.get(key)
        found = None if pair is None else pair[1] if unsigned else pair[0]
        if found is None:
            raise self.refuse(f"{' '.join(words)} is not a type", token)
        return found

    def skip_brackets(self) -> None:
        """Step over a bracketed group, whatever it holds."""
        if not self.is_punct("("):
            return
        depth = 0
        while self.token.kind != "end":
            if self.is_punct("("):
                depth += 1
            elif self.is_punct(")"):
                depth -= 1
                if depth == 0:
                    self.advance()
                    return
            self.advance()

    def pointers(self, type_: TypeNode, const: bool) -> TypeNode:
        while self.token.kind == "punct" and self.token.text in ("*", "&", "&&"):
            token = self.advance()
            if token.text == "*":
                type_ = PointerType(type_, const, span=self.span(token))
                const = False
            else:
                type_ = ReferenceType(type_, const, span=self.span(token))
            while self.token.kind == "name" and self.token.text in QUALIFIERS:
                const = const or self.token.text == "const"
                self.advance()
        return type_

    def suffixes(self, type_: TypeNode) -> TypeNode:
        """[4][5] after a name, innermost last."""
        lengths: list[tuple[Token, Expr | None]] = []
        while self.is_punct("["):
            token = self.advance()
            lengths.append((token, self.array_length()))
            self.expect("]")
        for token, length in reversed(lengths):
            type_ = ArrayType(type_, length, span=self.span(token))
        return type_

    def type_name(self, declarators: bool = True) -> TypeNode:
        type_, const = self.specifiers()
        if not declarators:
            return type_
        type_ = self.pointers(type_, const)
        if self.is_punct("(") and self.peek(1).text in ("*", "&"):
            return self.pointer_to_array(type_)[0]
        return self.suffixes(type_)

    def pointer_to_array(self, type_: TypeNode) -> tuple[TypeNode, str]:
        """`float (*A)[N]` and `float (&A)[N]`: the type, and the name if there is one."""
        self.expect("(")
        token = self.advance()
        while self.token.text in QUALIFIERS:
            self.advance()
        name = self.advance().text if self.token.kind == "name" else ""
        inner_lengths: list[tuple[Token, Expr | None]] = []
        while self.is_punct("["):
            at = self.advance()
            inner_lengths.append((at, self.array_length()))
            self.expect("]")
        self.expect(")")
        if self.is_punct("("):
            raise self.refuse("pointers to functions are not supported")
        type_ = self.suffixes(type_)
        kind = PointerType if token.text == "*" else ReferenceType
        result: TypeNode = kind(type_, span=self.span(token))
        for at, length in reversed(inner_lengths):
            result = ArrayType(result, length, span=self.span(at))
        return result, name


STORAGE = {
    "__shared__", "__device__", "__global__", "__host__", "__constant__", "__managed__", "__forceinline__",
    "__noinline__", "__inline__", "inline", "static", "extern", "constexpr", "consteval", "mutable", "virtual",
    "explicit", "friend", "__launch_bounds__", "__align__", "alignas", "__attribute__", "__inline",
    "thread_local", "__grid_constant__", "__maxnreg__", "__cluster_dims__",
}  # fmt: skip
