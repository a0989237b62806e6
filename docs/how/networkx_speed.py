"""NetworkX with and without the backend: the two figures of networkx.md."""

import random
import time
import warnings

import networkx as nx

warnings.simplefilter("ignore")  # NetworkX explains its cache of converted graphs


def graph(nodes: int, share: float) -> nx.DiGraph:
    rng = random.Random(0)
    made = nx.gnp_random_graph(nodes, share, seed=1, directed=True)
    for _, _, data in made.edges(data=True):
        data["weight"] = rng.random()
    return made


def seconds(function, G, **how) -> float:
    start = time.perf_counter()
    dict(function(G, **how))
    return time.perf_counter() - start


nx.floyd_warshall(graph(10, 0.5), backend="tilewise")  # compiles
for function, nodes, share in ((nx.floyd_warshall, 200, 0.1), (nx.all_pairs_dijkstra_path_length, 1000, 0.01)):
    G = graph(nodes, share)
    ours, theirs = seconds(function, G, backend="tilewise"), seconds(function, G)
    print(f"{function.__name__}, {nodes} nodes: {ours:.2f} s with tilewise, {theirs:.2f} s without")
