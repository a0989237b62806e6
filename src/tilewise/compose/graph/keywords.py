"""What `tw.closure` takes beside its matrix, as a type checker sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

from tilewise.algebra.names import SemiringName
from tilewise.algebra.semiring import Semiring

Progress = Callable[[int, int], None]


class ClosureKeywords(TypedDict, total=False):
    """And beside return_predecessors, which says what comes back."""

    semiring: SemiringName | Semiring
    progress: Progress | None
    device: str
    sources: Any
