"""Every name in an `__all__` of the package is there: `from module import *` works."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

import tilewise

NEEDS = {"tilewise.torch": "torch", "tilewise.jax": "jax"}


def exporting() -> list[str]:
    """Modules that say what they export, found in their text: importing all of them would take seconds."""
    root = Path(tilewise.__file__).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        if "\n__all__" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(root.parent).with_suffix("").parts
            found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


@pytest.mark.parametrize("name", exporting())
def test_every_exported_name_is_there(name: str) -> None:
    needed = next((framework for start, framework in NEEDS.items() if name.startswith(start)), None)
    if needed is not None and find_spec(needed) is None:
        pytest.skip(f"needs {needed}")
    module = importlib.import_module(name)
    missing = [entry for entry in module.__all__ if not hasattr(module, entry)]
    assert not missing
    assert len(set(module.__all__)) == len(module.__all__)
