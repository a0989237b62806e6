"""Closures of sparse graphs: tilewise beside its own dense tiles and SciPy's Dijkstra. The figures of sparse.md."""

import sys
import time

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

import tilewise as tw
from tilewise.graph import sparse_closure


def seconds(function, graph) -> float:
    best = float("inf")
    for _ in range(1 if nodes > 5000 else 2):
        start = time.perf_counter()
        function(graph)
        best = min(best, time.perf_counter() - start)
    return best


nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
shares = [float(x) / 100 for x in sys.argv[2:]] or (0.001, 0.005, 0.02, 0.2)
FEW = 20  # sources that SciPy is timed on where all would take minutes
tw.closure(np.zeros((300, 300)))  # compiles
for share in shares:
    S = sp.random_array((nodes, nodes), density=share, rng=np.random.default_rng(1), format="csr")
    S.data += 0.01
    ours = seconds(tw.closure, S)
    part = FEW / nodes if nodes > 5000 else 1.0
    theirs = seconds(lambda S, part=part: dijkstra(S, indices=range(FEW) if part < 1 else None), S) / part
    least, sparse_closure.LEAST = sparse_closure.LEAST, sys.maxsize
    tiles = seconds(tw.closure, S)
    sparse_closure.LEAST = least
    print(f"{nodes} nodes, {100 * share:g} %: {ours:.2f} s; tiles {tiles:.2f} s, SciPy {theirs:.2f} s", flush=True)
