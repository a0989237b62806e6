"""Structs, typedefs, aliases and enums."""

from __future__ import annotations

from tilewise.emulator.frontend import ctype
from tilewise.emulator.frontend.lexer import Token
from tilewise.emulator.frontend.parse_stmt import StmtParser
from tilewise.emulator.frontend.source import Source
from tilewise.emulator.frontend.syntax import (
    Binary,
    Declarator,
    Expr,
    File,
    FixedType,
    NamedType,
    Number,
    Span,
    StructDefinition,
    TemplateParameter,
    TypeNode,
)  # fmt: skip
from tilewise.emulator.limits import DEFAULT, Limits


class StructParser(StmtParser):
    def __init__(self, source: Source, tokens: list[Token], limits: Limits = DEFAULT) -> None:
        super().__init__(source, tokens, limits)
        self.file = File()

    def _skip_to(self, text: str) -> None:
        while self.token.kind != "end" and not self.is_punct(text):
            self.advance()
        if self.token.kind != "end":
            self.advance()

    def _named(self, name: str, span: Span) -> TypeNode:
        return NamedType(name, span=span)

    def _defines_struct(self) -> bool:
        i = 1
        while self.peek(i).kind == "name" or self.peek(i).text in ("(", ")"):
            i += 1
            if self.peek(i - 1).text == "(":
                while self.peek(i).kind != "end" and self.peek(i).text != ")":
                    i += 1
        return self.peek(i).text in ("{", ":")

    def _struct(self, template: list[TemplateParameter]) -> StructDefinition:
        start = self.advance()
        if start.text == "union":
            raise self.refuse("unions are not supported", start)
        alignment = 1
        while self.token.text in ("__align__", "alignas", "__attribute__"):
            self.advance()
            mark = self.position
            self.skip_brackets()
            numbers = [t.text for t in self.tokens[mark : self.position] if t.kind == "number"]
            alignment = int(numbers[0], 0) if numbers and numbers[0].isdigit() else 16
        name = self.advance().text if self.token.kind == "name" else f"<struct at {start.line}>"
        if self.is_punct(":"):
            raise self.refuse("base classes are not supported")
        self.declare_type(name)
        self.expect("{")
        members: list[Declarator] = []
        with self.scope(), self.deeper():
            while not self.is_punct("}"):
                if self.token.text in ("public", "private", "protected") and self.peek(1).text == ":":
                    self.advance()
                    self.advance()
                    continue
                declaration = self.declaration()
                if any(d.arguments is not None for d in declaration.items):
                    raise self.refuse("member functions are not supported", start)
                members.extend(declaration.items)
        self.advance()
        definition = StructDefinition(name, members, alignment, template, span=self.span(start))
        self.file.structs[name] = definition
        return definition

    def _typedef(self) -> None:
        self.advance()
        if self.token.text in ("struct", "class", "union") and self._defines_struct():
            definition = self._struct([])
            base: TypeNode = self._named(definition.name, definition.span)
            const = False
        elif self.token.text == "enum":
            self._enum(closed=False)
            base, const = FixedType(ctype.INT, span=self.span(self.token)), False
        else:
            base, const = self.specifiers()
        while True:
            type_ = self.pointers(base, const)
            if self.token.kind != "name":
                raise self.refuse("a name is expected here")
            name = self.advance().text
            self.file.typedefs[name] = self.suffixes(type_)
            self.declare_type(name)
            if not self.is_punct(","):
                break
            self.advance()
        self.expect(";")

    def _alias(self) -> None:
        self.advance()
        name = self.advance().text
        if not self.is_punct("="):
            self._skip_to(";")
            return
        self.advance()
        self.file.typedefs[name] = self.type_name()
        self.declare_type(name)
        self.expect(";")

    def _enum(self, closed: bool = True) -> None:
        start = self.advance()
        if self.token.text in ("class", "struct"):
            self.advance()
        if self.token.kind == "name":
            name = self.advance().text
            self.declare_type(name)
            self.file.typedefs[name] = FixedType(ctype.INT, span=self.span(start))
        if self.is_punct(":"):
            self.advance()
            self.type_name()
        self.expect("{")
        previous: Expr | None = None
        one = Number(ctype.INT, ctype.INT.dtype.type(1), span=self.span(start))
        while not self.is_punct("}"):
            if self.token.kind != "name":
                raise self.refuse("a name is expected here")
            token = self.advance()
            if self.is_punct("="):
                self.advance()
                value: Expr = self.bracketed(self.assignment)
            elif previous is None:
                value = Number(ctype.INT, ctype.INT.dtype.type(0), span=self.span(token))
            else:
                value = Binary("+", previous, one, span=self.span(token))
            self.file.constants[token.text] = previous = value
            self.declare_value(token.text)
            if not self.is_punct(","):
                break
            self.advance()
        self.expect("}")
        if closed:
            self.expect(";")
