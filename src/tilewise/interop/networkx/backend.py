"""What NetworkX calls: conversion, whether a function can and should run here, and one function for each name.

Whether it should is decided by an estimate of both sides in seconds, made of counts of nodes and edges alone, and by
whether kernels have been built. Until they are, and where no matrix would pay, most functions run in plain Python all
the same: NetworkX asks every backend again for every search of its own, which takes longer than it took to load this.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import networkx as nx

from tilewise.interop.networkx.nodes import Nodes
from tilewise.interop.networkx_info import FUNCTIONS

MOST_NODES = 30_000  # whose matrix of float64 takes 7.2 GB
MARGIN = 1.3  # both sides are models, so a win must be clear

# what must be left as it is for the call to be about all pairs
ALL_PAIRS = {
    "shortest_path": (("source", 1, None), ("target", 2, None)),
    "shortest_path_length": (("source", 1, None), ("target", 2, None)),
    "eccentricity": (("v", 1, None), ("sp", 2, None)),
    **dict.fromkeys(("diameter", "radius", "center", "periphery"), (("e", 1, None), ("usebounds", 2, False))),
    "closeness_centrality": (("u", 1, None), ("sp", 4, None)),
    "harmonic_centrality": (("nbunch", 1, None), ("sources", 3, None)),
    "betweenness_centrality": (("k", 1, None), ("weight", 3, None)),
}  # fmt: skip
WEIGHT_AT = {
    "floyd_warshall": 1, "floyd_warshall_numpy": 2, "floyd_warshall_predecessor_and_distance": 1, "johnson": 1,
    "all_pairs_dijkstra_path_length": 2, "all_pairs_dijkstra_path": 2, "all_pairs_dijkstra": 2,
    "all_pairs_bellman_ford_path_length": 1, "all_pairs_bellman_ford_path": 1, "shortest_path": 3,
    "shortest_path_length": 3, "average_shortest_path_length": 1, "eccentricity": 3, "diameter": 3, "radius": 3,
    "center": 3, "periphery": 3,
}  # fmt: skip
DISTANCE_AT = {"closeness_centrality": 2, "harmonic_centrality": 2}
DEFAULT_WEIGHTED = ("floyd_warshall", "johnson", "all_pairs_dijkstra", "all_pairs_bellman_ford")
FROM_ONE = ("dijkstra", "bellman-ford")
METHODS = {
    "shortest_path": FROM_ONE,
    "shortest_path_length": FROM_ONE,
    "average_shortest_path_length": (None, "unweighted", *FROM_ONE, "floyd-warshall", "floyd-warshall-numpy"),
}
SHORT = 0.01  # seconds of NetworkX's; what runs here in plain Python is then as quick as by matrix
FEW = 24  # nodes, whose searches take NetworkX no longer than handing a graph over does
FEW_STEPS = 20_000  # nodes times edges, the same where searches along directed edges end soon


class Backend:
    """The entry point of `networkx.backends`."""

    @staticmethod
    def convert_from_nx(graph: Any, *_: Any, **__: Any) -> Any:
        return graph if isinstance(graph, Nodes) else Nodes(graph)

    @staticmethod
    def convert_to_nx(result: Any, *_: Any, **__: Any) -> Any:
        return result.graph if isinstance(result, Nodes) else result

    @staticmethod
    def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        if name not in FUNCTIONS:
            return f"{name} is not a function of this backend"
        for key, at, usual in ALL_PAIRS.get(name, ()):  # first: NetworkX asks for every source of its own searches
            if (args[at] if len(args) > at else kwargs.get(key, usual)) is not usual:
                return "this is not about all pairs"
        nodes = len(_graph(args, kwargs))
        if nodes > MOST_NODES:
            return f"{nodes:,} nodes make a matrix of {8 * nodes**2 / 1e9:.0f} GB"
        method = _method(name, args, kwargs)
        if name in METHODS and method not in METHODS[name]:
            return f"method={method!r} is left to NetworkX"
        return True

    @staticmethod
    def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        graph = _graph(args, kwargs)
        nodes, edges = _size(graph)
        weighted = _weight(name, args, kwargs) is not None
        if _plain_room(name, weighted) and not _asks_for_negative(name, args, kwargs):
            few = nodes < FEW or (graph.is_directed() and nodes * edges < FEW_STEPS and not name.startswith("trans"))
            return not few or f"{nodes} nodes and {edges} edges are quicker done in NetworkX itself"
        ours, theirs = seconds_here(name, nodes, edges, weighted), seconds_there(name, nodes, edges, weighted)
        if ours * MARGIN >= theirs:
            return (
                f"{nodes} nodes and {edges} edges are quicker done in NetworkX itself ({theirs:.2g} s against "
                f"{ours:.2g})"
            )
        if not _has_kernels(name, (nodes, edges), weighted, (ours, theirs)):
            return f"kernels for {nodes} nodes are not built yet, and NetworkX will be done sooner"
        return True


def _has_kernels(name: str, size: tuple[int, int], weighted: bool, seconds: tuple[float, float]) -> bool:
    """Whether they are built, or are worth waiting for; if not, they are built behind. `seconds`: a matrix's, and
    those of what runs without one."""
    from tilewise.interop.networkx.readiness import BUILDING, READINESS  # many programs never come here

    ours, theirs = seconds
    kind = (_group(name), weighted, size[0].bit_length(), size[1].bit_length())
    if READINESS.is_ready(kind) or (ours + BUILDING) * MARGIN < theirs:
        READINESS.met(kind)
        return True
    READINESS.build_behind(kind, partial(_try_kernels, name, *size, weighted), theirs)
    return False


def _group(name: str) -> str:
    """Functions whose kernels are the same."""
    if name == "betweenness_centrality":
        return name
    return "paths" if name in PATHS else "lengths"


def _try_kernels(name: str, nodes: int, edges: int, weighted: bool) -> None:
    """Use what a function uses on a graph of this size."""
    graph = nx.gnm_random_graph(nodes, edges // 2, seed=0)
    if name == "betweenness_centrality":
        import_module("tilewise.interop.networkx.measures").betweenness_centrality(Nodes(graph))
        return
    from tilewise.interop.networkx.matrix import Weights

    for whole in (False, True) if weighted else (True,):
        for number, (_, _, data) in enumerate(graph.edges(data=True)):
            data["weight"] = 1 + number % 7 if whole else 0.5 + number % 7
        made = Weights(graph, "weight" if weighted else None)
        made.close_with_steps() if name in PATHS else made.close()


PATHS = ("shortest_path", "johnson", "all_pairs_shortest_path", "all_pairs_dijkstra_path", "all_pairs_dijkstra",
         "all_pairs_bellman_ford_path", "floyd_warshall_predecessor_and_distance")  # fmt: skip


HOPS = ("eccentricity", "diameter", "radius", "center", "periphery", "average_shortest_path_length",
        "global_efficiency", "closeness_centrality", "harmonic_centrality")  # fmt: skip
PATHS_ARE_A_DICTIONARY = tuple(map(int, nx.__version__.split(".")[:2])) < (3, 5)  # of all pairs; one by one since
SEARCHES = ("all_pairs_shortest_path_length", "shortest_path_length", "all_pairs_shortest_path", "shortest_path")
DIJKSTRA = ("all_pairs_dijkstra_path_length", "all_pairs_dijkstra_path", "all_pairs_dijkstra", "johnson",
            "all_pairs_bellman_ford_path_length", "all_pairs_bellman_ford_path", "shortest_path_length",
            "shortest_path")  # fmt: skip


def seconds_here(name: str, nodes: int, edges: int, weighted: bool) -> float:
    """A closure, and what is made of it."""
    n = nodes
    matrix = 1.5e-3 + 0.25e-6 * edges + n**3 * (0.25e-9 if weighted else 0.12e-9)
    if name in HOPS or name == "floyd_warshall_numpy":
        return matrix + 10e-9 * n * n
    return matrix + n * n * (0.7e-6 if name in PATHS else 0.14e-6) + (n**3 * 1e-9 if name in PATHS and weighted else 0)


def seconds_there(name: str, nodes: int, edges: int, weighted: bool) -> float:
    """A search from every node, in Python, or Floyd–Warshall; measured on connected graphs."""
    n, m = nodes, edges
    if name == "floyd_warshall_numpy":
        return n**3 * 1e-9 + n * n * n * 0.6e-9
    if name.startswith("floyd_warshall"):
        return n**3 * 90e-9
    if name == "betweenness_centrality":
        return n * (n + m) * 0.35e-6
    if weighted or name in ("johnson",):
        return n * (m * 0.25e-6 + n * 0.45e-6)
    return n * (m * 0.028e-6 + n * (0.11e-6 if name not in PATHS else 0.4e-6))


def _counting_seconds(graph: Any) -> tuple[float, float]:
    """Brandes's algorithm by products, and in plain Python. A level of the searches takes two products of the whole
    matrix, however few nodes are that far away, and plain searches take as long as they have nodes to reach: a few
    tell. Measured on a core without AVX-512; with it products are up to three times as fast."""
    from tilewise.interop.networkx.balls import sampled

    n, edges = _size(graph)
    depth, reached = sampled(graph)
    by_products = 1e-3 + 0.25e-6 * edges + (2 + depth) * (n**3 * 0.22e-9 + n * n * 14e-9)
    return by_products, n * (n * 0.15e-6 + reached * (0.6e-6 + edges / max(n, 1) * 0.077e-6))


def _weight(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if name in DISTANCE_AT:
        return _given(args, kwargs, "distance", DISTANCE_AT[name], None)
    if name not in WEIGHT_AT or _method(name, args, kwargs) == "unweighted":
        return None
    return _given(args, kwargs, "weight", WEIGHT_AT[name], "weight" if name.startswith(DEFAULT_WEIGHTED) else None)


def _method(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if name not in METHODS:
        return None
    at, usual = (2, None) if name.startswith("average") else (4, "dijkstra")
    return _given(args, kwargs, "method", at, usual)


def _given(args: tuple[Any, ...], kwargs: dict[str, Any], key: str, at: int, usual: Any) -> Any:
    return args[at] if len(args) > at else kwargs.get(key, usual)


def _graph(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    graph = args[0] if args else kwargs["G"]
    return graph.graph if isinstance(graph, Nodes) else graph


def _size(graph: Any) -> tuple[int, int]:
    """Nodes, and edges both ways round where the graph has no directions."""
    return len(graph), graph.number_of_edges() * (1 if graph.is_directed() else 2)


def _asks_for_negative(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a weight below 0 stands in the way of plain Python, where a matrix would take it."""
    if not (name == "johnson" or "bellman_ford" in name or _method(name, args, kwargs) == "bellman-ford"):
        return False
    from tilewise.interop.networkx.dijkstra import has_negative

    weight = _weight(name, args, kwargs)
    return weight is not None and has_negative(_graph(args, kwargs), weight)


def _plain_room(name: str, weighted: bool) -> str | None:
    """Where a function is that needs no kernel, if there is one."""
    if name.startswith("transitive"):
        return "reach"
    if weighted:
        return "dijkstra" if name in DIJKSTRA else None
    if name == "betweenness_centrality":
        return "brandes"
    return "hops" if name in HOPS else "searches" if name in SEARCHES else None


def _room(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Where a function is that is quickest now."""
    weighted = _weight(name, args, kwargs) is not None
    plain = _plain_room(name, weighted)
    if plain in ("reach", "hops") or (plain == "searches" and name in PATHS):
        return plain  # as many lists are made either way, and by matrix they are found later
    graph = _graph(args, kwargs)
    size = _size(graph)
    ours, theirs = seconds_here(name, *size, weighted), seconds_there(name, *size, weighted)
    if plain and theirs < SHORT:
        return plain
    if plain == "brandes":
        ours, theirs = _counting_seconds(graph)
        pays = ours < theirs
    else:
        pays = ours * MARGIN < theirs
    if plain and not (pays and _has_kernels(name, size, weighted, (ours, theirs))):
        return plain
    return "measures" if name in (*HOPS, "betweenness_centrality") else "lengths"


def _forget_handing_over(graph: Any) -> None:
    """NetworkX keeps what it converted, and warns at the next call that it may be stale; ours is the graph itself."""
    kept = getattr(graph, "__networkx_cache__", None)
    if kept:
        kept.get("backends", {}).pop("tilewise", None)


def _function(name: str) -> Callable[..., Any]:
    """A function of the backend; what it needs is imported when it runs: NumPy alone takes longer than most calls."""

    def run(*args: Any, **kwargs: Any) -> Any:
        _forget_handing_over(_graph(args, kwargs))
        room = import_module(f"tilewise.interop.networkx.{_room(name, args, kwargs)}")
        made = getattr(room, name)(*args, **kwargs)
        return dict(made) if name == "shortest_path" and PATHS_ARE_A_DICTIONARY else made

    run.__name__ = run.__qualname__ = name
    return run


backend = Backend()
for _name in FUNCTIONS:
    setattr(Backend, _name, staticmethod(_function(_name)))
