"""`short_dots`: integers of one and two bytes, M's rows along k and at least a vector long; for few columns."""

from __future__ import annotations

from tilewise.backends.cpu.family import View
from tilewise.backends.cpu.kernels.interleaved.model import SOME, deep
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, rows_apart
from tilewise.core.blocking import Blocking, RegisterTile
from tilewise.core.problem import Problem

IDEA = "a few columns of short integers; M is read where it lies, several k to a lane"
HIGH = 4  # rows from which copying N's columns is little beside the rest


def elements(vector_bytes: int, deep: int) -> int:
    """k that a vector of depth holds."""
    return deep * vector_bytes // 4


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    depth = deep(problem, tile)
    return depth > 1 and view.m_along_k and view.k >= elements(tile.vector_bytes, depth)


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    few = view.n <= SOME and view.m >= HIGH
    return f"{view.n} columns of short integers: M is read once where it lies" if few else ""


def column_words(a: Arithmetic, k: int) -> int:
    """32 bits each, of a copied column of N: whole vectors."""
    return -(-k // (a.deep * a.lanes)) * a.lanes


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    return rows_apart(a, x, x.n * (column_words(a, x.k) + 1) * 4)
