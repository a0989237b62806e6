"""Tests that need a card run on few machines: whatever of tilewise they import, patch or name must exist on all."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
EXAMPLES = TESTS.parent / "examples"
FILES = sorted([*TESTS.glob("cuda/*.py"), *TESTS.glob("graph/test_card_*.py"), *EXAMPLES.glob("*.py")])
NEEDS_FRAMEWORK = ("tilewise.torch", "tilewise.jax", "tilewise.interop")


def found(dotted):
    """What a dotted name of tilewise stands for."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        try:
            here = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            here = getattr(here, part)
        return here
    raise AttributeError(dotted)


def names_in(tree):
    """Dotted names of tilewise: imported, used through a module, patched there, or written out as a string."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "tilewise":
                    yield alias.name
                    modules[alias.asname or "tilewise"] = alias.name if alias.asname else "tilewise"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tilewise":
            for alias in node.names:
                yield f"{node.module}.{alias.name}"
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("tilewise."):
            yield node.value
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield f"{modules[node.value.id]}.{node.attr}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            match node.args[:2]:
                case [ast.Name(owner), name] if owner in modules:  # a name that is not written out is not found
                    yield f"{modules[owner]}.{name.value if isinstance(name, ast.Constant) else ast.unparse(name)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_name_is_there(path):
    for name in sorted(set(names_in(ast.parse(path.read_text(encoding="utf-8"))))):
        if not name.startswith(NEEDS_FRAMEWORK):
            found(name)


def test_a_name_that_is_gone_is_seen():
    gone = "import tilewise.planning.choose as planning\nmonkeypatch.setattr(planning, 'best_config', None)"
    with pytest.raises(AttributeError, match="best_config"):
        [found(name) for name in names_in(ast.parse(gone))]
