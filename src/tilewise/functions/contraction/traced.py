"""Products of several operands inside torch.compile: one call in the graph, with the semiring as a string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewise.algebra.semiring import Semiring
from tilewise.api import torch_follows
from tilewise.arrays import torch_library
from tilewise.core.reproducible import check_reproducible
from tilewise.errors import UsageError


def is_compiled(operands: Sequence[Any]) -> bool:
    """Whether torch.compile traces this call."""
    return len(operands) > 0 and torch_library.compiling() and torch_follows(operands[0], operands[0])


def check_not_compiled(reproducible: str | None, function: str) -> None:
    if check_reproducible(reproducible) is not None:
        raise UsageError(f"reproducible={reproducible!r} has no {function} inside torch.compile: use tw.matmul there")


def name_in_graph(semiring: str | Semiring) -> str:
    from tilewise.torch.semiring_names import name_of

    return name_of(semiring)


def semiring_in_graph(name: str) -> Semiring:
    from tilewise.torch.semiring_names import semiring_of

    return semiring_of(name)  # type: ignore[no-any-return]
