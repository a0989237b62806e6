"""How many nodes lie how many edges away from each node, with Python's own integers: no matrix, no kernel, no import.

All searches go on at once. What a node has reached is a set of bits in one integer, and its next is the union of its
neighbours': an edge costs one `|` a step, whatever the number of nodes behind it. A graph as deep as it has nodes (a
path) is searched from one node after the other instead.
"""

from __future__ import annotations

from functools import reduce
from operator import itemgetter, or_
from typing import Any

Counts = list[list[int]]  # of each node: how many others are 1, 2, … edges away
Neighbours = list[list[int]]


def count_by_distance(graph: Any, *, inward: bool = False) -> Counts:
    """Distances from each node, or (inward) to it."""
    neighbours = _neighbours(graph, inward and graph.is_directed())
    if not neighbours:
        return []
    depth = len(_search(neighbours, 0)) + 1
    n = len(neighbours)
    if 2 * depth * (0.75 + n / 4000) > n / 2:  # in searches: measured on paths, where it is dearest
        return [_search(neighbours, node) for node in range(n)]
    counts = _grow(neighbours, 2 * depth + 16)
    return counts if counts is not None else [_search(neighbours, node) for node in range(n)]


def _neighbours(graph: Any, inward: bool) -> Neighbours:
    at = {node: number for number, node in enumerate(graph)}
    outward = [[at[other] for other in others] for _, others in graph.adjacency()]
    if not inward:
        return outward
    made: Neighbours = [[] for _ in outward]
    for number, others in enumerate(outward):
        for other in others:
            made[other].append(number)
    return made


def _grow(neighbours: Neighbours, most: int) -> Counts | None:
    """All nodes together; None after that many steps, if some are still growing (their depths differ much)."""
    n = len(neighbours)
    around = [itemgetter(*(at if len(at) > 1 else (v, v, *at))) for v, at in enumerate(neighbours)]
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
    """From one node."""
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
    """How deep the deepest of a few searches went, and how many nodes one reached in the mean."""
    neighbours = _neighbours(graph, False)
    n = len(neighbours)
    found = [_search(neighbours, start) for start in range(0, n, max(1, n // samples))]
    return max(map(len, found), default=0), sum(1 + sum(counts) for counts in found) / max(1, len(found))
