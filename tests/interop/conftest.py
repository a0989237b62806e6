"""Tests that need a framework: `make test-interop`. NetworkX is small, so its tests run with the others."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
FRAMEWORKS = ("torch", "jax")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """A framework that is not there is named, and its tests are left out."""
    name = next((f for f in FRAMEWORKS if collection_path.name.startswith(f"test_{f}")), None)
    if name is None:
        return None
    from importlib.util import find_spec

    return True if find_spec(name) is None else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and any(f in item.path.name for f in FRAMEWORKS):
            item.add_marker(pytest.mark.interop)
