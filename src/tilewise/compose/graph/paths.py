"""A path, rebuilt from the predecessors that `closure` returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.arrays.labelled import as_host
from tilewise.errors import ShapeError, UsageError

NONE = -1  # no predecessor: the node is not reached, or is the source


def path(predecessors: Any, source: int, target: int, *, sources: Any = None) -> list[int]:
    """The nodes from `source` to `target`, both included; empty when there is no path.

    predecessors: what `tw.closure(W, return_predecessors=True)` returns beside the closure.
    sources: what `closure` was given as `sources=`, if it was. Without it, the row of `source` is recognised by where
        its paths begin, which a source that reaches no node does not show.

    >>> D, before = tw.closure(np.array([[0, 4, 9], [4, 0, 2], [9, 2, 0.0]]), return_predecessors=True)
    >>> tw.path(before, 0, 2)
    [0, 1, 2]
    """
    table = as_host(predecessors, "predecessors")
    if table.ndim > 2:
        raise ShapeError(f"predecessors are {table.shape}, those of a stack: pass one graph's, such as predecessors[0]")
    if table.ndim != 2 or table.dtype.kind not in "iu" or table.size == 0:
        raise ShapeError("predecessors must be the table that closure(return_predecessors=True) returns")
    nodes = table.shape[1]
    for name, node in (("source", source), ("target", target)):
        if not isinstance(node, int | np.integer) or isinstance(node, bool) or not 0 <= node < nodes:
            raise UsageError(f"{name}={node!r} is not a node: they are numbered from 0 to {nodes - 1}")
    row = _row_of(table, source, sources)
    if source == target:
        return [int(source)]
    found = _backwards(row, int(target))
    return found[::-1] if found[-1] == source else []


def _row_of(table: Array, source: int, sources: Any) -> Array:
    """The row of predecessors that belongs to `source`."""
    rows, nodes = table.shape
    if sources is not None:
        given = np.atleast_1d(as_host(sources, "sources"))
        if given.shape != (rows,):
            raise ShapeError(f"predecessors have {rows} rows and there are {given.size} sources: pass those of closure")
        at = np.flatnonzero(given == source)
        if not at.size:
            raise UsageError(f"source={source} is not among sources={given.tolist()}, whose paths these are")
        return np.asarray(table[at[0]])
    if rows == nodes and _begins(table[source]) in (source, NONE):
        return np.asarray(table[source])
    for row in table:
        if _begins(row) == source:
            return np.asarray(row)
    raise UsageError(
        f"source={source} begins none of these {rows} rows of predecessors: pass sources= as closure was given it, "
        "and a source that is among them"
    )


def _begins(row: Array) -> int:
    """The source of a row of predecessors; NONE if it has no path."""
    reached = int((row != NONE).argmax())
    return NONE if row[reached] == NONE else _backwards(row, reached)[-1]


def _backwards(row: Array, target: int) -> list[int]:
    """The target, its predecessor, and so on, to a node without one."""
    walked = [target]
    while (before := int(row[walked[-1]])) != NONE:
        if len(walked) >= len(row) or not 0 <= before < len(row):
            raise UsageError("predecessors contain a cycle: they are not what closure returned")
        walked.append(before)
    return walked
