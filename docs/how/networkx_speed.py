"""NetworkX with and without the backend: every function, three generators, two sizes. The table of networkx.md.

All of it in one thread and seconds of its processor, so that a busy machine does not count. A first call is one as a
program makes it that only names the backend first; later ones find kernels that were built.
With `--fit` both sides are measured whatever the backend would choose. For first calls with nothing on disk, name an
empty folder: TILEWISE_CACHE_DIR.
"""

import gc
import random
import sys
import time
import warnings
from collections.abc import Iterator

import networkx as nx

import tilewise as tw
from tilewise.interop.networkx import Backend
from tilewise.interop.networkx.readiness import READINESS
from tilewise.interop.networkx_info import FUNCTIONS

tw.set_num_threads(1)
warnings.simplefilter("ignore")  # NetworkX explains its cache of converted graphs
GENERATORS = {
    "gnp": lambda n: nx.gnp_random_graph(n, 8 / n, seed=1),
    "barabasi": lambda n: nx.barabasi_albert_graph(n, 4, seed=1),
    "grid": lambda n: nx.convert_node_labels_to_integers(nx.grid_2d_graph(int(n**0.5), int(n**0.5))),
}
DIRECTED = ("transitive_closure", "transitive_reduction")
SIZES = [int(x) for x in sys.argv[1:] if x.isdigit()] or [100, 400]


def graph(kind: str, n: int, name: str) -> nx.Graph:
    made = GENERATORS[kind](n)
    made = made.subgraph(max(nx.connected_components(made), key=len)).copy()
    if name in DIRECTED:
        made = nx.DiGraph((min(u, v), max(u, v)) for u, v in made.edges)
    rng = random.Random(0)
    for _, _, data in made.edges(data=True):
        data["weight"] = rng.random()
    return made


def seconds(name: str, G: nx.Graph, turns: int = 2, **how) -> float:
    best = float("inf")
    for _ in range(turns):
        start = time.thread_time()
        made = getattr(nx, name)(G, **how)
        if isinstance(made, Iterator):
            dict(made)
        best = min(best, time.thread_time() - start)
        if best > 2:
            break
    return best


def by_priority(name: str, G: nx.Graph, turns: int) -> float:
    gc.collect()  # what other rows have left is no part of this one
    with nx.config(backend_priority=["tilewise"]):
        return seconds(name, G, turns)


print("| function | graph | nodes | first | later | NetworkX | first | later | taken |")
print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
for name in FUNCTIONS:
    for kind in GENERATORS:
        for n in SIZES:
            G = graph(kind, n, name)
            first = by_priority(name, graph(kind, n, name), 1)
            READINESS.wait()
            taken = Backend.should_run(name, (G,), {}) is True
            if not taken and "--fit" not in sys.argv:
                continue
            theirs = seconds(name, G)
            later = by_priority(name, G, 2) if taken else seconds(name, G, backend="tilewise")
            row = f"| {name} | {kind} | {len(G)} | " + " | ".join(f"{1e3 * x:.1f} ms" for x in (first, later, theirs))
            ratios = f"{first / theirs:.2f} | {later / theirs:.2f}"
            print(f"{row} | {ratios} | {'yes' if taken else 'left to NetworkX'} |", flush=True)
