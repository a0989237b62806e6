"""Functions that call each other across files (expressions hold types, types hold expressions), bound by name.

A file hands in what others above it in the imports may call; imports themselves go one way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

late: Any = SimpleNamespace()


def provide(*functions: Any) -> None:
    for function in functions:
        setattr(late, function.__name__, function)
