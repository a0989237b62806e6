"""Hop counts: how many nodes lie how many edges away from each node, with Python's integers as bit sets.

All searches advance together. The nodes that one node has reached are the bits of one integer, and its next set is the
union of its neighbours' sets: an edge costs one `|` a step, whatever the number of nodes in the sets. A graph as deep
as it has nodes (a path) is searched from one node after the other instead. Nothing is imported: NumPy alone takes
longer than most calls.
"""

from __future__ import annotations

from functools import reduce
from operator import itemgetter, or_
from typing import Any

Counts = list[list[int]]  # of each node: how many others are 1, 2, … edges away
Neighbours = list[list[int]]


class HopLengths:
    """Path lengths of an unweighted graph, summed up for each node: from it, or (inward) to it."""

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
    """Distances from each node, or (inward) to it."""
    neighbours = _neighbours(graph, inward and graph.is_directed())
    if not neighbours:
        return []
    depth = len(_search(neighbours, 0)) + 1
    n = len(neighbours)
    if 2 * depth * (0.75 + n / 4000) > n / 2:  # in searches: measured on paths, the most expensive case
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
    """All nodes together; None if some sets still grow after that many steps (their depths differ much)."""
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
    """Breadth first from one node."""
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


def sampled(graph: Any, samples: int = 5) -> tuple[int, float]:
    """The depth of the deepest of a few searches, and how many nodes one reached in the mean."""
    neighbours = _neighbours(graph, False)
    n = len(neighbours)
    found = [_search(neighbours, start) for start in range(0, n, max(1, n // samples))]
    return max(map(len, found), default=0), sum(1 + sum(counts) for counts in found) / max(1, len(found))
