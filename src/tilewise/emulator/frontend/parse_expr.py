"""Expressions: a Pratt parser that asks the symbol table what is a type and what a template before it decides."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.frontend import ctype, literal
from tilewise.emulator.frontend.lexer import Token
from tilewise.emulator.frontend.parse_type import TypeParser
from tilewise.emulator.frontend.syntax import (
    Assign,
    Binary,
    Braces,
    Call,
    Cast,
    Construct,
    Expr,
    Index,
    Launch,
    Member,
    Name,
    Number,
    SizeOf,
    Step,
    Ternary,
    Text,
    Unary,
)  # fmt: skip

LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"),
    ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
PRECEDENCE = {op: level + 3 for level, ops in enumerate(LEVELS) for op in ops}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
CASTS = {"static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"}
UNSUPPORTED = {
    "asm": "inline assembly",
    "__asm__": "inline assembly",
    "new": "new",
    "delete": "delete",
    "throw": "exceptions",
    "co_await": "coroutines",
    "goto": "goto",
    "try": "exceptions",
}


class ExprParser(TypeParser):
    def expression(self) -> Expr:
        """With commas."""
        start = self.token
        left = self.assignment()
        while self.is_punct(","):
            self.advance()
            right = self.assignment()
            left = Binary(",", left, right, span=self.span(start))
        return left

    def assignment(self) -> Expr:
        with self.deeper():
            start = self.token
            left = self.binary(3)
            if self.is_punct("?"):
                self.advance()
                yes = self.bracketed(self.expression)
                self.expect(":")
                no = self.assignment()
                return Ternary(left, yes, no, span=self.span(start))
            if self.token.kind == "punct" and self.token.text in ASSIGNMENTS:
                op = self.advance().text[:-1]
                value = self.braces() if self.is_punct("{") else self.assignment()
                return Assign(op, left, value, span=self.span(start))
            return left

    def binary(self, least: int) -> Expr:
        start = self.token
        left = self.unary()
        while True:
            token = self.token
            level = PRECEDENCE.get(token.text) if token.kind == "punct" else None
            if level is None or level < least or self.closes(token):
                return left
            self.advance()
            right = self.binary(level + 1)
            left = Binary(token.text, left, right, span=self.span(start))

    def closes(self, token: Token) -> bool:
        """Whether this > or >> ends template arguments or a launch configuration."""
        if self.angle and token.text in (">", ">>"):
            return True
        if self.launching and token.text == ">>":
            after = self.peek(1)
            return after.text == ">" and after.line == token.line and after.column == token.column + 2
        return False

    def unary(self) -> Expr:
        token = self.token
        if token.kind == "punct":
            if token.text in ("+", "-", "!", "~", "*", "&"):
                self.advance()
                with self.deeper():
                    operand = self.unary()
                return Unary(token.text, operand, span=self.span(token))
            if token.text in ("++", "--"):
                self.advance()
                with self.deeper():
                    operand = self.unary()
                return Step(token.text, operand, True, span=self.span(token))
            if token.text == "(" and self.starts_type(1):
                mark = self.position
                self.advance()
                type_ = self.type_name()
                if self.is_punct(")"):
                    self.advance()
                    if self.is_punct("{"):
                        return Construct(type_, self.braces().items, span=self.span(token))
                    with self.deeper():
                        operand = self.unary()
                    return Cast(type_, operand, span=self.span(token))
                self.position = mark
            if token.text == "[":
                raise self.refuse("lambdas are not supported")
        elif token.kind == "name":
            if token.text == "sizeof":
                return self.sizeof()
            if token.text in UNSUPPORTED:
                raise self.refuse(f"{UNSUPPORTED[token.text]} is not supported")
        return self.postfix(self.primary(), token)

    def sizeof(self) -> Expr:
        token = self.advance()
        if self.is_punct("(") and self.starts_type(1):
            self.advance()
            type_ = self.type_name()
            self.expect(")")
            return SizeOf(type_, None, span=self.span(token))
        with self.deeper():
            operand = self.unary()
        return SizeOf(None, operand, span=self.span(token))

    def postfix(self, left: Expr, start: Token) -> Expr:
        while True:
            token = self.token
            if token.kind != "punct":
                return left
            if token.text == "[":
                self.advance()
                index = self.bracketed(self.expression)
                self.expect("]")
                left = Index(left, index, span=self.span(start))
            elif token.text in (".", "->"):
                self.advance()
                if self.token.kind != "name":
                    raise self.refuse("the name of a member is expected here")
                name = self.advance().text
                if self.is_punct("("):
                    raise self.refuse("member functions are not supported", token)
                left = Member(left, name, token.text == "->", span=self.span(start))
            elif token.text in ("++", "--"):
                self.advance()
                left = Step(token.text, left, False, span=self.span(start))
            elif token.text == "(":
                if not isinstance(left, Name):
                    raise self.refuse("only a named function can be called")
                arguments = self.arguments()
                left = Call(left.name, arguments, left.arguments, span=self.span(start))
            elif token.text == "<<<" and isinstance(left, Name):
                left = self.launch(left, start)
            else:
                return left

    def launch(self, kernel: Name, start: Token) -> Expr:
        self.advance()
        self.launching += 1
        configuration = [self.assignment()]
        while self.is_punct(","):
            self.advance()
            configuration.append(self.assignment())
        self.launching -= 1
        if not (self.is_punct(">>") and self.peek(1).text == ">"):
            raise self.refuse(">>> is expected here")
        self.advance()
        self.advance()
        span = self.span(start)
        return Launch(kernel, configuration, self.arguments(), span=span)

    def arguments(self) -> list[Expr]:
        self.expect("(")
        return self.bracketed(lambda: self.list_until(")"))

    def list_until(self, close: str) -> list[Expr]:
        items: list[Expr] = []
        while not self.is_punct(close):
            items.append(self.braces() if self.is_punct("{") else self.assignment())
            if not self.is_punct(","):
                break
            self.advance()
        self.expect(close)
        return items

    def braces(self) -> Braces:
        start = self.expect("{")
        with self.deeper():
            items = self.bracketed(lambda: self.list_until("}"))
        return Braces(items, span=self.span(start))

    def primary(self) -> Expr:
        token = self.token
        if token.kind == "number":
            self.advance()
            type_, value = literal.number(self.source, token)
            return Number(type_, value, token.origin, span=self.span(token))
        if token.kind == "char":
            self.advance()
            value = ctype.CHAR.dtype.type(literal.character_value(token.text))
            return Number(ctype.CHAR, value, span=self.span(token))
        if token.kind == "string":
            parts = []
            while self.token.kind == "string":
                parts.append(literal.string_value(self.advance().text))
            return Text("".join(parts), span=self.span(token))
        if token.kind == "name":
            return self.named()
        if token.text == "(":
            self.advance()
            inner = self.bracketed(self.expression)
            self.expect(")")
            inner.span = self.span(token)
            return inner
        if token.kind == "end":
            raise self.refuse("the file ends here, in the middle of an expression")
        raise self.refuse(f"{token.text!r} is not expected here")

    def named(self) -> Expr:
        token = self.token
        text = token.text
        if text in ("true", "false"):
            self.advance()
            return Number(ctype.BOOL, ctype.BOOL.dtype.type(text == "true"), span=self.span(token))
        if text in CASTS:
            self.advance()
            self.expect("<")
            type_ = self.in_angle(self.type_name)
            self.close_angle()
            self.expect("(")
            operand = self.bracketed(self.expression)
            self.expect(")")
            return Cast(type_, operand, text == "reinterpret_cast", span=self.span(token))
        if self.starts_type(0):
            type_ = self.type_name(declarators=False)
            if self.is_punct("{"):
                return Construct(type_, self.braces().items, span=self.span(token))
            if self.is_punct("("):
                return Construct(type_, self.arguments(), span=self.span(token))
            raise self.refuse(f"{text} is a type; a value is expected here", token)
        name = self.qualified_name()
        arguments: list[Any] | None = None
        if self.is_punct("<") and self.is_template(name):
            arguments = self.template_arguments()
        return Name(name, arguments, span=self.span(token))
