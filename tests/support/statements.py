"""The package's own imports and functions: its hundred thousand lines are parsed once for all workers of a run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tilewise
from made_once import made_once

ROOT = Path(tilewise.__file__).parent


@dataclass(frozen=True)
class Import:
    """`import a.b` has no names; `from a.b import c, d` has."""

    module: str
    names: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Source:
    """One file: what it imports, inside of functions too, and how many lines each function has."""

    path: Path
    module: str
    imports: tuple[Import, ...]
    functions: tuple[tuple[str, int], ...]


def sources(run_folder: Path) -> list[Source]:
    """Of every file of the package."""
    return made_once(run_folder / "statements.pickle", lambda: [read(path) for path in sorted(ROOT.rglob("*.py"))])


def inner(node: ast.AST) -> Iterator[ast.AST]:
    """The statements in it; expressions, most of a tree, hold none."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from inner(child)


def read(path: Path) -> Source:
    imports, functions = [], []
    for node in inner(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imports += [Import(alias.name, (), node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            imports.append(Import(node.module, tuple(alias.name for alias in node.names), node.lineno))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append((node.name, node.end_lineno - node.lineno + 1))
    module = ".".join(("tilewise", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    return Source(path, module, tuple(imports), tuple(functions))
