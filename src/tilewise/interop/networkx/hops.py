"""Hop counts: for each node the number of nodes at each distance, with Python's integers as bit sets.

All searches advance together. The nodes that one node has reached are the bits of one integer, and its next set is the
union of its neighbours' sets: an edge costs one `|` a step, whatever the size of the sets. Deep graphs (a path) are
searched from one node after the other instead. Importing NumPy would take longer than most calls.
"""

from __future__ import annotations

from functools import reduce
from operator import itemgetter, or_
from typing import Any

Counts = list[list[int]]  # for each node: the numbers of others 1, 2, … edges away
Neighbours = list[list[int]]


class HopLengths:
    """Statistics of the path lengths from each node of an unweighted graph, or, inward, to it."""

    def __init__(self, graph: Any, inward: bool) -> None:
        self._counts = count_by_distance(graph, inward=inward)

    def reached(self) -> list[int]:
        return [sum(counts) for counts in self._counts]

    def farthest(self) -> list[int]:
        return [len(counts) for counts in self._counts]

    def totals(self) -> list[int]:
        return [sum(far * count for far, count in enumerate(counts, 1)) for counts in self._counts]

    def inverses(self) -> list[float]:
        """Σ 1 / length."""
        return [sum(count / far for far, count in enumerate(counts, 1)) for counts in self._counts]


def count_by_distance(graph: Any, *, inward: bool = False) -> Counts:
    """Numbers of nodes by their distance from each node, or, inward, to it."""
    neighbours = _neighbours(graph, inward and graph.is_directed())
    if not neighbours:
        return []
    depth = len(_search(neighbours, 0)) + 1
    n = len(neighbours)
    if 2 * depth * (0.75 + n / 4000) > n / 2:  # both in units of one search, fitted to paths, the worst case
        return [_search(neighbours, node) for node in range(n)]
    counts = _grow(neighbours, 2 * depth + 16)
    return counts if counts is not None else [_search(neighbours, node) for node in range(n)]


def _neighbours(graph: Any, inward: bool) -> Neighbours:
    index = {node: number for number, node in enumerate(graph)}
    outward = [[index[other] for other in others] for _, others in graph.adjacency()]
    if not inward:
        return outward
    result: Neighbours = [[] for _ in outward]
    for number, others in enumerate(outward):
        for other in others:
            result[other].append(number)
    return result


def _grow(neighbours: Neighbours, most: int) -> Counts | None:
    """All searches together; None if some sets still grow after `most` steps."""
    n = len(neighbours)
    around = [itemgetter(*(others if len(others) > 1 else (v, v, *others))) for v, others in enumerate(neighbours)]
    reached = [1 << v for v in range(n)]
    known = [1] * n
    counts: Counts = [[] for _ in range(n)]
    growing = list(range(n))
    for _ in range(most):
        balls = [reduce(or_, around[v](reached), reached[v]) for v in growing]
        still = []
        for v, ball in zip(growing, balls, strict=True):
            count = ball.bit_count()
            if count > known[v]:
                counts[v].append(count - known[v])
                known[v], reached[v] = count, ball
                if count < n:
                    still.append(v)
        growing = still
        if not growing:
            return counts
    return None


def _search(neighbours: Neighbours, start: int) -> list[int]:
    """Breadth-first search from one node: the number of nodes of each level."""
    n, seen, level, counts = len(neighbours), {start}, [start], []
    while len(seen) < n:
        following = []
        for v in level:
            for w in neighbours[v]:
                if w not in seen:
                    seen.add(w)
                    following.append(w)
        if not following:
            break
        counts.append(len(following))
        level = following
    return counts


def sample_searches(graph: Any) -> tuple[int, float]:
    """The largest depth of five searches, and the mean number of nodes that they reach."""
    neighbours = _neighbours(graph, False)
    n = len(neighbours)
    found = [_search(neighbours, start) for start in range(0, n, max(1, n // 5))]
    return max(map(len, found), default=0), sum(1 + sum(counts) for counts in found) / max(1, len(found))
