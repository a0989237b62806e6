"""Graphs of ten kinds beside SciPy, GraphBLAS (where it is installed) and NetworkX. For sparse.md.

`python docs/how/graphs_speed.py [SEED]`; without a seed it is drawn by the clock, and printed.

    search    tw.closure(S, sources=[0]) over min_plus beside SciPy's Dijkstra (Bellman–Ford where weights are below 0)
    product   tw.matmul(S, x) over min_plus beside SciPy's S @ x, which is plus_times, and GraphBLAS's min_plus;
              with a vector on either side, and with a matrix of 16 columns
    networkx  four functions under backend_priority, a tenth of the nodes, beside NetworkX alone

A ratio above 1 means that tilewise is faster: the least of several runs on each side, taken in turn.
"""

import importlib.util
import os
import sys
import time
from contextlib import nullcontext
from functools import partial

import networkx as nx
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import bellman_ford, dijkstra

import tilewise as tw

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else time.time_ns() % 10**9
GRAPHBLAS = importlib.util.find_spec("graphblas") is not None
COLUMNS = 16


def graphs(rng, scale=1.0):
    """(kind, n, edges as (u, v)); weights come later."""
    n = int(3000 * scale)
    side = int(np.sqrt(n))
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))
    geometric = nx.convert_node_labels_to_integers(
        nx.random_geometric_graph(n, 1.5 / np.sqrt(n), seed=int(rng.integers(2**31)))
    )
    seed = int(rng.integers(2**31))
    yield "grid", grid
    yield "road-like", geometric
    yield "scale-free", nx.barabasi_albert_graph(n, 4, seed=seed)
    yield "tree", nx.random_labeled_tree(n, seed=seed)
    yield "path", nx.path_graph(n)
    yield "complete", nx.complete_graph(int(500 * scale))
    yield "bipartite", nx.bipartite.random_graph(n // 2, n // 2, 8 / n, seed=seed)
    acyclic = nx.gnm_random_graph(n, 6 * n, seed=seed, directed=True)
    yield "DAG", nx.DiGraph((min(u, v), max(u, v)) for u, v in acyclic.edges if u != v)
    yield "negative", nx.DiGraph((min(u, v), max(u, v)) for u, v in acyclic.edges if u != v)
    yield "large", nx.random_labeled_tree(int(100_000 * scale), seed=seed) if scale < 1 else None


def stored(kind, graph, rng):
    if graph is None:
        n, m = 100_000, 1_000_000
        u, v = rng.integers(0, n, (2, m))
    else:
        n = max(graph) + 1  # a node without edges is not in a DAG that is made of its edges
        u, v = np.array(graph.edges).T
        if not graph.is_directed():
            u, v = np.concatenate([u, v]), np.concatenate([v, u])
    S = sp.csr_array((rng.integers(1, 100, len(u)) / 8, (u, v)), shape=(n, n))
    S.sum_duplicates()
    if kind == "negative":
        S.data -= 3
    return S


def ratios(ours, theirs, seconds=1.0, routed=nullcontext):
    """How many times as long each of `theirs` takes: the least of runs in turn with ours, each apart from the others,
    since GraphBLAS's threads spin behind a call. `routed`: around ours, not timed."""
    found = []
    for other in theirs:
        times, end = ([], []), time.perf_counter() + seconds
        while len(times[0]) < 6 or (time.perf_counter() < end and len(times[0]) < 2000):
            for at, work in enumerate((ours, other)):
                with nullcontext() if at else routed():
                    start = time.perf_counter()
                    work()
                    times[at].append(time.perf_counter() - start)
        found.append((min(times[1]) / min(times[0]), min(times[0])))
    return [ratio for ratio, _ in found], min(own for _, own in found)


def search(kind, S):
    theirs = (lambda: bellman_ford(S, indices=0)) if kind == "negative" else (lambda: dijkstra(S, indices=0))
    np.testing.assert_allclose(tw.closure(S, sources=[0])[0], theirs())
    return ratios(lambda: tw.closure(S, sources=[0]), [theirs])


def products(S, rng):
    n = S.shape[0]
    x, X = rng.random(n), rng.random((n, COLUMNS))
    rows = []
    if GRAPHBLAS:
        import graphblas as gb

        G = gb.io.from_scipy_sparse(S)
        wrapped, vector = gb.Matrix.from_dense(X), gb.Vector.from_dense(x)
        by_blas = {"S x": (G, vector), "x S": (vector, G), "S X": (G, wrapped)}
    for name, M, N in (("S x", S, x), ("x S", x, S), ("S X", S, X)):
        theirs = [lambda M=M, N=N: M @ N]
        if GRAPHBLAS:
            left, right = by_blas[name]
            theirs.append(lambda left=left, right=right: gb.semiring.min_plus(left @ right).new())
        rows.append((name, *ratios(lambda M=M, N=N: tw.matmul(M, N, semiring="min_plus"), theirs)))
    return rows


def by_networkx(kind, graph, rng):
    for *_, data in graph.edges(data=True):
        data["weight"] = int(rng.integers(1, 100))
    calls = {"center": lambda: nx.center(graph)}
    if kind in ("DAG", "negative"):
        calls = {"transitive_closure": lambda: nx.transitive_closure(graph)}
    elif kind in ("road-like", "bipartite"):
        calls = {}
    if len(graph) < 1000:
        calls["all_pairs_shortest_path_length"] = lambda: dict(nx.all_pairs_shortest_path_length(graph))
        calls["all_pairs_dijkstra_path_length"] = lambda: dict(nx.all_pairs_dijkstra_path_length(graph))
        calls["closeness_centrality"] = lambda: nx.closeness_centrality(graph)

    routed = partial(nx.config.backend_priority, algos=["tilewise"], generators=["tilewise"])
    return [(name, *ratios(call, [call], routed=routed)) for name, call in calls.items()]


def main():
    print(f"seed {SEED}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    rng = np.random.default_rng(SEED)
    gathered = {}

    def show(part, kind, what, against, took):
        print(f"{part:8} {kind:10} {what:32} {took * 1e3:10.3f} ms  " + "  ".join(f"{x:6.2f}" for x in against))
        for peer, ratio in zip(("SciPy" if part != "networkx" else "NetworkX", "GraphBLAS"), against, strict=False):
            gathered.setdefault(f"{part} beside {peer}", []).append(ratio)

    for kind, graph in graphs(rng):
        S = stored(kind, graph, rng)
        show("search", kind, "one source", *search(kind, S))
        for row in products(S, rng):
            show("product", kind, *row)
    for kind, graph in graphs(rng, 0.1):
        for row in by_networkx(kind, graph, rng):
            show("networkx", kind, *row)
    for name, found in gathered.items():
        print(
            f"{name}: mean {np.mean(found):.2f}, geometric {np.exp(np.mean(np.log(found))):.2f}, least {min(found):.2f}"
        )
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
