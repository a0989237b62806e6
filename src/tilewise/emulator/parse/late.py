"""Late-bound functions, for modules that call each other: expressions contain types, types contain expressions.

A module that is imported later provides its functions; those that it imports call them as `late.name`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

late: Any = SimpleNamespace()


def provide(*functions: Any) -> None:
    for function in functions:
        setattr(late, function.__name__, function)
