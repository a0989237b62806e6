"""Statements and local declarations."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.parse import read_type, tree
from tilewise.emulator.parse.inline_ptx import assembly
from tilewise.emulator.parse.read_expression import arguments, assignment, braces, comma
from tilewise.emulator.parse.reading import ATTRIBUTES, Reader
from tilewise.emulator.source.lexer import Token
from tilewise.errors import KernelError

ASSIGNING = ("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^=", "++", "--")


def block(reader: Reader) -> tree.Block:
    token = reader.expect("{")
    body: list[Any] = []
    with reader.local_scope(), reader.deeper():
        while not reader.at("}"):
            if reader.token.kind == "end":
                raise reader.error("this { is never closed", token)
            body.append(statement(reader))
    reader.advance()
    return tree.Block(body, line=token.line, column=token.column)


def statement(reader: Reader) -> Any:
    token = reader.token
    if not reader.lenient:
        made = _statement(reader, token)
    else:
        mark, depth, angle = reader.position, reader.depth, reader.angle
        scopes = len(reader.local_types)
        try:
            made = _statement(reader, token)
        except KernelError:
            reader.rewind(mark)
            reader.depth, reader.angle = depth, angle
            del reader.local_types[scopes:], reader.local_values[scopes:]
            made = _unread(reader)
    if made.extent is None:
        made.extent = reader.since(token)
    return made


def _unread(reader: Reader) -> tree.Unread:
    """Skip a statement that cannot be parsed, brackets matched."""
    start = reader.token
    changed, mentioned, depth = set(), set(), 0
    while reader.token.kind != "end":
        token = reader.token
        if token.kind == "name":
            mentioned.add(token.text)
            before = reader.tokens[reader.position - 1].text if reader.position else ""
            if before in ("&", "++", "--", ">>") or reader.peek().text in ASSIGNING:
                changed.add(token.text)
        elif token.text in ("(", "[", "{"):
            depth += 1
        elif token.text in (")", "]", "}"):
            depth -= 1
            if depth < 0:
                break
        reader.advance()
        if depth == 0 and token.text in (";", "}"):
            if token.text == "}":
                reader.take(";")
            break
    if reader.token is start:
        reader.advance()
    return tree.Unread(frozenset(changed), frozenset(mentioned), line=start.line, column=start.column)


def _statement(reader: Reader, token: Token) -> Any:
    if token.kind == "name":
        if reader.peek().text == ":" and reader.peek().kind == "punct" and token.text not in ("default", "public"):
            reader.advance()
            reader.advance()
            return tree.Label(token.text, line=token.line, column=token.column)
        known = STATEMENTS.get(token.text)
        if known is not None:
            return known(reader)
    if token.text == "{":
        return block(reader)
    if token.text == ";":
        reader.advance()
        return tree.Nothing(line=token.line)
    if token.text in ATTRIBUTES or (token.text == "[" and reader.peek().text == "["):
        reader.skip_attributes()
        return statement(reader)
    if is_declaration(reader):
        return declaration(reader)
    start = reader.position
    try:
        value = comma(reader)
        undeclared = value.name if isinstance(value, tree.Name) and reader.token.kind == "name" else ""
        undeclared = undeclared if reader.token.line == token.line else ""
    except KernelError:
        reader.rewind(start)
        undeclared = reader.qualified() if token.kind == "name" else ""
        if "::" not in undeclared or not reader.at("<") or reader.is_function_template(undeclared):
            raise  # else the type a::b<…> of a header that is not included
    if undeclared:
        raise reader.error(f"the type {undeclared} is not declared", token)
    reader.expect(";")
    return tree.Expression(value, line=token.line, column=token.column)


def is_declaration(reader: Reader) -> bool:
    """Whether a declaration starts here. `T x`, `T* x` and `T& x` are; `T(x)` and `T::f()` are not."""
    token = reader.token
    if token.text in ("typedef", "using", "static_assert", "enum") or token.text in read_type.STORAGE:
        return True
    if token.text in ("struct", "class", "union", "const", "volatile", "auto"):
        return True
    if not read_type.starts_type(reader):
        return False
    start = reader.position
    try:
        read_type.specifiers(reader, set())
        after = reader.token
        good = after.kind == "name" and after.text not in ("operator",)
        good = good or after.text in ("*", "&", "&&")
        good = good or (after.text == "(" and reader.peek().text in ("*", "&") and reader.peek(2).kind == "name"
                        and reader.peek(3).text in (")", "["))  # fmt: skip
    except KernelError:
        good = False
    reader.rewind(start)
    return good


def declaration(reader: Reader, closed: bool = True) -> Any:
    token = reader.token
    if token.text in ("typedef", "using", "static_assert", "enum", "struct", "class", "union") or (
        token.text in ("static", "const", "constexpr", "__shared__")
        and reader.peek().text in ("struct", "class", "union")
    ):
        made = reader.local_entity()
        if made is not None:
            return made
    specifiers: set[str] = set()
    base = read_type.specifiers(reader, specifiers)
    where: dict[str, Any] = {"line": token.line, "column": token.column}
    if (reader.at("[") or (reader.token.text in ("&", "&&") and reader.peek().text == "[")) and tree.is_auto(base):
        return _bindings(reader, where)
    made = variables(reader, base, frozenset(specifiers), **where)
    if closed:
        reader.expect(";")
    return made


def variables(reader: Reader, base: Any, specifiers: frozenset[str], line: int, column: int) -> tree.Declaration:
    """`x, *y = &x, z[3]` after a type, up to the semicolon."""
    items: list[tree.Variable] = []
    while not reader.at(";"):
        items.append(variable(reader, base, specifiers))
        if not reader.take(","):
            break
    return tree.Declaration(items, line=line, column=column)


def _bindings(reader: Reader, where: dict[str, Any]) -> tree.Bindings:
    reference = reader.token.text in ("&", "&&") and bool(reader.advance())
    reader.expect("[")
    names = [reader.advance().text]
    while reader.take(","):
        names.append(reader.advance().text)
    reader.expect("]")
    reader.local_values[-1].update(names)
    value = None
    if reader.take("="):
        value = assignment(reader)
        reader.expect(";")
    return tree.Bindings(names, reference, value, **where)


def variable(reader: Reader, base: Any, specifiers: frozenset[str]) -> tree.Variable:
    """One declarator with its initialiser."""
    type_, name, token = read_type.declarator(reader, base, functions=True)
    if not name:
        raise reader.error("a name is expected here")
    where: dict[str, Any] = {"line": token.line, "column": token.column}
    made = tree.Variable(name, type_, None, None, specifiers, extent=reader.since(token), **where)
    if reader.at("("):
        start = reader.position
        if _declares_function(reader):
            reader.rewind(start)
            found, _ = read_type.parameters(reader)
            made.type = tree.TypeFunction(type_, [p.type for p in found])
            made.specifiers = specifiers | {"function"}
            reader.names.prototypes.add(name)
            return made
        reader.rewind(start)
        made.arguments = arguments(reader)
    elif reader.take("="):
        made.init = braces(reader) if reader.at("{") else assignment(reader)
    elif reader.at("{"):
        made.init = braces(reader)
        made.specifiers = specifiers | {"direct"}
    reader.local_values[-1].add(name)
    made.extent = reader.since(token)
    return made


def _declares_function(reader: Reader) -> bool:
    """`float f(int, float*);` in a body: a prototype, not a variable initialised with ( )."""
    if reader.peek().text == ")":
        return True
    reader.advance()
    if not read_type.starts_type(reader):
        return False
    try:
        read_type.declarator(reader, read_type.specifiers(reader, set()))
    except KernelError:
        return False
    return reader.token.text in (",", ")", "=")


# -- statements by their keyword


def _if(reader: Reader) -> Any:
    token = reader.advance()
    constant = reader.take("constexpr")
    reader.expect("(")
    init = None
    with reader.local_scope():
        with reader.brackets():
            condition = declaration(reader, closed=False) if is_declaration(reader) else comma(reader)
            if reader.at(";"):
                reader.advance()
                init, condition = condition, comma(reader)
        if init is not None and not isinstance(init, tree.Declaration):
            init = tree.Expression(init, line=token.line)
        reader.expect(")")
        extent = reader.since(token)
        yes = statement(reader)
        no = None
        if reader.at("else"):
            reader.advance()
            no = statement(reader)
    return tree.If(init, condition, yes, no, constant, extent=extent, line=token.line, column=token.column)


def _for(reader: Reader) -> Any:
    token = reader.advance()
    reader.expect("(")
    where: dict[str, Any] = {"line": token.line, "column": token.column}
    with reader.local_scope():
        with reader.brackets():
            init = condition = step = None
            if reader.at(";"):
                reader.advance()
            elif is_declaration(reader):
                init = declaration(reader, closed=False)
                if reader.at(":"):
                    reader.advance()
                    over = braces(reader) if reader.at("{") else comma(reader)
                    reader.expect(")")
                    return tree.ForEach(init, over, statement(reader), **where)
                reader.expect(";")
            else:
                init = tree.Expression(comma(reader), line=token.line, column=token.column)
                reader.expect(";")
            if not reader.at(";"):
                condition = comma(reader)
            reader.expect(";")
            if not reader.at(")"):
                step = comma(reader)
        reader.expect(")")
        return tree.For(init, condition, step, extent=reader.since(token), body=statement(reader), **where)


def _while(reader: Reader) -> Any:
    token = reader.advance()
    reader.expect("(")
    with reader.local_scope():
        with reader.brackets(")"):
            condition = declaration(reader, closed=False) if is_declaration(reader) else comma(reader)
        extent = reader.since(token)
        return tree.While(condition, statement(reader), extent=extent, line=token.line, column=token.column)


def _do(reader: Reader) -> Any:
    token = reader.advance()
    body = statement(reader)
    reader.expect("while")
    reader.expect("(")
    with reader.brackets(")"):
        condition = comma(reader)
    reader.take(";")
    return tree.While(condition, body, True, line=token.line, column=token.column)


def _switch(reader: Reader) -> Any:
    token = reader.advance()
    reader.expect("(")
    with reader.brackets(")"):
        value = comma(reader)
    extent = reader.since(token)
    return tree.Switch(value, statement(reader), extent=extent, line=token.line, column=token.column)


def _case(reader: Reader) -> Any:
    token = reader.advance()
    value = None if token.text == "default" else assignment(reader)
    reader.expect(":")
    return tree.Case(value, line=token.line, column=token.column)


def _return(reader: Reader) -> Any:
    token = reader.advance()
    value = None
    if not reader.at(";"):
        value = braces(reader) if reader.at("{") else comma(reader)
    reader.expect(";")
    return tree.Return(value, line=token.line, column=token.column)


def _jump(reader: Reader) -> Any:
    token = reader.advance()
    reader.expect(";")
    return tree.Jump(token.text, line=token.line, column=token.column)


def _goto(reader: Reader) -> Any:
    token = reader.advance()
    name = reader.advance().text
    reader.expect(";")
    return tree.Goto(name, line=token.line, column=token.column)


def _try(reader: Reader) -> Any:
    token = reader.advance()
    body = block(reader)
    made = tree.Try(body, line=token.line, column=token.column)
    while reader.at("catch"):
        start = reader.advance()
        with reader.local_scope():
            found, variadic = read_type.parameters(reader)
            if len(found) != (0 if variadic else 1):
                raise reader.error("a catch takes one exception, or ...", start)
            reader.local_values[-1] |= {p.name for p in found if p.name}
            made.handlers.append(tree.Handler(found[0] if found else None, block(reader), line=start.line))
    return made


def _asm(reader: Reader) -> Any:
    tokens = assembly(reader)
    kept, position = reader.tokens, reader.position
    end = kept[-1]
    reader.tokens, reader.position = [*tokens, end._replace(kind="end", text="")], 0
    try:
        return block(reader)
    finally:
        reader.tokens, reader.position = kept, position


STATEMENTS = {
    "if": _if, "for": _for, "while": _while, "do": _do, "switch": _switch, "case": _case, "default": _case,
    "return": _return, "break": _jump, "continue": _jump, "goto": _goto, "try": _try, "asm": _asm,
    "__asm__": _asm, "__asm": _asm,
}  # fmt: skip
