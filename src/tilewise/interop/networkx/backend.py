"""NetworkX's entry point: conversion, whether a function can and should run here, and the functions by name.

`should_run` compares estimates in seconds of both implementations, from counts of nodes and edges alone, and checks
whether kernels are compiled. Until they are, and if no matrix is faster, most functions run here in plain Python, which
is still faster than NetworkX: that dispatches to backends again for each of its own searches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from inspect import signature
from typing import Any

import networkx as nx

from tilewise.interop.networkx.graph import NxGraph
from tilewise.interop.networkx_info import FUNCTIONS

MOST_NODES = 30_000  # a float64 matrix of which takes 7.2 GB
MARGIN = 1.3  # by which our estimate must be lower

# parameters that have their defaults in a call for all pairs
ALL_PAIRS = {
    **dict.fromkeys(("shortest_path", "shortest_path_length"), ("source", "target")),
    "eccentricity": ("v", "sp"),
    **dict.fromkeys(("diameter", "radius", "center", "periphery"), ("e", "usebounds")),
    "closeness_centrality": ("u", "sp"),
    "harmonic_centrality": ("nbunch", "sources"),
    "betweenness_centrality": ("k", "weight"),
}
FROM_ONE = ("dijkstra", "bellman-ford")
METHODS = {
    "shortest_path": FROM_ONE,
    "shortest_path_length": FROM_ONE,
    "average_shortest_path_length": (None, "unweighted", *FROM_ONE, "floyd-warshall", "floyd-warshall-numpy"),
}
SHORT = 0.01  # seconds of NetworkX below which plain Python is as fast as a matrix
FEW = 24  # nodes; NetworkX searches fewer in the time that converting the graph takes
FEW_STEPS = 20_000  # nodes times edges: the same limit for directed graphs, whose searches end early
PATHS_ARE_A_DICTIONARY = tuple(map(int, nx.__version__.split(".")[:2])) < (3, 5)  # since then an iterator

PATHS = ("all_pairs_shortest_path", "all_pairs_dijkstra_path", "all_pairs_dijkstra", "all_pairs_bellman_ford_path",
         "floyd_warshall_predecessor_and_distance")  # fmt: skip
MEASURES = ("eccentricity", "diameter", "radius", "center", "periphery", "average_shortest_path_length",
            "global_efficiency", "closeness_centrality", "harmonic_centrality")  # fmt: skip

Args = tuple[Any, ...]
Kwargs = dict[str, Any]


class Backend:
    """The entry point of `networkx.backends`."""

    @staticmethod
    def convert_from_nx(graph: Any, *_: Any, **__: Any) -> Any:
        return graph if isinstance(graph, NxGraph) else NxGraph(graph)

    @staticmethod
    def convert_to_nx(result: Any, *_: Any, **__: Any) -> Any:
        return result.graph if isinstance(result, NxGraph) else result

    @staticmethod
    def can_run(name: str, args: Args, kwargs: Kwargs) -> bool | str:
        if name not in FUNCTIONS:
            return f"{name} is not a function of this backend"
        for key in ALL_PAIRS.get(name, ()):  # first: NetworkX calls this for every source of its own searches
            if _argument(name, args, kwargs, key) is not _parameters(name).get(key, (0, None))[1]:
                return "this is not about all pairs"
        nodes = len(_graph(args, kwargs))
        if nodes > MOST_NODES:
            return f"{nodes:,} nodes make a matrix of {8 * nodes**2 / 1e9:.0f} GB"
        method = _argument(name, args, kwargs, "method")
        if name in METHODS and method not in METHODS[name]:
            return f"method={method!r} is left to NetworkX"
        return True

    @staticmethod
    def should_run(name: str, args: Args, kwargs: Kwargs) -> bool | str:
        name, args, kwargs = _all_pairs_call(name, args, kwargs)
        graph = _graph(args, kwargs)
        nodes, edges = _size(graph)
        weighted = _weight(name, args, kwargs) is not None
        if _python_module(name, weighted) and not _needs_matrix(name, args, kwargs):
            few = nodes < FEW or (graph.is_directed() and nodes * edges < FEW_STEPS and not name.startswith("trans"))
            return not few or f"{nodes} nodes and {edges} edges are quicker done in NetworkX itself"
        ours, theirs = our_seconds(name, nodes, edges, weighted), networkx_seconds(name, nodes, edges, weighted)
        if ours * MARGIN >= theirs:
            return (
                f"{nodes} nodes and {edges} edges are quicker done in NetworkX itself ({theirs:.2g} s against "
                f"{ours:.2g})"
            )
        if not _has_kernels(name, (nodes, edges), weighted, (ours, theirs)):
            return f"kernels for {nodes} nodes are not built yet, and NetworkX will be done sooner"
        return True


def _all_pairs_call(name: str, args: Args, kwargs: Kwargs) -> tuple[str, Args, Kwargs]:
    """`shortest_path`, `shortest_path_length` and `johnson` as the equivalent all-pairs function."""
    if name not in ("shortest_path", "shortest_path_length", "johnson"):
        return name, args, kwargs
    weight = _weight(name, args, kwargs)
    method = "bellman-ford" if name == "johnson" else _argument(name, args, kwargs, "method")
    if weight is None and name != "johnson":
        return f"all_pairs_{name}", args[:1] or (kwargs["G"],), {}
    searched = f"all_pairs_{method.replace('-', '_')}_path" + ("_length" if name.endswith("length") else "")
    return searched, args[:1] or (kwargs["G"],), {"weight": weight}


def _has_kernels(name: str, size: tuple[int, int], weighted: bool, seconds: tuple[float, float]) -> bool:
    """Whether kernels are compiled, or worth waiting for; if not, a thread compiles them. `seconds`: the estimates with
    a matrix and without."""
    from tilewise.interop.networkx.readiness import BUILDING, READINESS  # many programs never need it

    ours, theirs = seconds
    group = name if name == "betweenness_centrality" else "paths" if name in PATHS else "lengths"
    kind = (group, weighted, size[0].bit_length(), size[1].bit_length())
    if READINESS.is_ready(kind) or (ours + BUILDING) * MARGIN < theirs:
        READINESS.mark_ready(kind)
        return True
    READINESS.build_in_background(kind, partial(_compile_kernels, name, *size, weighted), theirs)
    return False


def _compile_kernels(name: str, nodes: int, edges: int, weighted: bool) -> None:
    """Run the kernels of a function on a random graph of this size, which compiles them."""
    graph = nx.gnm_random_graph(nodes, edges // 2, seed=0)
    if name == "betweenness_centrality":
        import_module("tilewise.interop.networkx.brandes_products").betweenness_centrality(NxGraph(graph))
        return
    from tilewise.interop.networkx.matrix import Weights

    for integral in (False, True) if weighted else (True,):
        for number, (_, _, data) in enumerate(graph.edges(data=True)):
            data["weight"] = 1 + number % 7 if integral else 0.5 + number % 7
        weights = Weights(graph, "weight" if weighted else None)
        weights.close_with_predecessors() if name in PATHS else weights.close()


def our_seconds(name: str, nodes: int, edges: int, weighted: bool) -> float:
    """Estimated seconds of a closure and of the conversion of its result into NetworkX's types."""
    n = nodes
    matrix = 1.5e-3 + 0.25e-6 * edges + n**3 * (0.25e-9 if weighted else 0.12e-9)
    if name in MEASURES or name == "floyd_warshall_numpy":
        return matrix + 10e-9 * n * n
    return matrix + n * n * (0.7e-6 if name in PATHS else 0.14e-6) + (n**3 * 1e-9 if name in PATHS and weighted else 0)


def networkx_seconds(name: str, nodes: int, edges: int, weighted: bool) -> float:
    """Estimated seconds of NetworkX: a search from every node, or Floyd–Warshall; fitted to connected graphs."""
    n, m = nodes, edges
    if name == "floyd_warshall_numpy":
        return n**3 * 1e-9 + n * n * n * 0.6e-9
    if name.startswith("floyd_warshall"):
        return n**3 * 90e-9
    if name == "betweenness_centrality":
        return n * (n + m) * 0.35e-6
    if weighted:
        return n * (m * 0.25e-6 + n * 0.45e-6)
    return n * (m * 0.028e-6 + n * (0.11e-6 if name not in PATHS else 0.4e-6))


def _betweenness_seconds(graph: Any) -> tuple[float, float]:
    """Estimated seconds of Brandes's algorithm by products, and in Python. Each level of the searches takes two
    products of n×n matrices, however few nodes it has; searches in Python are proportional to the nodes they reach,
    estimated from a few. Fitted to a core without AVX-512; with it products are up to three times as fast."""
    from tilewise.interop.networkx.hops import sample_searches

    n, edges = _size(graph)
    depth, reached = sample_searches(graph)
    by_products = 1e-3 + 0.25e-6 * edges + (2 + depth) * (n**3 * 0.22e-9 + n * n * 14e-9)
    return by_products, n * (n * 0.15e-6 + reached * (0.6e-6 + edges / max(n, 1) * 0.077e-6))


@cache
def _parameters(name: str) -> dict[str, tuple[int, Any]]:
    """Position and default of each parameter of NetworkX's function."""
    parameters = signature(getattr(nx, name)).parameters.items()
    return {key: (at, parameter.default) for at, (key, parameter) in enumerate(parameters)}


def _argument(name: str, args: Args, kwargs: Kwargs, key: str) -> Any:
    at, default = _parameters(name).get(key, (len(args), None))
    return args[at] if len(args) > at else kwargs.get(key, default)


def _weight(name: str, args: Args, kwargs: Kwargs) -> Any:
    if _argument(name, args, kwargs, "method") == "unweighted":
        return None
    return _argument(name, args, kwargs, "distance" if "distance" in _parameters(name) else "weight")


def _graph(args: Args, kwargs: Kwargs) -> Any:
    graph = args[0] if args else kwargs["G"]
    return graph.graph if isinstance(graph, NxGraph) else graph


def _size(graph: Any) -> tuple[int, int]:
    """The numbers of nodes and edges: undirected edges count twice, parallel ones once. Ten times as fast as
    `number_of_edges`."""
    return len(graph), sum(map(len, graph._adj.values()))


def _needs_matrix(name: str, args: Args, kwargs: Kwargs) -> bool:
    """Whether Bellman–Ford is called with a negative weight: Dijkstra cannot replace it, only a closure."""
    if "bellman_ford" not in name:
        return False
    from tilewise.interop.networkx.dijkstra import has_negative

    weight = _weight(name, args, kwargs)
    return weight is not None and has_negative(_graph(args, kwargs), weight)


def _python_module(name: str, weighted: bool) -> str | None:
    """The module with the function in plain Python, if there is one."""
    if name.startswith("transitive"):
        return "reach"
    if weighted:
        return "dijkstra" if name.startswith(("all_pairs_dijkstra", "all_pairs_bellman_ford")) else None
    if name == "betweenness_centrality":
        return "brandes"
    return "measures" if name in MEASURES else "searches" if name.startswith("all_pairs_shortest") else None


def _module(name: str, args: Args, kwargs: Kwargs) -> str:
    """The module whose function is fastest now."""
    weighted = _weight(name, args, kwargs) is not None
    plain = _python_module(name, weighted)
    if name in MEASURES or plain == "reach" or (plain == "searches" and name in PATHS):
        return plain or "measures"  # searches: paths by a matrix would need as many lists
    graph = _graph(args, kwargs)
    size = _size(graph)
    ours, theirs = our_seconds(name, *size, weighted), networkx_seconds(name, *size, weighted)
    if plain and theirs < SHORT:
        return plain
    if plain == "brandes":
        ours, theirs = _betweenness_seconds(graph)
        pays = ours < theirs
    else:
        pays = ours * MARGIN < theirs
    if plain and not (pays and _has_kernels(name, size, weighted, (ours, theirs))):
        return plain
    return "brandes_products" if plain == "brandes" else "lengths"


def _drop_conversion(graph: Any) -> None:
    """Remove our conversion from NetworkX's cache, which would warn that it may be stale; ours wraps the graph
    itself."""
    cached = getattr(graph, "__networkx_cache__", None)
    if cached:
        cached.get("backends", {}).pop("tilewise", None)


def _function(name: str) -> Callable[..., Any]:
    """A function of the backend. Its module is imported on call: importing NumPy takes longer than most calls."""

    def run(*args: Any, **kwargs: Any) -> Any:
        _drop_conversion(_graph(args, kwargs))
        called, args, kwargs = _all_pairs_call(name, args, kwargs)
        module = import_module(f"tilewise.interop.networkx.{_module(called, args, kwargs)}")
        result = getattr(module, called)(*args, **kwargs)
        as_dictionary = name == "johnson" or (name == "shortest_path" and PATHS_ARE_A_DICTIONARY)
        return dict(result) if as_dictionary else result

    run.__name__ = run.__qualname__ = name
    return run


backend = Backend()
for _name in FUNCTIONS:
    setattr(Backend, _name, staticmethod(_function(_name)))
