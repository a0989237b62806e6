"""A path, rebuilt from the predecessors that `closure` returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.errors import ShapeError, UsageError

NONE = -1  # no predecessor: nothing leads there, or it is where the path begins


def path(predecessors: Any, source: int, target: int) -> list[int]:
    """The nodes from `source` to `target`, both included; empty when there is no way.

    predecessors: what `tw.closure(W, return_predecessors=True)` returns beside the closure.

    >>> D, before = tw.closure(np.array([[0, 4, 9], [4, 0, 2], [9, 2, 0.0]]), return_predecessors=True)
    >>> tw.path(before, 0, 2)
    [0, 1, 2]
    """
    table = np.asarray(predecessors)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or table.dtype.kind not in "iu":
        raise ShapeError("predecessors must be the square table that closure(return_predecessors=True) returns")
    for name, node in (("source", source), ("target", target)):
        if not 0 <= node < len(table):
            raise UsageError(f"{name}={node} is not a node: they are numbered from 0 to {len(table) - 1}")
    if source == target:
        return [source]
    nodes = [target]
    while nodes[-1] != source:
        before = int(table[source, nodes[-1]])
        if before == NONE:
            return []
        if len(nodes) > len(table):
            raise UsageError("predecessors lead in a circle: they are not what closure returned")
        nodes.append(before)
    return nodes[::-1]
