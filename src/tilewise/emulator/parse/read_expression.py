"""Expressions, by precedence climbing."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.parse import read_type, tree
from tilewise.emulator.parse.read_primary import operator_name, primary
from tilewise.emulator.parse.reading import Reader
from tilewise.emulator.source.lexer import Token, split
from tilewise.emulator.source.source import Span
from tilewise.errors import KernelError

LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip
PRECEDENCE = {op: level for level, ops in enumerate(LEVELS) for op in ops}
STARTS_OPERAND = frozenset({"(", "[", "::", "+", "-", "*", "&", "!", "~", "++", "--"})
ASSIGN = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^="})


def comma(reader: Reader) -> Any:
    start = reader.token
    left = assignment(reader)
    while reader.at(","):
        token = reader.advance()
        left = tree.Binary(",", left, assignment(reader), line=token.line, column=token.column)
        left.extent = reader.since(start)
    return left


def assignment(reader: Reader) -> Any:
    with reader.deeper():
        if reader.at("throw"):
            token = reader.advance()
            value = None if reader.token.text in (";", ")") else assignment(reader)
            return tree.Throw(value, line=token.line, column=token.column)
        start = reader.token
        left = binary(reader, 0)
        token = reader.token
        if token.kind != "punct":
            return left
        if token.text == "?":
            reader.advance()
            with reader.brackets():
                yes = comma(reader)
            reader.expect(":")
            left = tree.Ternary(left, yes, assignment(reader), line=token.line, column=token.column)
            left.extent = reader.since(start)
            return left
        if token.text in ASSIGN and not (reader.angle and token.text == ">>="):
            reader.advance()
            value = braces(reader) if reader.at("{") else assignment(reader)
            left = tree.Assign(token.text[:-1], left, value, line=token.line, column=token.column)
            left.extent = reader.since(start)
        return left


def binary(reader: Reader, level: int) -> Any:
    start = reader.token
    left = unary(reader)
    while True:
        token = reader.token
        op = token.text
        found = PRECEDENCE.get(op) if token.kind == "punct" else None
        if found is None or found < level or (reader.angle and op in (">", ">>")):
            return left
        reader.advance()
        right = binary(reader, found + 1)
        left = tree.Binary(op, left, right, line=token.line, column=token.column)
        left.extent = reader.since(start)


def unary(reader: Reader) -> Any:
    token = reader.token
    made = _unary(reader, token)
    if made.extent is None:
        made.extent = reader.since(token)
    return made


def _unary(reader: Reader, token: Token) -> Any:
    text = token.text
    where: dict[str, Any] = {"line": token.line, "column": token.column}
    with reader.deeper():
        if token.kind == "punct":
            if text in ("++", "--"):
                reader.advance()
                return tree.Step(text[0], unary(reader), True, **where)
            if text in ("+", "-", "!", "~", "*", "&"):
                reader.advance()
                return tree.Unary(text, unary(reader), **where)
            if text == "&&" and reader.peek().kind == "name":
                raise reader.error("the address of a label is not supported")
            if text == "(":
                made = _cast(reader)
                if made is not None:
                    return made
        elif token.kind == "name":
            if text in ("sizeof", "alignof", "_Alignof", "__alignof__"):
                return _sizeof(reader)
            if text in ("new", "delete"):
                return _new(reader) if text == "new" else _delete(reader)
        return postfix(reader, primary(reader), token)


def _cast(reader: Reader) -> Any:
    """`(type) e`; None if the brackets contain no type."""
    start = reader.position
    token = reader.advance()
    if not read_type.starts_type(reader):
        reader.position = start
        return None
    kept, reader.angle = reader.angle, 0
    try:
        type_ = read_type.type_id(reader)
        good = reader.at(")")
    except KernelError:
        good = False
    reader.angle = kept
    if not good:
        reader.rewind(start)
        return None
    reader.advance()
    if reader.at("{"):
        made = tree.Construct(type_, [braces(reader)], True, line=token.line, column=token.column)
        return postfix(reader, made, token)
    if reader.token.kind == "punct" and reader.token.text not in STARTS_OPERAND:  # (State::on): a value in brackets
        reader.rewind(start)
        return None
    return tree.Cast(type_, unary(reader), line=token.line, column=token.column)


def _sizeof(reader: Reader) -> Any:
    token = reader.advance()
    alignment = token.text != "sizeof"
    where: dict[str, Any] = {"line": token.line, "column": token.column}
    if reader.at("..."):
        raise reader.error("sizeof... of what is no parameter pack of a function template")
    if reader.at("("):
        start = reader.position
        reader.advance()
        if read_type.starts_type(reader):
            with reader.brackets():
                try:
                    type_ = read_type.type_id(reader)
                except KernelError:
                    type_ = None
            if type_ is not None and reader.at(")"):
                reader.advance()
                return tree.SizeOf(type_, None, alignment, **where)
        reader.rewind(start)
    return tree.SizeOf(None, unary(reader), alignment, **where)


def _new(reader: Reader) -> Any:
    token = reader.advance()
    where: dict[str, Any] = {"line": token.line, "column": token.column}
    place = None
    if reader.at("("):
        inside = arguments(reader)
        place = inside[0] if inside else None
        if isinstance(place, tree.Name) and place.name in ("std::nothrow", "nothrow"):
            place = None
    base = read_type.pointers(reader, read_type.specifiers(reader, set()))
    length: Any = None
    lengths: list[Any] = []
    while reader.at("["):
        reader.advance()
        with reader.brackets("]"):
            lengths.append(comma(reader))
    for more in reversed(lengths[1:]):
        base = tree.TypeArray(base, more, **where)
    if lengths:
        length = lengths[0]
    given: list[Any] | None = None
    if reader.at("("):
        given = arguments(reader)
    elif reader.at("{"):
        given = [braces(reader)] if length is not None else braces(reader).items
    return tree.New(base, length, given, place, **where)


def _delete(reader: Reader) -> Any:
    token = reader.advance()
    array = False
    if reader.at("[") and reader.peek().text == "]":
        reader.advance()
        reader.advance()
        array = True
    return tree.Delete(unary(reader), array, line=token.line, column=token.column)


def arguments(reader: Reader) -> list[Any]:
    reader.expect("(")
    out: list[Any] = []
    with reader.brackets(")"):
        while not reader.at(")"):
            out.append(braces(reader) if reader.at("{") else assignment(reader))
            if reader.at("..."):
                raise reader.error("... expands parameter packs of function templates alone")
            if not reader.take(","):
                break
    return out


def braces(reader: Reader) -> tree.Braces:
    token = reader.expect("{")
    made = tree.Braces([], line=token.line, column=token.column)
    with reader.brackets("}"):
        while not reader.at("}"):
            name = None
            if reader.at(".") and reader.peek().kind == "name":
                reader.advance()
                name = reader.advance().text
                reader.expect("=")
            elif reader.at("[") and reader.peek(2).text == "]" and reader.peek(3).text == "=":
                raise reader.error("array designators are not supported")
            made.names.append(name)
            made.items.append(braces(reader) if reader.at("{") else assignment(reader))
            if not reader.take(","):
                break
    return made


def postfix(reader: Reader, value: Any, start: Token) -> Any:
    while True:
        if value.extent is None:
            value.extent = reader.since(start)
        token = reader.token
        where: dict[str, Any] = {"line": token.line, "column": token.column}
        if token.kind != "punct":
            return value
        text = token.text
        if text == "(":
            value = tree.Call(value, arguments(reader), **where)
        elif text == "[":
            reader.advance()
            with reader.brackets("]"):
                index = braces(reader) if reader.at("{") else comma(reader)
            value = tree.Index(value, index, **where)
        elif text in (".", "->"):
            reader.advance()
            value = _member(reader, value, text == "->", where)
        elif text in ("++", "--"):
            reader.advance()
            value = tree.Step(text[0], value, False, **where)
        elif (
            text == "<<<"
            or (text == "<<" and reader.peek().text == "<" and isinstance(value, tree.Name))
            or (text == "<" and isinstance(value, tree.Name) and reader.peek().text == "<<")
        ):
            value = _launch(reader, value)
        else:
            return value


def _member(reader: Reader, value: Any, arrow: bool, where: dict[str, Any]) -> Any:
    explicit = reader.take("template")
    owner = ""
    if reader.at("~"):
        reader.advance()
        name = "~" + reader.qualified()
    elif reader.at("operator"):
        name = operator_name(reader)
    else:
        if reader.token.kind != "name":
            raise reader.error("the name of a member is expected here")
        name = reader.advance().text
        while reader.at("::"):
            reader.advance()
            owner, name = name, reader.advance().text
    given = None
    templates = reader.names.member_templates
    if reader.at("<") and (explicit or name in templates or name == "data_ptr" or _type_follows(reader)):
        start = reader.position
        try:
            given = read_type.template_arguments(reader)
        except KernelError:
            given = None
        if not reader.at("("):
            reader.rewind(start)
            given = None
    return tree.Member(value, name, arrow, given, owner, **where)


def _type_follows(reader: Reader) -> bool:
    """m.at<float>(i): a type after the <, so it is no comparison."""
    start = reader.position
    reader.advance()
    found = read_type.starts_type(reader)
    reader.rewind(start)
    return found


def _launch(reader: Reader, kernel: Any) -> Any:
    """kernel<<<grid, block, shared, stream>>>(…), also with spaces between the angles."""
    token = reader.token
    where: dict[str, Any] = {"line": kernel.line, "column": kernel.column}
    angles = 0
    while reader.token.text in ("<", "<<", "<<<") and angles < 3:
        angles += len(reader.advance().text)
    if angles != 3:
        raise reader.error("a launch is written <<<grid, block>>>", token)
    configuration: list[Any] = []
    kept, reader.angle = reader.angle, 1
    while reader.token.text not in (">", ">>"):
        configuration.append(braces(reader) if reader.at("{") else assignment(reader))
        if not reader.take(","):
            break
    closed = 0
    while reader.token.text in (">", ">>") and closed < 3:
        closed += len(reader.advance().text)
    reader.angle = kept
    if closed != 3:
        raise reader.error("a launch is closed by >>>")
    extent = Span(kernel.line, kernel.column)
    if reader.tokens[reader.position - 1].line == kernel.line:
        last = reader.tokens[reader.position - 1]
        extent = Span(kernel.line, kernel.column, last.column + len(last.text) - kernel.column)
    start = reader.position + 1
    given = arguments(reader)
    written = ["".join(t.text for t in part) for part in split(reader.tokens[start : reader.position - 1], ",")]
    return tree.Launch(kernel, configuration, given, written, extent=extent, **where)
