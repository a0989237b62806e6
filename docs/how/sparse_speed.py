"""Sparse graphs, all of it in one thread and seconds of its processor: closures beside dense tiles, SciPy's Dijkstra
and GraphBLAS, products over min_plus beside dense tiles and GraphBLAS (where that is installed). For sparse.md.

`python docs/how/sparse_speed.py [NODES [PER_CENT …]]`
"""

import importlib.util
import sys
import time

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

import tilewise as tw
from tilewise.compose.graph import search

NODES = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
SHARES = [float(x) / 100 for x in sys.argv[2:]] or (0.001, 0.005, 0.02, 0.2)
LARGE = NODES > 5000
FEW = np.linspace(0, NODES - 1, 20).astype(int)  # sources that are timed, and scaled up, where all would take minutes
SOURCES = FEW if LARGE else np.arange(NODES)


def seconds(work):
    """The least of a few."""
    found = []
    for _ in range(1 if LARGE else 3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def tiles(S):
    """A closure by tiles; of a large graph by the rate of a product as deep."""
    if not LARGE:
        least, search.LEAST = search.LEAST, sys.maxsize
        found = seconds(lambda: tw.closure(S))
        search.LEAST = least
        return found
    M, N = np.ones((256, NODES)), np.ones((NODES, 512))
    return seconds(lambda: tw.matmul(M, N, semiring="min_plus")) * NODES * NODES / (256 * 512)


def graphblas(S):
    """The rows of a closure by Bellman and Ford, and a product."""
    if importlib.util.find_spec("graphblas") is None:
        return None, None
    import graphblas as gb

    gb.ss.config["nthreads"] = 1
    G = gb.io.from_scipy_sparse(S)

    def closure():
        D = gb.Matrix(float, len(FEW), NODES)
        for row, source in enumerate(FEW):
            D[row, source] = 0.0
        before = None
        while before is None or not before.isequal(D):
            before = D.dup()
            D(gb.binary.min) << D.mxm(G, gb.semiring.min_plus)

    return seconds(closure) * NODES / len(FEW), seconds(lambda: G.mxm(G, gb.semiring.min_plus).new().wait())


def as_text(found):
    return "–" if found is None else f"{found:.3g} s"


tw.set_num_threads(1)
tw.closure(np.zeros((300, 300)))  # compiles
print("| nodes, edges | closure | its tiles | SciPy | GraphBLAS | product | dense tiles | GraphBLAS |")
for share in SHARES:
    S = sp.random_array((NODES, NODES), density=share, rng=np.random.default_rng(1), format="csr")
    S.data += 0.01
    tw.matmul(S, S, semiring="min_plus")
    scale = NODES / len(SOURCES)
    ours = scale * seconds(lambda S=S: tw.closure(S, sources=SOURCES) if LARGE else tw.closure(S))
    product = seconds(lambda S=S: tw.matmul(S, S, semiring="min_plus"))
    by_tiles, scipys = tiles(S), scale * seconds(lambda S=S: dijkstra(S, indices=SOURCES))
    closed, multiplied = graphblas(S)
    found = (ours, by_tiles, scipys, closed, product, by_tiles, multiplied)
    print(f"| {NODES}, {100 * share:g} % | " + " | ".join(map(as_text, found)) + " |", flush=True)
