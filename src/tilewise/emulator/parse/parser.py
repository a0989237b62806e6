"""The parser: a reader with the grammar's rules."""

from __future__ import annotations

from tilewise.emulator.parse import read_entity, read_expression, read_function, types
from tilewise.emulator.parse.declared import Declared
from tilewise.emulator.parse.reading import Reader
from tilewise.emulator.source.lexer import Token
from tilewise.emulator.source.source import Source


class Parser(Reader):
    assignment = read_expression.assignment
    comma = read_expression.comma
    arguments = read_expression.arguments
    braces = read_expression.braces
    lambda_ = read_function.lambda_
    entity = read_entity.entity
    local_entity = read_entity.local_entity


def read_tokens(source: Source, tokens: list[Token], before: Declared, library: bool) -> Declared:
    """Parse all declarations and add them to `before`."""
    names = before.names
    names.types |= set(types.NAMED) | {f"std::{n}" for n in types.NAMED}
    parser = Parser(source, tokens, names, before.entities, library=library)
    parser.local_types[0], parser.local_templates = before.types, before.templates
    while parser.token.kind != "end":
        read_entity.entity_or_refusal(parser)
    return before
