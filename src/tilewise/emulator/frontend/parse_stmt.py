"""Statements and local declarations; and the lenient reading of host code, where what is foreign is left aside."""

from __future__ import annotations

from tilewise.emulator.frontend.parse_expr import ExprParser
from tilewise.emulator.frontend.parse_type import STORAGE
from tilewise.emulator.frontend.syntax import (
    AutoType,
    Block,
    Case,
    Declaration,
    Declarator,
    Expr,
    ExprStmt,
    For,
    If,
    Jump,
    NamedType,
    Opaque,
    Return,
    Stmt,
    Switch,
    TypeNode,
    While,
)  # fmt: skip
from tilewise.errors import KernelError

DECLARATION_START = STORAGE | {"const", "volatile"}


ASSIGNING = ("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^=", "++", "--")


class StmtParser(ExprParser):
    lenient = False  # in host code: a statement that is not understood becomes `Opaque`

    def template_value(self) -> Expr:
        return self.binary(3)

    def array_length(self) -> Expr | None:
        return None if self.is_punct("]") else self.bracketed(self.assignment)

    def block(self) -> Block:
        start = self.expect("{")
        body: list[Stmt] = []
        with self.scope(), self.deeper():
            while not self.is_punct("}"):
                if self.token.kind == "end":
                    raise self.refuse("this { is never closed", start)
                body.append(self.statement())
        self.advance()
        return Block(body, span=self.span(start))

    def statement(self) -> Stmt:
        if not self.lenient:
            with self.deeper():
                return self.one_statement()
        mark, depth = self.position, self.depth
        try:
            with self.deeper():
                return self.one_statement()
        except KernelError as error:
            self.position, self.depth, self.angle, self.launching = mark, depth, 0, 0
            return self.left_aside(error)

    def left_aside(self, error: KernelError) -> Opaque:
        """Skip to the end of the statement, brackets matched; remember the names in it."""
        start = self.token
        names: set[str] = set()
        mentioned: set[str] = set()
        depth = 0
        while self.token.kind != "end":
            token = self.token
            if token.kind == "name":
                mentioned.add(token.text)
                if self._may_change():
                    names.add(token.text)
            elif token.kind == "punct":
                if token.text in ("(", "[", "{"):
                    depth += 1
                elif token.text in (")", "]", "}"):
                    if depth == 0:
                        break
                    depth -= 1
                    if depth == 0 and token.text == "}":
                        self.advance()
                        if self.is_punct(";"):
                            self.advance()
                        break
                elif token.text == ";" and depth == 0:
                    self.advance()
                    break
            self.advance()
        if self.token is start:
            self.advance()
        return Opaque(error.message, frozenset(names), frozenset(mentioned), span=self.span(start))

    def _may_change(self) -> bool:
        """Whether the name here is assigned to, stepped, read into or has its address taken."""
        before, after = self.peek(-1).text if self.position else "", self.peek(1).text
        return before in ("&", "++", "--", ">>") or after in ASSIGNING

    def one_statement(self) -> Stmt:
        token = self.token
        text = token.text
        if token.kind == "punct":
            if text == "{":
                return self.block()
            if text == ";":
                self.advance()
                return Block([], span=self.span(token))
            return self.expression_statement()
        if token.kind == "name":
            method = {
                "if": self.if_, "for": self.for_, "while": self.while_, "do": self.do_, "switch": self.switch,
                "return": self.return_,
            }.get(text)  # fmt: skip
            if method is not None:
                return method()
            if text in ("break", "continue"):
                self.advance()
                self.expect(";")
                return Jump(text, span=self.span(token))
            if text in ("case", "default"):
                return self.case()
            if text in ("typedef", "using", "struct", "enum", "static_assert") and self.local_definition():
                return Block([], span=self.span(token))
            if text in ("goto", "asm", "__asm__", "try"):
                raise self.refuse(f"{text} is not supported")
            if self.starts_declaration():
                return self.declaration()
        return self.expression_statement()

    def local_definition(self) -> bool:
        """A typedef or struct inside a function; overridden where files are read."""
        return False

    def expression_statement(self) -> Stmt:
        start = self.token
        value = self.expression()
        self.expect(";")
        return ExprStmt(value, span=self.span(start))

    def starts_declaration(self) -> bool:
        token = self.token
        if token.kind != "name":
            return False
        if token.text in DECLARATION_START:
            return True
        if self.starts_type(0):
            # `float4{…}.x` or `T(x)` as a statement would be odd enough: a type starts a declaration
            return not (self.peek(1).text in ("(", "{") and token.text not in ("auto",))
        if self.is_value(token.text):
            return False
        one, two = self.peek(1), self.peek(2)
        if one.kind == "name" and one.text not in ("and", "or"):
            return True  # `Unknown name`: a type that is not there; the message comes when it is needed
        if one.text in ("*", "&") and two.kind == "name" and self.peek(3).text in ("=", ";", ",", "["):
            return not self.is_value(two.text)
        if one.text == "::" or (self.lenient and one.text == "<"):
            return self._qualified_declaration()
        return False

    def _qualified_declaration(self) -> bool:
        """`std::vector<float> a(n);`: a name, maybe with template arguments, then a name."""
        i, depth = 0, 0
        while i < 60:
            token = self.peek(i)
            if token.kind == "punct" and token.text == "<":
                depth += 1
            elif token.kind == "punct" and token.text == ">":
                depth -= 1
            elif token.kind == "punct" and token.text == ">>":
                depth -= 2
            elif token.kind == "punct" and token.text not in ("::", ",", "*", "&"):
                return False
            elif depth == 0 and token.kind == "name" and i and self.peek(i - 1).text not in ("::", "<", ","):
                return True
            i += 1
        return False

    def declaration(self) -> Declaration:
        start = self.token
        words: set[str] = set()
        base, const = self.specifiers(words)
        if self.lenient and self.is_punct("<") and isinstance(base, NamedType):
            self._skip_angles()
        items = [self.declarator(base, const)]
        while self.is_punct(","):
            self.advance()
            items.append(self.declarator(base, const))
        self.expect(";")
        return Declaration(items, frozenset(words), span=self.span(start))

    def _skip_angles(self) -> None:
        depth = 0
        while self.token.kind != "end":
            depth += {"<": 1, ">": -1, ">>": -2}.get(self.token.text, 0)
            self.advance()
            if depth <= 0:
                return

    def declarator(self, base: TypeNode, const: bool) -> Declarator:
        start = self.token
        type_ = self.pointers(base, const)
        if self.is_punct("(") and self.peek(1).text in ("*", "&"):
            type_, name = self.pointer_to_array(type_)
        else:
            while self.token.kind == "name" and self.token.text in STORAGE:
                word = self.advance().text
                if word in ("__align__", "alignas", "__attribute__"):
                    self.skip_brackets()
            if self.token.kind != "name":
                raise self.refuse("a name is expected here")
            start = self.token
            name = self.advance().text
            type_ = self.suffixes(type_)
        self.declare_value(name)
        init: Expr | None = None
        arguments: list[Expr] | None = None
        if self.is_punct("="):
            self.advance()
            init = self.braces() if self.is_punct("{") else self.assignment()
        elif self.is_punct("{"):
            init = self.braces()
        elif self.is_punct("("):
            arguments = self.arguments()
        elif isinstance(type_, AutoType):
            raise self.refuse(f"auto {name} needs a value")
        return Declarator(name, type_, init, arguments, span=self.span(start))

    def parenthesised(self) -> Expr:
        self.expect("(")
        value = self.bracketed(self.expression)
        self.expect(")")
        return value

    def if_(self) -> Stmt:
        start = self.advance()
        if self.is_word("constexpr"):
            self.advance()
        condition = self.parenthesised()
        span = self.span(start)
        with self.scope():
            yes = self.statement()
        no: Stmt | None = None
        if self.is_word("else"):
            self.advance()
            with self.scope():
                no = self.statement()
        return If(condition, yes, no, span=span)

    def for_(self) -> Stmt:
        start = self.advance()
        self.expect("(")
        with self.scope():
            init: Stmt | None = None
            if self.is_punct(";"):
                self.advance()
            elif self.starts_declaration():
                init = self.declaration()
            else:
                init = self.expression_statement()
            condition = None if self.is_punct(";") else self.bracketed(self.expression)
            self.expect(";")
            step = None if self.is_punct(")") else self.bracketed(self.expression)
            self.expect(")")
            span = self.span(start)
            body = self.statement()
        return For(init, condition, step, body, span=span)

    def while_(self) -> Stmt:
        start = self.advance()
        condition = self.parenthesised()
        span = self.span(start)
        with self.scope():
            body = self.statement()
        return While(condition, body, span=span)

    def do_(self) -> Stmt:
        start = self.advance()
        with self.scope():
            body = self.statement()
        if not self.is_word("while"):
            raise self.refuse("while is expected here")
        self.advance()
        condition = self.parenthesised()
        self.expect(";")
        return While(condition, body, True, span=self.span(start))

    def switch(self) -> Stmt:
        start = self.advance()
        value = self.parenthesised()
        span = self.span(start)
        body = self.block()
        return Switch(value, body.body, span=span)

    def case(self) -> Stmt:
        token = self.advance()
        value = self.binary(3) if token.text == "case" else None
        self.expect(":")
        return Case(value, span=self.span(token))

    def return_(self) -> Stmt:
        token = self.advance()
        value: Expr | None = None
        if not self.is_punct(";"):
            value = self.braces() if self.is_punct("{") else self.expression()
        self.expect(";")
        return Return(value, span=self.span(token))
