"""Enumerations."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.parse import read_type, tree, types
from tilewise.emulator.parse.read_expression import assignment
from tilewise.emulator.parse.reading import Reader


def qualify(reader: Reader, name: str) -> str:
    return f"{reader.scope}::{name}" if reader.scope else name


def enum(reader: Reader, owner: tree.Class | None = None) -> Any:
    """enum [class] Name { … }: its type, and its members as constants."""
    token = reader.advance()
    scoped = reader.take("class") or reader.take("struct")
    name = reader.advance().text if reader.token.kind == "name" else f"enum@{token.line}:{token.column}"
    full = qualify(reader, name)
    under: types.Scalar = types.INT if scoped else types.UINT
    if reader.take(":"):
        named = read_type.type_id(reader)
        found: Any = named.type if isinstance(named, tree.TypeFixed) else types.NAMED.get(getattr(named, "name", ""))
        under = found or types.INT
    type_ = types.Enum(full, "int", under.size, under.signed, under.rank, under.llvm, scoped)
    made = tree.TypeFixed(type_, line=token.line, column=token.column)
    reader.entities.aliases[full] = tree.Alias(name, made, [], reader.scope)
    reader.names.types.add(full)
    if len(reader.local_types) > 1:
        reader.local_types[-1].add(name)
        reader.entities.aliases[name] = reader.entities.aliases[full]
    if not reader.at("{"):
        return made
    reader.advance()
    previous: Any = None
    while not reader.at("}"):
        item = reader.advance()
        where: dict[str, Any] = {"line": item.line, "column": item.column}
        if reader.take("="):
            value = assignment(reader)
        elif previous is None:
            value = tree.Number(0, types.INT, **where)
        else:
            value = tree.Binary("+", tree.Cast(tree.TypeFixed(types.LONG), previous, "c", **where),
                                tree.Number(1, types.INT, **where), **where)  # fmt: skip
        previous = value
        inside = f"{full}::{item.text}"
        reader.entities.enumerators[inside] = (type_, value)
        if not scoped:
            reader.entities.enumerators[qualify(reader, item.text)] = (type_, value)
            if owner is not None:
                owner.constants[item.text] = (type_, value)
        if not reader.take(","):
            break
    reader.expect("}")
    return made
