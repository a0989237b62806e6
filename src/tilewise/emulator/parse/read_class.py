"""Classes and structs: fields, methods, nested types."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.parse import packs, read_statement, read_type, tree
from tilewise.emulator.parse.read_enum import enum
from tilewise.emulator.parse.read_function import function_rest, template_head
from tilewise.emulator.parse.reading import Reader


def defines(reader: Reader) -> bool:
    """Whether `struct X` here is followed by its members."""
    i = reader.position + 1
    depth = 0
    bases = False
    while reader.tokens[i].kind != "end":
        text = reader.tokens[i].text
        bases = bases or (text == ":" and depth == 0)
        if text in ("(", "<"):
            depth += 1
        elif text in (")", ">"):
            depth -= 1
        elif text == "{":
            return True
        elif depth <= 0 and (text in (";", "=", "*", "&") or (text == "," and not bases)):
            return False
        i += 1
    return False


def class_definition(reader: Reader, template: list[Any], given_name: str) -> tree.Class:
    token = reader.advance()
    alignment = _alignment(reader)
    if reader.token.kind == "name":
        name = reader.qualified()
    else:
        name = given_name or f"{token.text}@{token.line}:{token.column}"
    full = f"{reader.scope}::{name}" if reader.scope and reader.local_type(name) is None else name
    made = tree.Class(
        full, token.text, template, scope=reader.scope, alignment=alignment, library=reader.library,
        line=token.line, column=token.column,
    )  # fmt: skip
    if reader.at("<"):
        made.special = read_type.template_arguments(reader)
    if len(reader.local_types) > 1 and not template:
        reader.local_types[-1].add(name)
    reader.names.types.add(full)
    if template:
        reader.names.class_templates.add(full)
    reader.take("final")
    if reader.take(":"):
        while True:
            while reader.token.text in ("public", "private", "protected", "virtual"):
                reader.advance()
            made.bases.append(read_type.specifiers(reader, set()))
            if not reader.take(","):
                break
    known = reader.entities.classes.setdefault(full, [])
    if made.special is None:
        known.insert(0, made)
    else:
        known.append(made)
    reader.expect("{")
    with reader.local_scope(), reader.deeper():
        reader.local_types[-1].add(name)
        if template:
            reader.local_templates.add(name)
        while not reader.at("}"):
            if reader.token.kind == "end":
                raise reader.error("this { is never closed", token)
            _member(reader, made, name)
    reader.advance()
    made.complete = True
    return made


def _alignment(reader: Reader) -> Any:
    """1, or the expression of alignas(sizeof(T) * N), evaluated with the layout."""
    alignment: Any = 1
    while reader.token.text in ("alignas", "__align__", "__attribute__"):
        keyword, start = reader.advance().text, reader.position
        inside = reader.skip_balanced()
        end = reader.position
        reader.position = start + 1
        if keyword == "__attribute__":  # ((aligned(16))); ((packed)) is ignored
            numbers = [i for i, t in enumerate(inside) if t.kind == "number"]
            if not numbers:
                reader.position = end
                continue
            reader.position = start + numbers[0]
        if read_type.starts_type(reader):
            where: dict[str, Any] = {"line": inside[0].line, "column": inside[0].column}
            alignment = tree.SizeOf(read_type.type_id(reader), None, True, **where)
        else:
            alignment = reader.assignment()
        reader.position = end
    return alignment


def unnamed_after_typedef(reader: Reader) -> str:
    """The name that follows in typedef struct { … } Name."""
    start = reader.position
    reader.advance()
    reader.skip_attributes()
    name = ""
    if reader.at("{"):
        reader.skip_balanced()
        if reader.token.kind == "name":
            name = reader.token.text
    reader.position = start
    return name


def _member(reader: Reader, made: tree.Class, name: str) -> None:
    ahead = reader.position
    while reader.tokens[ahead].text in ("__host__", "__device__", "__forceinline__", "inline", "constexpr"):
        ahead += 1
    if reader.tokens[ahead].text == "friend":  # __device__ friend Vec operator*(…)
        reader.position = ahead
    text = reader.token.text
    if text in ("public", "private", "protected") and reader.peek().text == ":":
        reader.advance()
        reader.advance()
    elif text == ";":
        reader.advance()
    elif text == "template":
        if packs.declares_pack(reader):
            packs.read_versions(reader, _skip_method, lambda: _member_template(reader, made, name))
        else:
            _member_template(reader, made, name)
    elif text == "friend":
        _friend(reader, made)
    elif text in ("using", "typedef"):
        _member_type(reader, made)
    elif text == "enum":
        type_ = enum(reader, made)
        made.types[type_.type.name.rpartition("::")[2]] = type_
        reader.local_types[-1].add(type_.type.name.rpartition("::")[2])
        _fields(reader, made, type_, frozenset())
    elif text in ("struct", "class", "union") and _opens(reader):
        kept = reader.scope
        reader.scope = made.name
        inner = class_definition(reader, made.template, "")
        reader.scope = kept
        short = inner.name.rpartition("::")[2]
        named = tree.TypeName(inner.name, own_arguments(made))  # with the template parameters of the enclosing class
        made.types[short] = named
        reader.local_types[-1].add(short)
        if "@" in inner.name and reader.at(";"):  # an unnamed union or struct: its members belong to this class
            made.fields.append(tree.Variable("", named))
        _fields(reader, made, named, frozenset())
    elif text == "static_assert":
        reader.skip_past(";")
    else:
        _method_or_field(reader, made, name, [])


def _member_template(reader: Reader, made: tree.Class, name: str) -> None:
    with reader.local_scope():
        found = template_head(reader)
        _method_or_field(reader, made, name, found)


def _skip_method(reader: Reader) -> None:
    """Skip past the body or the ; of a method."""
    while not reader.at("{") and not reader.at(";"):
        if reader.at("("):
            reader.skip_balanced()
        else:
            reader.advance()
    if not reader.take(";"):
        reader.skip_balanced()


def own_arguments(made: tree.Class) -> list[Any] | None:
    """The template parameters as arguments: inside a class template its name stands for name<parameters>."""
    if not made.template:
        return None
    return [tree.TypeName(t.name) if t.is_type else tree.Name(t.name) for t in made.template]


def _friend(reader: Reader, made: tree.Class) -> None:
    """A friend function; of a class template, a function template."""
    reader.advance()
    if reader.token.text in ("class", "struct") or reader.peek().text == ";":
        reader.skip_past(";")
        return
    before = {name: len(functions) for name, functions in reader.entities.functions.items()}
    reader.entity(made.template)
    for name, functions in reader.entities.functions.items() if made.template else ():
        for function in functions[before.get(name, 0) :]:
            function.result = _with_arguments(function.result, made)
            for parameter in function.parameters:
                parameter.type = _with_arguments(parameter.type, made)


def _with_arguments(written: Any, made: tree.Class) -> Any:
    """`const Matrix&` in a class template Matrix is `const Matrix<T>&`."""

    def replace(node: Any) -> Any:
        own = isinstance(node, tree.TypeName) and node.arguments is None and not node.inner
        if not own or node.name not in (made.name, made.name.rpartition("::")[2]):
            return node
        return tree.TypeName(node.name, own_arguments(made), line=node.line, column=node.column)

    return tree.innermost_replaced(written, replace)


def _opens(reader: Reader) -> bool:
    i = reader.position
    while reader.tokens[i].text not in ("{", ";", "(", "=", "*") and reader.tokens[i].kind != "end":
        i += 1
    return reader.tokens[i].text == "{"


def _member_type(reader: Reader, made: tree.Class) -> None:
    if reader.advance().text == "using":
        if reader.peek().text != "=":
            reader.skip_past(";")
            return
        name = reader.advance().text
        reader.expect("=")
        made.types[name] = read_type.type_id(reader)
    else:
        type_, name, _ = read_type.declarator(reader, read_type.specifiers(reader, set()))
        made.types[name] = type_
    reader.local_types[-1].add(name)
    reader.expect(";")


def _method_or_field(reader: Reader, made: tree.Class, name: str, template: list[Any]) -> None:
    specifiers: set[str] = set()
    reader.skip_attributes()
    while reader.token.text in read_type.STORAGE:
        specifiers.add(reader.advance().text)
    short = name.rpartition("::")[2]
    if reader.at(short) and reader.peek().text == "(":  # a constructor
        method = function_rest(reader, None, specifiers, template, made)
        method.name = "<new>"
        made.methods.append(method)
        return
    if reader.at("~") or reader.at("operator"):
        made.methods.append(function_rest(reader, None, specifiers, template, made))
        return
    base = read_type.specifiers(reader, specifiers)
    mark = reader.position
    type_ = read_type.pointers(reader, base)
    if reader.at("operator") or (reader.token.kind == "name" and reader.peek().text == "("):
        if reader.peek().text in ("new", "delete"):
            specifiers.add("static")
        made.methods.append(function_rest(reader, type_, specifiers, template, made))
        return
    reader.position = mark
    _fields(reader, made, base, frozenset(specifiers))


def _fields(reader: Reader, made: tree.Class, base: Any, specifiers: frozenset[str]) -> None:
    while not reader.at(";"):
        if reader.peek().text == ":" and reader.token.kind == "name":
            raise reader.error("bit fields are not supported")
        item = read_statement.variable(reader, base, specifiers)
        if "static" in specifiers:
            made.constants[item.name] = (None, item)
        else:
            made.fields.append(item)
        if not reader.take(","):
            break
    reader.expect(";")


def variable_template(reader: Reader, base: Any, template: list[Any]) -> None:
    """template <class T> constexpr bool is_big = …: a class template whose constant is the value of `is_big<int>`."""
    item = read_statement.variable(reader, base, frozenset())
    reader.expect(";")
    name = f"{reader.scope}::{item.name}" if reader.scope else item.name
    made = tree.Class(name, "struct", template, scope=reader.scope, complete=True, library=reader.library)
    made.constants[tree.VALUE] = (None, item)
    reader.entities.classes.setdefault(name, []).append(made)
    reader.names.types.add(name)
    reader.names.class_templates.add(name)
