"""Functions as their source has them: syntax trees, and the types that annotations name."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from functools import lru_cache
from typing import Any

INTEGER, FLOAT, TRUTH, TABLE, OBJECT = "i64", "double", "i1", "ptr", "object"
NUMBERS = {"int": INTEGER, "float": FLOAT, "bool": INTEGER}  # of a named tuple, by their annotations


def kind_of(annotation: ast.expr | None, names: dict[str, Any]) -> str:
    assert isinstance(annotation, ast.Name), "a translated function annotates its parameters and its result"
    simple = {"int": INTEGER, "float": FLOAT, "bool": TRUTH, "Row": TABLE}.get(annotation.id)
    return simple or (TABLE if fields_of(annotation, names) else OBJECT)


def fields_of(annotation: ast.expr | None, names: dict[str, Any]) -> dict[str, tuple[int, str]]:
    """Of a named tuple of numbers: the place and the kind of each."""
    assert isinstance(annotation, ast.Name)
    made: Any = names.get(annotation.id)
    kinds = {name: made.__annotations__[name].__forward_arg__ for name in getattr(made, "_fields", ())}
    if not set(kinds.values()) <= NUMBERS.keys():
        return {}
    return {name: (at, NUMBERS[kind]) for at, (name, kind) in enumerate(kinds.items())}


def chain(node: ast.expr) -> tuple[str, tuple[str, ...]]:
    """A name, and the attributes of attributes that follow it."""
    path = list[str]()
    while isinstance(node, ast.Attribute):
        path.insert(0, node.attr)
        node = node.value
    assert isinstance(node, ast.Name)
    return node.id, tuple(path)


@lru_cache(maxsize=256)
def definition(function: Callable[..., Any]) -> ast.FunctionDef:
    """The syntax tree of a function, from its first line to the last one with code."""
    code = function.__code__
    first, last = code.co_firstlineno, max(line for *_, line in code.co_lines() if line)
    text = linecache.getlines(code.co_filename, function.__globals__)
    while last <= len(text):
        try:
            tree = ast.parse("".join(text[first - 1 : last])).body[0]
        except SyntaxError:  # closing brackets have no code
            last += 1
        else:
            assert isinstance(tree, ast.FunctionDef)
            return tree
    raise OSError(f"{code.co_filename} has no {function.__name__}")
