"""Primary expressions: literals, names, named casts, `T(x)` and `T{x}`."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.parse import read_type, tree, types
from tilewise.emulator.parse.reading import Reader
from tilewise.emulator.source import literal
from tilewise.emulator.source.lexer import Token
from tilewise.errors import KernelError

CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"})


def operator_name(reader: Reader) -> str:
    """The name of an operator function, as `operator+`; of a conversion, `operator type`."""
    reader.expect("operator")
    if reader.at("(") and reader.peek().text == ")":
        reader.advance()
        reader.advance()
        return "operator()"
    if reader.at("["):
        reader.advance()
        reader.expect("]")
        return "operator[]"
    if reader.token.kind == "punct":
        text = reader.advance().text
        if text == ">" and reader.at(">"):
            text += reader.advance().text
        return "operator" + text
    if reader.token.text in ("new", "delete"):
        name = f"operator {reader.advance().text}"
        return name + "[]" if reader.take("[") and reader.expect("]") else name
    return "operator type"


def primary(reader: Reader) -> Any:
    token = reader.token
    where: dict[str, Any] = {"line": token.line, "column": token.column}
    if token.kind == "number":
        reader.advance()
        name, value = literal.number(reader.source, token)
        return tree.Number(value, types.BY_NAME[name], token.origin, **where)
    if token.kind == "string":
        return _string(reader)
    if token.kind == "char":
        reader.advance()
        return tree.Number(literal.character_value(reader.source, token), types.CHAR, **where)
    if token.text == "(":
        reader.advance()
        with reader.brackets(")"):
            value = reader.comma()
        value.extent = reader.since(token)
        return value
    if token.text == "[":
        return reader.lambda_()
    if token.kind == "name" or token.text == "::":
        return _name(reader, token, where)
    raise reader.error(f"an expression is expected here, not {token.text or 'the end of the file'}")


def _name(reader: Reader, token: Token, where: dict[str, Any]) -> Any:
    text = token.text
    if text in ("true", "false"):
        reader.advance()
        return tree.Number(int(text == "true"), types.BOOL, **where)
    if text in ("nullptr", "__null"):
        reader.advance()
        return tree.Number(0, types.NULLPTR, **where)
    if text == "this":
        reader.advance()
        return tree.This(**where)
    if text in CASTS:
        reader.advance()
        reader.expect("<")
        with reader.angles():
            type_ = read_type.type_id(reader)
        reader.expect("(")
        with reader.brackets(")"):
            value = reader.comma()
        return tree.Cast(type_, value, text, **where)
    if text in ("typeid", "co_await", "asm", "__asm__"):
        raise reader.error(f"{text} is not supported")
    if read_type.starts_type(reader):
        return _typed_expression(reader, where)
    name = reader.qualified()
    if reader.at("::") and reader.peek().text == "operator":
        reader.advance()
        name += "::" + operator_name(reader)
    elif name == "operator" and reader.token.kind == "punct":
        reader.position -= 1
        name = operator_name(reader)
    given = None
    if reader.at("<") and reader.local_type(name) is None and reader.is_function_template(name):
        start = reader.position
        try:
            given = read_type.template_arguments(reader)
        except KernelError:
            reader.rewind(start)
            given = None
    return tree.Name(name, given, **where)


def _typed_expression(reader: Reader, where: dict[str, Any]) -> Any:
    """`T(x)`, `T{x}`, `T::member`."""
    type_ = read_type.specifiers(reader, set())
    if reader.at("("):
        return tree.Construct(type_, reader.arguments(), False, **where)
    if reader.at("{"):
        return tree.Construct(type_, [reader.braces()], True, **where)
    if reader.at("::"):
        reader.advance()
        name = operator_name(reader) if reader.at("operator") else reader.advance().text
        given = None
        if reader.at("<") and reader.peek(2).text in (">", ","):
            given = read_type.template_arguments(reader)
        return tree.Name(name, given, type_, **where)
    if isinstance(type_, tree.TypeName) and type_.inner:
        return tree.Name(type_.inner[-1], None, tree.TypeName(type_.name, type_.arguments, type_.inner[:-1]), **where)
    if isinstance(type_, tree.TypeName) and type_.arguments:
        return tree.Name(tree.VALUE, None, type_, **where)  # is_big<int>, a variable template
    raise reader.error("a value is expected here, not a type")


def _string(reader: Reader) -> tree.Text:
    token = reader.token
    value = b""
    while reader.token.kind == "string":
        value += literal.string_bytes(reader.source, reader.advance())
    return tree.Text(value, line=token.line, column=token.column)
