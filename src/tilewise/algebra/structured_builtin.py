"""Built-in structured semirings: counted shortest paths, the k best, provenance, dual numbers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.expression import Symbol, largest, maximum, minimum, smallest, where
from tilewise.algebra.structured import Structured
from tilewise.errors import UsageError

MOST_BEST = 8


def _shorter(x: Any, y: Any) -> tuple[Symbol, Symbol]:
    counts = where(x.length <= y.length, x.paths, 0) + where(y.length <= x.length, y.paths, 0)
    return minimum(x.length, y.length), counts


def _larger(x: Any, y: Any) -> tuple[Symbol, Symbol]:
    tied = where(x.value == y.value, minimum(x.tag, y.tag), where(x.value > y.value, x.tag, y.tag))
    return maximum(x.value, y.value), tied


min_count = Structured(
    "min_count",
    _shorter,
    lambda x, y: (x.length + y.length, x.paths * y.paths),
    (largest, 0),
    fields=("length", "paths"),
)
max_arg = Structured(
    "max_arg",
    _larger,
    lambda x, y: (x.value + y.value, minimum(x.tag, y.tag)),
    (smallest, largest),
    fields=("value", "tag"),
)
dual = Structured(
    "dual",
    lambda x, y: (x.value + y.value, x.slope + y.slope),
    lambda x, y: (x.value * y.value, x.value * y.slope + x.slope * y.value),
    (0, 0),
    fields=("value", "slope"),
)


@lru_cache(maxsize=MOST_BEST)
def k_best(k: int) -> Structured:
    """The k least lengths of paths, ascending, ∞ where there are fewer: fields best0, best1, …

    >>> inf = float("inf")
    >>> M = (np.array([[1.0, 2.0]]), np.full((1, 2), inf))        # two edges, each with one length
    >>> N = (np.array([[5.0], [1.0]]), np.array([[6.0], [inf]]))  # and two parallel ones
    >>> tw.matmul(M, N, semiring=tw.k_best(2))
    (array([[3.]]), array([[6.]]))
    """
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_BEST:
        raise UsageError(f"k={k!r} must be a whole number from 1 to {MOST_BEST}")

    def ascending(rng: np.random.Generator, count: int) -> list[Any]:
        return list(np.sort(rng.integers(0, 9, (k, count)), 0))

    names = [f"best{i}" for i in range(k)]
    return Structured(
        f"{k}_best", lambda x, y: _least(list(x), list(y), k), lambda x, y: _least_sums(x, y, k), (largest,) * k,
        fields=names, witnesses=ascending,
    )  # fmt: skip


def _least_sums(x: Any, y: Any, k: int) -> list[Symbol]:
    """The k least of all sums. (i + 1)(j + 1) − 1 other sums are not larger than x[i] + y[j], so few candidates
    remain; those of one i ascend, and lists are merged, the shortest first."""
    lists = [[x[i] + y[j] for j in range(k // (i + 1))] for i in range(k)]
    lists.sort(key=len)
    while len(lists) > 1:
        one, two, *rest = lists
        lists = sorted([*rest, _least(one, two, k)], key=len)
    return lists[0]


def _least(x: list[Any], y: list[Any], k: int) -> list[Any]:
    """The k least of two ascending lists, ascending: Batcher's odd-even merge, with dead outputs dropped;
    of two lists of k, the minima of x and reversed y are the k least, as one bitonic list."""
    if len(x) == len(y) == k and k & (k - 1) == 0:
        return _bitonic([minimum(a, b) for a, b in zip(x, reversed(y), strict=True)])
    return _merged(x, y)[:k]


def _bitonic(x: list[Any]) -> list[Any]:
    if len(x) == 1:
        return x
    half = len(x) // 2
    low = [minimum(a, b) for a, b in zip(x[:half], x[half:], strict=True)]
    high = [maximum(a, b) for a, b in zip(x[:half], x[half:], strict=True)]
    return _bitonic(low) + _bitonic(high)


def _merged(x: list[Any], y: list[Any]) -> list[Any]:
    """Batcher's merge of two ascending lists of any lengths."""
    if not x or not y:
        return x or y
    if len(x) == len(y) == 1:
        return [minimum(x[0], y[0]), maximum(x[0], y[0])]
    even, odd = _merged(x[::2], y[::2]), _merged(x[1::2], y[1::2])
    made = [even[0]]
    for i, late in enumerate(odd):
        if i + 1 < len(even):
            made += [minimum(late, even[i + 1]), maximum(late, even[i + 1])]
        else:
            made.append(late)
    return made + even[len(odd) + 1 :]


def structured_named(name: str) -> Structured:
    """By name: min_count, max_arg, dual, 4_best."""
    known = {ring.name: ring for ring in (min_count, max_arg, dual)}
    return known[name] if name in known else k_best(int(name.removesuffix("_best")))
