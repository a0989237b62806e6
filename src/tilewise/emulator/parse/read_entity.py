"""File-level declarations: functions, classes, variables, namespaces. Function bodies stay tokens until a call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

from tilewise.emulator.parse import packs, read_statement, read_type, tree, types
from tilewise.emulator.parse.read_class import class_definition, defines, unnamed_after_typedef, variable_template
from tilewise.emulator.parse.read_enum import enum, qualify
from tilewise.emulator.parse.read_function import function_rest, template_head
from tilewise.emulator.parse.reading import Reader
from tilewise.errors import KernelError


def entity_or_refusal(reader: Reader) -> None:
    """One entity; an error is recorded and the entity skipped."""
    if (
        reader.at("}") and not reader.entities.refusals and not reader.library
    ):  # behind an entity that was skipped it may close that
        raise reader.error("this } closes nothing")
    start, scope, depth, locals_ = reader.position, reader.scope, reader.depth, len(reader.local_types)
    try:
        entity(reader, [])
    except (KernelError, RecursionError) as error:
        if reader.library:
            raise
        reader.position = min(reader.position, len(reader.tokens) - 1)
        refusal = error if isinstance(error, KernelError) else reader.error("this is nested too deep")
        reader.entities.refusals.append(refusal)
        reader.rewind(start)
        reader.angle, reader.scope, reader.depth = 0, scope, depth
        del reader.local_types[locals_:], reader.local_values[locals_:]
        skip_entity(reader)
        head = reader.tokens[start : reader.position]
        opens = next((i for i, t in enumerate(head) if i and t.text == "(" and head[i - 1].kind == "name"), 0)
        specifiers = {t.text for t in head[:opens]}
        if opens and head[-1].text != ";":
            launches = any(t.text == "<<<" for t in head)
            out = reader.entities
            kept = out.refused if "__global__" in specifiers or launches else out.refused_functions
            kept.setdefault(head[opens - 1].text, refusal)


def skip_entity(reader: Reader) -> None:
    """Skip a declaration: past the ; or } that ends it, at least one token."""
    start = reader.position
    while reader.token.kind != "end":
        if reader.at("}") and reader.position > start:
            return
        if reader.at("{"):
            reader.skip_balanced()
            reader.take(";")
            return
        if reader.at("(") or reader.at("["):
            reader.skip_balanced()
        elif reader.advance().text == ";":
            return


def entity(reader: Reader, template: list[tree.TemplateParameter]) -> None:
    text = reader.token.text
    if text in MISSPELT:
        raise reader.error(f"{text} is no CUDA keyword: {MISSPELT[text]} has two underscores on each side")
    if text == "main" and reader.peek().text == "(":  # main() { … } without its int, which compilers accept
        function_rest(reader, tree.TypeFixed(types.INT), set(), template)
        return
    known = ENTITIES.get(text)
    if known is not None and known(reader, template):
        return
    _function_or_variables(reader, template)


def _empty(reader: Reader, template: list[Any]) -> bool:
    reader.advance()
    return True


def _extern(reader: Reader, template: list[Any]) -> bool:
    if reader.peek().kind != "string":
        return False
    reader.advance()
    reader.advance()
    if reader.at("{"):
        _members(reader)
    else:
        entity(reader, template)
    return True


def _members(reader: Reader) -> None:
    start = reader.expect("{")
    while not reader.at("}"):
        if reader.token.kind == "end":
            raise reader.error("this { is never closed", start)
        entity_or_refusal(reader)
    reader.advance()


def _namespace(reader: Reader, template: list[Any]) -> bool:
    if reader.at("inline"):
        if reader.peek().text != "namespace":
            return False
        reader.advance()
    reader.advance()
    kept = reader.scope
    if reader.at("{"):  # unnamed
        _members(reader)
        return True
    name = reader.qualified()
    if reader.take("="):
        reader.names.aliases[name] = reader.qualified()
        reader.expect(";")
        return True
    reader.scope = qualify(reader, name)
    reader.names.namespaces.add(reader.scope)
    _members(reader)
    reader.scope = kept
    return True


def _using(reader: Reader, template: list[Any]) -> bool:
    reader.advance()
    if reader.take("namespace"):
        name = reader.qualified()
        found = reader.names.find(name, reader.scope, reader.names.namespaces) or name
        reader.names.using.append(found)
        reader.expect(";")
        return True
    if reader.peek().text == "=":
        name = reader.advance().text
        reader.advance()
        alias(reader, name, read_type.type_id(reader), template)
    else:
        owner, _, name = reader.qualified().rpartition("::")
        owner = reader.names.find(owner, reader.scope, reader.names.namespaces) or owner
        for known_as in {name, qualify(reader, name)}:
            reader.names.aliases[known_as] = f"{owner}::{name}" if owner else name
    reader.expect(";")
    return True


def alias(reader: Reader, name: str, type_: Any, template: list[Any]) -> None:
    made = tree.Alias(name, type_, template, reader.scope, len(reader.local_types) > 1, line=reader.token.line)
    reader.entities.aliases[qualify(reader, name)] = made
    reader.names.types.add(qualify(reader, name))
    if template:
        reader.names.class_templates.add(qualify(reader, name))


def _typedef(reader: Reader, template: list[Any]) -> bool:
    reader.advance()
    if reader.token.text in ("struct", "class", "union") and defines(reader):
        made = class_definition(reader, [], unnamed_after_typedef(reader))
        base: Any = tree.TypeName(made.name, None)
    elif reader.at("enum"):
        base = enum(reader)
    else:
        base = read_type.specifiers(reader, set())
    while True:
        type_, name, _ = read_type.declarator(reader, base)
        if not name:
            raise reader.error("a name is expected here")
        if reader.at("("):  # typedef void f(int): a function's type
            type_ = tree.TypeFunction(type_, [p.type for p in read_type.parameters(reader)[0]])
        if not (isinstance(type_, tree.TypeName) and type_.name == qualify(reader, name)):
            alias(reader, name, type_, [])
        if not reader.take(","):
            break
    reader.expect(";")
    return True


def _class_after_specifiers(reader: Reader, template: list[Any], local: bool = False) -> tree.Declaration | bool:
    """`static struct X { … } x;`, `__host__ __device__ struct X { … };`: specifiers that do not change the class."""
    start, specifiers = reader.position, set()
    while reader.token.text in CLASS_SPECIFIERS:
        specifiers.add(reader.advance().text)
    if reader.token.text in ("struct", "class", "union"):
        made = _class(reader, template, frozenset(specifiers), local)
        if made is not False:
            return made
    reader.position = start
    return False


def _class(
    reader: Reader, template: list[Any], specifiers: frozenset[str] = frozenset(), local: bool = False
) -> tree.Declaration | bool:
    if reader.peek().kind == "name" and reader.peek(2).text == ";":
        reader.advance()
        name = reader.advance().text
        reader.names.types.add(qualify(reader, name))
        if template:
            reader.names.class_templates.add(qualify(reader, name))
        reader.expect(";")
        return True
    if not defines(reader):
        return False
    start = reader.position
    depth = 0
    while reader.token.kind != "end":  # `struct X f(…) {` is a function
        if reader.at("{") or reader.at(":"):
            break
        depth += {"<": 1, ">": -1}.get(reader.token.text, 0)
        before = reader.tokens[reader.position - 1].text
        if reader.at("(") and before in ("__align__", "alignas", "__attribute__"):
            reader.skip_balanced()
            continue
        if depth <= 0 and reader.at("("):
            reader.position = start
            return False
        reader.advance()
    reader.position = start
    made = class_definition(reader, template, "")
    base: Any = tree.TypeName(made.name, None)
    return _variables_after_type(
        reader, tree.TypeConst(base) if specifiers & {"const", "constexpr"} else base, specifiers, local
    )


def _variables_after_type(
    reader: Reader, base: Any, specifiers: frozenset[str], local: bool
) -> tree.Declaration | bool:
    """Variables between the } of a class or enum and the semicolon: locals, or of the file."""
    made: tree.Declaration | bool = True
    if local and (reader.token.kind == "name" or reader.at("*")):
        made = read_statement.variables(reader, base, specifiers, reader.token.line, reader.token.column)
    elif reader.token.kind == "name" or reader.at("*"):
        _variables(reader, base, specifiers)
        return True
    reader.expect(";")
    return made


def _enum(reader: Reader, template: list[Any], local: bool = False) -> tree.Declaration | bool:
    if reader.peek().kind == "name" and reader.peek().text not in ("class", "struct") and reader.peek(2).kind == "name":
        return False
    return _variables_after_type(reader, enum(reader), frozenset(), local)


def _template(reader: Reader, template: list[Any]) -> bool:
    if reader.peek().text != "<":  # an explicit instantiation
        skip_entity(reader)
    elif packs.declares_pack(reader):
        packs.read_versions(reader, skip_entity, lambda: _templated(reader))
    else:
        _templated(reader)
    return True


def _templated(reader: Reader) -> None:
    with reader.local_scope():
        found = template_head(reader)
        if reader.at("concept"):
            skip_entity(reader)
            return
        entity(reader, found or [tree.TemplateParameter("<none>", True)])


def _static_assert(reader: Reader, template: list[Any]) -> bool:
    skip_entity(reader)
    return True


MISSPELT = {
    f"{'_' * left}{name}{'_' * right}": f"__{name}__"
    for name in ("global", "device")
    for left in range(4)
    for right in range(4)
    if (left or right) and (left, right) != (2, 2)
}
CLASS_SPECIFIERS = ("__host__", "__device__", "__constant__", "__managed__", "__shared__", "static", "const")
ENTITIES: dict[str, Callable[[Reader, list[Any]], Any]] = {
    ";": _empty, "extern": _extern, "namespace": _namespace, "inline": _namespace, "using": _using,
    "typedef": _typedef, "struct": _class, "class": _class, "union": _class, "enum": _enum, "template": _template,
    **dict.fromkeys(CLASS_SPECIFIERS, _class_after_specifiers),
    "static_assert": _static_assert, "_Static_assert": _static_assert, "__asm__": _static_assert,
}  # fmt: skip


def _function_or_variables(reader: Reader, template: list[Any]) -> None:
    specifiers: set[str] = set()
    reader.skip_attributes()
    with reader.local_scope():
        kept = reader.position
        base = read_type.specifiers(reader, specifiers)
        mark = reader.position
        type_ = read_type.pointers(reader, base)
        extra: set[str] = set()
        while reader.token.text in read_type.STORAGE:
            extra.add(reader.advance().text)
        reader.skip_attributes()
        if reader.at("operator") or _is_function(reader):
            function_rest(reader, type_, specifiers | extra, template)
            return
        constructor = reader.at("(") and isinstance(base, tree.TypeName) and base.name in reader.entities.classes
        if constructor or (isinstance(base, tree.TypeName) and reader.at("::")):
            reader.position = kept  # Class::Class(…), Class::~Class(), Class<T>::method
            for _ in specifiers:
                if reader.token.text in read_type.STORAGE:
                    reader.advance()
            function_rest(reader, None, specifiers, template)
            return
        reader.position = mark
        if template:
            variable_template(reader, base, template)
            return
    _variables(reader, base, frozenset(specifiers))


def _is_function(reader: Reader) -> bool:
    """Whether a (qualified) name and a parameter list follow."""
    if reader.token.kind != "name":
        return False
    i = reader.position
    while reader.tokens[i].kind == "name":
        i += 1
        if reader.tokens[i].text == "<":
            depth = 0
            while reader.tokens[i].kind != "end":
                depth += {"<": 1, ">": -1, ">>": -2}.get(reader.tokens[i].text, 0)
                i += 1
                if depth <= 0:
                    break
        if reader.tokens[i].text != "::":
            break
        i += 1
        if reader.tokens[i].text in ("~", "operator"):
            return True
    if reader.tokens[i].text != "(":
        return False
    start, reader.position = reader.position, i
    try:
        if reader.peek().text == ")":
            return True
        reader.advance()
        with suppress(KernelError):
            if reader.at("...") or read_type.starts_type(reader):
                reader.position = i
                with reader.local_scope():
                    read_type.parameters(reader)
                return True
        reader.position = i
        inside = reader.skip_balanced()
        named = any(a.kind == b.kind == "name" and a.text not in ("sizeof", "new") for a, b in pairwise(inside))
        return reader.at("{") or (named and reader.at(";"))  # a function with a parameter of an unknown type
    finally:
        reader.rewind(start)


def _variables(reader: Reader, base: Any, specifiers: frozenset[str]) -> None:
    if isinstance(base, tree.TypeName) and base.name == "texture":  # the host binds it, kernels fetch through it
        specifiers |= {"__managed__"}
    while True:
        item = read_statement.variable(reader, base, specifiers)
        reader.local_values[-1].discard(item.name)
        name = qualify(reader, item.name)
        if not (name in reader.entities.variables and "extern" in specifiers):
            if name not in reader.entities.variables:
                reader.entities.order.append(name)
            reader.entities.variables[name] = item
        if not reader.take(","):
            break
    reader.expect(";")


def local_entity(reader: Reader) -> Any:
    """A class, enum, alias or static_assert inside a function; None if it is a variable."""
    token = reader.token
    text = token.text
    made: tree.Declaration | bool = True
    if text == "static_assert":
        skip_entity(reader)
    elif text == "using":
        if reader.peek(2).text == "=":
            reader.local_types[-1].add(reader.peek().text)
        _using(reader, [])
    elif text == "typedef":
        _typedef(reader, [])
    elif text == "enum":
        made = _enum(reader, [], local=True)
    else:
        made = _class_after_specifiers(reader, [], local=True)
    return None if made is False else tree.Nothing(line=token.line) if made is True else made
