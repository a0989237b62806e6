"""Types and declarators."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.reading import Reader
from tilewise.emulator.source.lexer import Token
from tilewise.errors import KernelError

BASIC = frozenset({"void", "bool", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "_Bool"})
STORAGE = frozenset({
    "static", "extern", "inline", "register", "constexpr", "mutable", "virtual", "explicit", "friend", "thread_local",
    "__global__", "__device__", "__host__", "__shared__", "__constant__", "__managed__", "__forceinline__",
    "__noinline__", "__inline__", "__inline", "__restrict__", "__extension__", "__restrict", "restrict", "typename",
    "consteval", "noexcept",
})  # fmt: skip
QUALIFIERS = frozenset({"const", "volatile", "__restrict__", "__restrict", "restrict", "__const", "__volatile__"})
STARTS = BASIC | STORAGE | {"const", "volatile", "auto", "struct", "class", "union", "enum", "decltype", "typedef",
                            "using", "static_assert"}  # fmt: skip


def combine(reader: Reader, keywords: list[str]) -> types.Scalar:
    """The type of `unsigned long int` and the like."""
    signed = "unsigned" not in keywords
    rest = sorted(w for w in keywords if w not in ("signed", "unsigned"))
    key = " ".join(rest)
    table = {
        "": types.INT, "int": types.INT, "char": types.CHAR, "short": types.SHORT, "int short": types.SHORT,
        "long": types.LONG, "int long": types.LONG, "long long": types.LLONG, "int long long": types.LLONG,
        "float": types.FLOAT, "double": types.DOUBLE, "double long": types.DOUBLE, "bool": types.BOOL,
        "_Bool": types.BOOL, "void": types.VOID,
    }  # fmt: skip
    found = table.get(key)
    if found is None:
        raise reader.error(f"{' '.join(keywords)} is not a type")
    if not signed:
        return types.UNSIGNED.get(found, found)
    return types.SCHAR if found is types.CHAR and "signed" in keywords else found


def specifiers(reader: Reader, storage: set[str]) -> Any:
    """The type before the declarator; `storage` collects static, __global__ and the like."""
    basic: list[str] = []
    const = False
    made: Any = None
    start = reader.token
    while True:
        reader.skip_attributes()
        token = reader.token
        text = token.text
        if token.kind != "name" and text != "::":
            break
        if text in QUALIFIERS:
            const = const or text == "const"
            reader.advance()
        elif text in STORAGE:
            storage.add(text)
            reader.advance()
            if text == "explicit" and reader.at("("):
                reader.skip_balanced()
        elif text in BASIC and made is None:
            basic.append(text)
            reader.advance()
        elif made is None and not basic:
            made = _other(reader, token)
            if made is None:
                break
        else:
            break
    if basic:
        made = tree.TypeFixed(combine(reader, basic), line=start.line, column=start.column)
    if made is None:
        if "constexpr" in storage or "static" in storage or const:
            raise reader.error(f"a type is expected here, not {reader.token.text}")
        raise reader.error(f"{reader.token.text or 'the end'} is not a type that is known here")
    return tree.TypeConst(made) if const or "constexpr" in storage else made


def _other(reader: Reader, token: Token) -> Any:
    text = token.text
    if text == "auto":
        reader.advance()
        return tree.TypeAuto(line=token.line)
    if text == "decltype":
        reader.advance()
        reader.expect("(")
        with reader.brackets(")"):
            value = reader.assignment()
        return tree.TypeOf(value, line=token.line)
    if text in ("struct", "class", "union", "enum"):
        reader.advance()
        name = reader.qualified()
        reader.local_types[0].add(name)
        return _named(reader, reader.type_name(name) or name, token)
    return named_type(reader)


def named_type(reader: Reader) -> Any:
    """A type by its name, with template arguments and inner names; None if the name is no type."""
    token = reader.token
    name, after = reader.ahead_qualified(reader.position)
    while True:
        found = reader.type_name(name)
        if found is not None:
            break
        if "::" not in name:
            return None
        name = name.rpartition("::")[0]
        after -= 2
    reader.position = after
    return _named(reader, found, token)


def _named(reader: Reader, name: str, token: Token) -> Any:
    arguments = None
    if reader.at("<") and (reader.is_class_template(name) or name in reader.local_templates):
        arguments = template_arguments(reader)
    inner: list[str] = []
    while reader.at("::") and reader.peek().kind == "name" and reader.peek().text != "operator":
        if reader.peek(2).text == "(" and "typename" not in inner and not reader.angle:
            break  # Class::function(…)
        reader.advance()
        reader.take("template")
        inner.append(reader.advance().text)
    return tree.TypeName(name, arguments, tuple(inner), line=token.line, column=token.column)


def template_arguments(reader: Reader) -> list[Any]:
    """`<int, 16, T*>`: types or expressions."""
    reader.expect("<")
    out: list[Any] = []
    with reader.angles(), reader.deeper():
        while reader.token.text not in (">", ">>"):
            out.append(template_argument(reader))
            if reader.at("..."):
                reader.advance()
            if not reader.take(","):
                break
    return out


def template_argument(reader: Reader) -> Any:
    start = reader.position
    if starts_type(reader):
        try:
            type_ = type_id(reader)
            if reader.token.text in (",", ">", ">>", "..."):
                return type_
        except KernelError:
            pass
        reader.rewind(start)
    return reader.assignment()


def starts_type(reader: Reader) -> bool:
    token = reader.token
    if token.text in STARTS:
        return True
    if token.kind != "name" and token.text != "::":
        return False
    name, _ = reader.ahead_qualified(reader.position)
    while name:
        if reader.type_name(name) is not None:
            return True
        name = name.rpartition("::")[0]
    return False


def type_id(reader: Reader) -> Any:
    """A type with no name declared: in casts, sizeof, template arguments."""
    base = specifiers(reader, set())
    type_, name, _ = declarator(reader, base)
    if name:
        raise reader.error("a type is expected here, without a name")
    return type_


def pointers(reader: Reader, base: Any) -> Any:
    while True:
        if reader.take("*"):
            base = tree.TypePointer(base)
        elif reader.at("&") or reader.at("&&"):
            base = tree.TypeReference(base, reader.advance().text == "&&")
        elif reader.token.text in QUALIFIERS:
            if reader.advance().text == "const":
                base = tree.TypeConst(base)
        else:
            return base


def declarator(reader: Reader, base: Any, functions: bool = False) -> tuple[Any, str, Token]:
    """Pointers, the name and array or function suffixes. With `functions`, a ( after the name is left to the caller."""
    base = pointers(reader, base)
    reader.skip_attributes()
    token = reader.token
    nested = _nested(reader)
    if nested:
        reader.advance()
        inside = reader.position
        depth = 1
        while depth and reader.token.kind != "end":
            depth += {"(": 1, ")": -1}.get(reader.advance().text, 0)
        base = suffixes(reader, base)
        end = reader.position
        reader.position = inside
        type_, name, token = declarator(reader, base)
        reader.expect(")")
        reader.position = end
        return type_, name, token
    name = ""
    if reader.token.kind == "name" and reader.token.text not in QUALIFIERS:
        token = reader.token
        name = reader.advance().text
    elif reader.at("..."):
        reader.advance()
        if reader.token.kind == "name":
            token = reader.token
            name = reader.advance().text
    if functions and reader.at("("):
        return base, name, token
    return suffixes(reader, base, arrays_only=bool(name)), name, token


def _nested(reader: Reader) -> bool:
    """`(*name)`: a nested declarator, not a parameter list."""
    if not reader.at("("):
        return False
    return reader.peek().text in ("*", "&") or (reader.peek().kind == "name" and reader.peek(2).text == "::"
                                                and reader.peek(3).text == "*")  # fmt: skip


def suffixes(reader: Reader, base: Any, arrays_only: bool = False) -> Any:
    lengths: list[Any] = []
    while reader.at("[") and reader.peek().text != "[":
        reader.advance()
        with reader.brackets("]"):
            lengths.append(None if reader.at("]") else reader.assignment())
    for length in reversed(lengths):
        base = tree.TypeArray(base, length, line=reader.token.line, column=reader.token.column)
    if not lengths and reader.at("(") and not arrays_only:
        found, _ = parameters(reader)
        return tree.TypeFunction(base, [p.type for p in found])
    return base


def parameters(reader: Reader) -> tuple[list[tree.Parameter], bool]:
    """A parameter list, and whether it is variadic."""
    reader.expect("(")
    out: list[tree.Parameter] = []
    variadic = False
    with reader.brackets(")"):
        while not reader.at(")"):
            if reader.at("..."):
                reader.advance()
                variadic = True
                break
            start = reader.token
            base = specifiers(reader, set())
            type_, name, token = declarator(reader, base)
            default = None
            if reader.take("="):
                default = reader.braces() if reader.at("{") else reader.assignment()
            if isinstance(type_, tree.TypeArray):
                type_ = tree.TypePointer(type_.of)
            elif isinstance(type_, tree.TypeFunction):
                type_ = tree.TypePointer(type_)
            if name:
                reader.local_values[-1].add(name)
            line = token.line if name else start.line
            out.append(tree.Parameter(name, type_, default, line=line, column=token.column))
            if not reader.take(","):
                break
    if len(out) == 1 and not out[0].name and isinstance(out[0].type, tree.TypeFixed) and out[0].type.type is types.VOID:
        out = []
    return out, variadic
