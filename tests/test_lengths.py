"""What a reader can hold at once: files under 400 lines, functions within 60; and who may name a family."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from statements import ROOT, sources
from tilewise.kernels.registry import FAMILIES

TEXTS = (".py", ".cu", ".cuh", ".h", ".js", ".css", ".html")
LINES_A_FILE, LINES_A_FUNCTION = 399, 60
SHARED = (
    "planning/choose.py", "core/plan.py", "core/recipe.py", "dispatch/execute.py", "dispatch/prepared.py",
    "dispatch/route.py", "core/tuning.py", "kernels/calibration.py",
    "kernels/family.py", "kernels/recipes.py", "kernels/shared", "backends/cuda", "cli/plan.py",
)  # fmt: skip
ORDINARY_NAMES = (
    "direct",
    "plain",
    "rows",
    "cells",
    "grouped",
    "ladder",
    "thin",
)  # names of families that prose may use


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def test_every_file_is_short():
    for path in sorted(ROOT.rglob("*")):
        if path.suffix in TEXTS:
            lines = path.read_text(encoding="utf-8").count("\n")
            assert lines <= LINES_A_FILE, f"{path.relative_to(ROOT)} has {lines} lines: which second idea moved in?"


def test_every_function_is_short(run_folder):
    for source in sources(run_folder):
        for name, lines in source.functions:
            assert lines <= LINES_A_FUNCTION, f"{source.path.relative_to(ROOT)}: {name} has {lines} lines"


def shared_files():
    for place in SHARED:
        path = ROOT / place
        assert path.exists(), f"{place} is gone from the list"
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


@cache
def named(path):
    """What a file names in code: modules it imports, its names and its strings, but not its comments and doc texts."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.update(node.module.split("."))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found.update(alias.name.split("."))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_shared_code_names_no_family(family):
    """Planning, launching and `--source` know families by their interface alone."""
    kernels = {family.name, *family.kernels} - set(ORDINARY_NAMES)
    for path in shared_files():
        assert family.name not in named(path), f"{path.relative_to(ROOT)} names {family.name}"
        found = [name for name in kernels if re.search(rf"\b{name}\b", path.read_text(encoding="utf-8"))]
        assert not found, f"{path.relative_to(ROOT)} names {found}"
