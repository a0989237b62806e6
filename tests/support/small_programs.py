"""Small whole programs: those that the tests of the host language run, taken from their text."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

LONGEST = 2500
FOLDER = Path(__file__).parents[1] / "emulator" / "host"
MAIN = re.compile(r"\bmain\s*\(")


@functools.cache
def small_programs() -> tuple[str, ...]:
    """Every string of those tests that has a main, and bodies that a test puts into one."""
    out: dict[str, None] = {}
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < LONGEST:
                if MAIN.search(node.value):
                    out[node.value] = None
                elif node.value.count(";") > 1 and "{" not in node.value[:1]:
                    out[f"#include <cstdio>\n#include <cstdlib>\nint main() {{\n{node.value}\nreturn 0;\n}}\n"] = None
    return tuple(out)
