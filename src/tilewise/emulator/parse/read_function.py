"""Functions, lambdas and template heads."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.parse import read_type, tree
from tilewise.emulator.parse.read_expression import arguments, assignment, braces
from tilewise.emulator.parse.read_primary import operator_name
from tilewise.emulator.parse.read_statement import block
from tilewise.emulator.parse.reading import Reader
from tilewise.emulator.source.lexer import Token


def template_head(reader: Reader) -> list[tree.TemplateParameter]:
    """template <typename T, int N = 4>; declares the names in the innermost scope."""
    reader.expect("template")
    reader.expect("<")
    out: list[tree.TemplateParameter] = []
    with reader.angles():
        while reader.token.text not in (">", ">>"):
            token = reader.token
            templated = reader.at("template")
            if templated:  # template <typename> class Op: its own parameters have no names that are used
                with reader.local_scope():
                    template_head(reader)
                token = reader.token
            is_type = (token.text in ("typename", "class") and reader.peek(2).text in (",", ">", "=", ">>")) or (
                token.text in ("typename", "class") and reader.peek().text in (",", ">", "=", "...")
            )
            type_ = None
            pack = False
            name = ""
            constraint = "" if is_type else _constraint(reader)
            if is_type or constraint:
                if is_type:
                    reader.advance()
                is_type = True
                pack = reader.take("...")
                if reader.token.kind == "name":
                    name = reader.advance().text
                reader.local_types[-1].add(name)
                if templated:
                    reader.local_templates.add(name)
            else:
                type_ = read_type.specifiers(reader, set())
                if reader.token.kind == "number" and reader.token.origin:  # -D replaced the name
                    name = reader.advance().origin
                else:
                    type_, name, _ = read_type.declarator(reader, type_)
                reader.local_values[-1].add(name)
            default = None
            if reader.take("="):
                default = read_type.template_argument(reader)
            where: dict[str, Any] = {"line": token.line, "column": token.column}
            out.append(tree.TemplateParameter(name, is_type, default, type_, pack, constraint, templated, **where))
            if not reader.take(","):
                break
    _requirement(reader)
    return out


def _constraint(reader: Reader) -> str:
    """Skip the concept of `template <std::integral T>`; its name, or '' if a type or a value begins."""
    if reader.token.kind != "name" or read_type.starts_type(reader):
        return ""
    name, end = reader.ahead_qualified(reader.position)
    if reader.tokens[end].kind != "name" and reader.tokens[end].text not in ("<", "..."):
        return ""
    reader.position = end
    _skip_angles(reader)
    return name


def _requirement(reader: Reader) -> None:
    """Skip `requires A<T> && (…)`: it is taken to hold."""
    if not reader.take("requires"):
        return
    while True:
        while reader.take("!"):
            pass
        if reader.at("("):
            reader.skip_balanced()
        else:
            reader.qualified()
            _skip_angles(reader)
        if not (reader.take("&&") or reader.take("||")):
            return


def _skip_angles(reader: Reader) -> None:
    if reader.at("<"):
        read_type.template_arguments(reader)


def function_rest(
    reader: Reader, result: Any, specifiers: set[str], template: list[Any], owner: tree.Class | None = None
) -> tree.Function:
    """A function from its name on: parameters, qualifiers, constructor initialisers, tokens of the body."""
    token = reader.token
    class_name, name, special = _function_name(reader)
    outer, inner = reader.scope, reader.names.find(class_name, reader.scope, reader.names.namespaces)
    if class_name and inner is not None:  # int space::f(int) { … }
        reader.scope, class_name = inner, ""
    with reader.local_scope():
        inside = None
        if class_name:
            inside = _class_of(reader, class_name)
            reader.local_types[-1] |= set(inside.types)
        found, variadic = read_type.parameters(reader)
        made = tree.Function(
            name, result, found, frozenset(specifiers), template, variadic, owner=owner, scope=reader.scope,
            library=reader.library, of_pack=reader.of_pack, line=token.line, column=token.column,
            special=special if tree.specialises(template) else None,
        )  # fmt: skip
        _after_parameters(reader, made)
    if template and owner is not None:
        reader.names.member_templates.add(name)
    if inside is not None:
        _define_method(reader, inside, made)
    elif owner is None:
        if name.startswith(("operator new", "operator delete")):
            raise reader.error(f"{name} is supported in classes, not for the whole program", made)
        made.name = f"{reader.scope}::{name}" if reader.scope else name
        if template:
            reader.names.function_templates.add(made.name)
        reader.entities.add_function(made)
    reader.scope = outer
    return made


def _function_name(reader: Reader) -> tuple[str, str, list[Any] | None]:
    """(class of an out-of-class definition or '', name, template arguments behind it)."""
    parts: list[str] = []
    given: list[Any] | None = None
    while True:
        if reader.at("operator"):
            name = operator_name(reader)
            if name == "operator type":
                base = read_type.specifiers(reader, set())
                type_ = read_type.pointers(reader, base)
                return "::".join(parts), "operator type " + _spelled(type_), None
            break
        if reader.take("~"):
            reader.advance()
            name = "~"
            break
        if reader.token.kind != "name":
            raise reader.error("the name of a function is expected here")
        name = reader.advance().text
        if reader.at("<"):
            start = reader.position
            depth = 0
            while reader.token.kind != "end":
                depth += {"<": 1, ">": -1, ">>": -2}.get(reader.advance().text, 0)
                if depth <= 0:
                    break
            end, behind = reader.position, reader.token.text
            if behind not in ("::", "("):
                reader.position = start
            elif behind == "(":
                reader.position = start
                given = read_type.template_arguments(reader)
                reader.position = end
        if not reader.take("::"):
            break
        parts.append(name)
    if parts and name == parts[-1]:
        name = "<new>"
    return "::".join(parts), name, given


def _spelled(type_: Any) -> str:
    if isinstance(type_, tree.TypeConst):
        return _spelled(type_.of)
    if isinstance(type_, tree.TypePointer):
        return _spelled(type_.to) + "*"
    if isinstance(type_, tree.TypeReference):
        return _spelled(type_.to) + "&"
    return str(type_.type) if isinstance(type_, tree.TypeFixed) else str(getattr(type_, "name", "?"))


def _class_of(reader: Reader, name: str) -> tree.Class:
    found = reader.names.find(name, reader.scope, set(reader.entities.classes))
    if found is None:
        raise reader.error(f"{name} is not a class that is known here")
    made: tree.Class = reader.entities.classes[found][0]
    return made


def _after_parameters(reader: Reader, made: tree.Function) -> None:
    while True:
        text = reader.token.text
        if text in ("const", "override", "final", "volatile", "&", "&&") or text in read_type.STORAGE:
            if text == "const":
                made.specifiers |= {"const method"}
            reader.advance()
            if text == "noexcept" and reader.at("("):
                reader.skip_balanced()
        elif text == "throw" and reader.peek().text == "(":
            reader.advance()
            reader.skip_balanced()
        elif text == "->":
            reader.advance()
            made.result = read_type.type_id(reader)
        elif (text == "[" and reader.peek().text == "[") or text in ("__attribute__", "__launch_bounds__"):
            reader.skip_attributes()
        else:
            break
    if reader.at("="):
        reader.advance()
        value = reader.advance().text
        made.defaulted, made.deleted = value == "default", value == "delete"
        if value == "0":
            made.specifiers |= {"pure"}
        reader.expect(";")
        return
    tried = reader.advance() if reader.at("try") else None
    if reader.take(":"):
        if tried is not None:
            raise reader.error("try around a constructor's initialisers is not supported yet: put try into its body")
        with reader.brackets():
            _initialisers(reader, made)
    if reader.at("{"):
        if isinstance(made.result, tree.TypeOf):  # -> decltype(f(x)): what its body returns
            made.result = tree.TypeAuto(line=made.line)
        made.tokens = reader.skip_balanced()
        if tried is not None:
            made.tokens = _with_handlers(reader, tried, made.tokens)
        return
    reader.expect(";")


def _with_handlers(reader: Reader, tried: Token, body: list[Token]) -> list[Token]:
    """The body of `f() try { … } catch (T e) { … }` as { try { … } catch (T e) { … } }."""
    made = [body[0].at(tried), tried, *body]
    while reader.at("catch"):
        made.append(reader.advance())
        made += [*reader.skip_balanced(), *reader.skip_balanced()]
    return [*made, body[-1].at(made[-1])]


def _initialisers(reader: Reader, made: tree.Function) -> None:
    """: a(1), b{2}, Base(x)."""
    while True:
        if read_type.starts_type(reader) and reader.local_type(reader.token.text) is not False:
            target: Any = read_type.named_type(reader)
        else:
            target = reader.advance().text
        if reader.at("("):
            given: Any = arguments(reader)
        else:
            given = braces(reader)
        made.initialisers.append((target, given))
        if not reader.take(","):
            return


def _define_method(reader: Reader, owner: tree.Class, made: tree.Function) -> None:
    """Replace a method's declaration by its out-of-class definition."""
    made.owner = owner
    if made.result is None and made.name not in ("<new>", "~") and not made.name.startswith("operator type"):
        raise reader.error(f"{made.name} is no member of {owner.name}", made)
    for i, known in enumerate(owner.methods):
        if known.name == made.name and known.tokens is None and len(known.parameters) == len(made.parameters):
            if _written([p.type for p in known.parameters]) != _written([p.type for p in made.parameters]):
                continue
            for new, old in zip(made.parameters, known.parameters, strict=True):
                new.default = new.default or old.default
            made.specifiers |= known.specifiers
            made.template = made.template if known.template else []
            owner.methods[i] = made
            return
    raise reader.error(f"{owner.name} declares no {made.name} with these parameters", made)


def _written(type_: Any) -> Any:
    """A type as written, to compare a declaration with its definition."""
    if isinstance(type_, list):
        return [_written(t) for t in type_]
    if isinstance(type_, tree.TypeConst):
        return ("const", _written(type_.of))
    if isinstance(type_, tree.TypePointer):
        return ("*", _written(type_.to))
    if isinstance(type_, tree.TypeReference):
        return ("&", type_.rvalue, _written(type_.to))
    if isinstance(type_, tree.TypeFixed):
        return str(type_.type)
    if isinstance(type_, tree.TypeName):
        return (type_.name.rpartition("::")[2], _written(type_.arguments) if type_.arguments else None, type_.inner)
    return type(type_).__name__


def lambda_(reader: Reader) -> tree.Lambda:
    """[captures](parameters) -> type { … }."""
    token = reader.expect("[")
    default = ""
    captures: list[tuple[str, bool, Any]] = []
    while not reader.at("]"):
        if reader.token.text in ("=", "&") and reader.peek().text in (",", "]"):
            default = reader.advance().text
        elif reader.at("this"):
            reader.advance()
            captures.append(("this", False, None))
        else:
            reference = reader.take("&")
            name = reader.advance().text
            init = assignment(reader) if reader.take("=") else None
            captures.append((name, reference, init))
        if not reader.take(","):
            break
    reader.expect("]")
    with reader.local_scope():
        found: list[Any] = []
        variadic = False
        while reader.token.text in ("__device__", "__host__"):  # ignored: the caller decides where it runs
            reader.advance()
        if reader.at("("):
            found, variadic = read_type.parameters(reader)
        result = None
        while not reader.at("{"):
            if reader.take("->"):
                result = read_type.type_id(reader)
            elif reader.token.text in ("mutable", "noexcept", "constexpr", "__device__", "__host__"):
                reader.advance()
            else:
                raise reader.error("the body of this lambda is expected here")
        with reader.brackets():
            body = block(reader)
    return tree.Lambda(default, captures, found, result, body, variadic, line=token.line, column=token.column)
