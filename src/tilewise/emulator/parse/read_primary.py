"""The innermost of expressions: literals, names, casts by name, objects made in place."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.parse import read_type, tree, types
from tilewise.emulator.parse.late import late
from tilewise.emulator.parse.reading import Reader
from tilewise.emulator.source import literal
from tilewise.emulator.source.lexer import Token
from tilewise.errors import KernelError

CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"})
ESCAPES = {"n": 10, "t": 9, "r": 13, "\\": 92, "'": 39, '"': 34, "a": 7, "b": 8, "f": 12, "v": 11, "?": 63, "e": 27}


def operator_name(reader: Reader) -> str:
    """`operator` and its sign; a conversion is `operator` and its type's first word."""
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
        raise reader.error(f"operator {reader.token.text} of one's own is not supported")
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
        text = _bytes_of(reader, token)
        code = text[-1] if text else 0
        return tree.Number(code - 256 if code > 127 else code, types.CHAR, **where)
    if token.text == "(":
        reader.advance()
        with reader.brackets(")"):
            value = late.comma(reader)
        value.extent = reader.since(token)
        return value
    if token.text == "[":
        return late.lambda_(reader)
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
            value = late.comma(reader)
        return tree.Cast(type_, value, text, **where)
    if text in ("typeid", "co_await", "asm", "__asm__"):
        raise reader.error(f"{text} is not supported")
    if read_type.starts_type(reader):
        return _of_type(reader, where)
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


def _of_type(reader: Reader, where: dict[str, Any]) -> Any:
    """`T(x)`, `T{x}`, `T::member`."""
    type_ = read_type.specifiers(reader, set())
    if reader.at("("):
        return tree.Construct(type_, late.arguments(reader), False, **where)
    if reader.at("{"):
        return tree.Construct(type_, [late.braces(reader)], True, **where)
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
        return tree.Name(tree.VALUE, None, type_, **where)  # of a variable template, or of a class, which has none
    raise reader.error("a value is expected here, not a type")


def _string(reader: Reader) -> tree.Text:
    token = reader.token
    value = b""
    while reader.token.kind == "string":
        value += _bytes_of(reader, reader.advance())
    return tree.Text(value, line=token.line, column=token.column)


def _bytes_of(reader: Reader, token: Token) -> bytes:
    try:
        return string_bytes(token.text[1:-1])
    except ValueError as wrong:
        raise reader.error(str(wrong), token) from None


def _universal(letter: str, digits: str) -> bytes:
    r"""The character of \u1234 or \U00012345."""
    wanted = 4 if letter == "u" else 8
    if len(digits) < wanted or set(digits) - set("0123456789abcdefABCDEF"):
        raise ValueError(f"\\{letter} is followed by {wanted} hexadecimal digits")
    code = int(digits, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise ValueError(f"\\{letter}{digits} is no character")
    return chr(code).encode()


def string_bytes(body: str) -> bytes:
    out = bytearray()
    i = 0
    while i < len(body):
        ch = body[i]
        if ch != "\\" or i + 1 >= len(body):
            out += ch.encode("utf-8", "surrogateescape")
            i += 1
            continue
        follow = body[i + 1]
        j = i + 2
        if follow == "x":
            while j < len(body) and body[j] in "0123456789abcdefABCDEF":
                j += 1
            out.append(int(body[i + 2 : j] or "0", 16) & 255)
        elif follow in "01234567":
            j = i + 1
            while j < len(body) and j < i + 4 and body[j] in "01234567":
                j += 1
            out.append(int(body[i + 1 : j], 8) & 255)
        elif follow in "uU":
            j = min(len(body), i + (6 if follow == "u" else 10))
            out += _universal(follow, body[i + 2 : j])
        else:
            out.append(ESCAPES.get(follow, ord(follow) & 255))
        i = j
    return bytes(out)
