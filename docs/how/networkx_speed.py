"""NetworkX with and without the backend: every function, three generators, two sizes. The table of networkx.md.

Each call is timed in a separate process, forked after importing NetworkX and making the graph, so that a first call
includes loading, deciding and compiling; with and without the backend alternately, the minimum of each, in one thread
and CPU seconds. A later call has its kernels built; its result is compared with NetworkX's own.

`python docs/how/networkx_speed.py [SIZE …] [FUNCTION …] [--part NUMBER/COUNT]`: a part of the functions, to distribute
them over cores. For first calls with nothing on disk, name an empty folder: TILEWISE_CACHE_DIR.
`… --drawn SECONDS [--seed NUMBER]`: functions, kinds of graphs, sizes from 60 to 1000 nodes, directions and weights are
drawn at random for so long; then the ten worst, by the larger of the two ratios.
"""

import ctypes
import gc
import math
import os
import random
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import networkx as nx

from tilewise.interop.networkx_info import FUNCTIONS

os.environ["TILEWISE_NUM_THREADS"] = "1"
warnings.simplefilter("ignore")  # NetworkX explains its cache of converted graphs
GENERATORS = {
    "gnp": lambda n: nx.gnp_random_graph(n, 8 / n, seed=1),
    "barabasi": lambda n: nx.barabasi_albert_graph(n, 4, seed=1),
    "grid": lambda n: nx.convert_node_labels_to_integers(nx.grid_2d_graph(int(n**0.5), int(n**0.5))),
}
MORE = {
    "watts_strogatz": lambda n: nx.watts_strogatz_graph(n, 6, 0.1, seed=1),
    "tree": lambda n: nx.random_labeled_tree(n, seed=1),
    "powerlaw_cluster": lambda n: nx.powerlaw_cluster_graph(n, 3, 0.3, seed=1),
    "path": nx.path_graph,
    "dense": lambda n: nx.gnp_random_graph(n, 0.2, seed=1),
    "parts": lambda n: nx.disjoint_union(nx.gnp_random_graph(n // 2, 6 / n, seed=1), nx.cycle_graph(n // 2)),
}
WHOLE = ("eccentricity", "diameter", "radius", "center", "periphery", "average_shortest_path_length")  # of one part
UNDIRECTED = "global_efficiency"
CUBIC = ("floyd_warshall", "floyd_warshall_predecessor_and_distance")  # loops of NetworkX's own: up to 150 nodes
WEIGHTED = dict.fromkeys((*WHOLE, "shortest_path", "shortest_path_length"), "weight")
WEIGHTED |= dict.fromkeys(("closeness_centrality", "harmonic_centrality"), "distance")
DIRECTED = ("transitive_closure", "transitive_reduction")
MOST_ROUNDS, ENOUGH = 7, 1.5  # processes of each kind, and seconds of NetworkX in them
LONGEST = 4.0  # seconds that a search from every node of a drawn graph may take, about


def graph(kind: str, n: int, name: str) -> nx.Graph:
    made = GENERATORS[kind](n)
    made = made.subgraph(max(nx.connected_components(made), key=len)).copy()
    if name in DIRECTED:
        made = nx.DiGraph((min(u, v), max(u, v)) for u, v in made.edges)
    rng = random.Random(0)
    for _, _, data in made.edges(data=True):
        data["weight"] = rng.random()
    return made


def in_a_process(how: Callable[[str, nx.Graph], tuple[float, float]], name: str, G: nx.Graph) -> tuple[float, float]:
    """The two numbers that one of the functions below returns, from a child process."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        result = b"nothing"
        try:
            copy_every_page()
            result = "{} {}".format(*how(name, G)).encode()
        except Exception:
            traceback.print_exc()
        finally:
            os.write(writer, result)
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        one, two = map(float, pipe.read().split())
    os.waitpid(child, 0)
    return one, two


def copy_every_page() -> None:
    """Triggers copy-on-write for the parent's pages now, so that the first call does not pay for it."""
    if not os.path.exists("/proc/self/maps"):
        return
    with open("/proc/self/maps") as file:
        mappings = [line.replace("[heap]", "") for line in file.readlines()]
    places = [line.split()[0] for line in mappings if " rw-p " in line and "[" not in line]
    for first, last in (map(partial(int, base=16), place.split("-")) for place in places):
        for at in range(first, last, 4096):
            byte = ctypes.c_char.from_address(at)
            byte.value = byte.value


def called(name: str, G: nx.Graph) -> object:
    """A name may be followed by the keyword for weights: `diameter weight`."""
    name, _, keyword = name.partition(" ")
    return getattr(nx, name)(G, **({keyword: "weight"} if keyword else {}))


def seconds(name: str, G: nx.Graph) -> float:
    start = time.thread_time()
    made = called(name, G)
    if isinstance(made, Iterator):
        dict(made)
    return time.thread_time() - start


def prefer_tilewise() -> None:
    """Makes this backend NetworkX's first choice, for functions that return graphs too."""
    nx.config.backend_priority.algos = nx.config.backend_priority.generators = ["tilewise"]


def theirs(name: str, G: nx.Graph) -> tuple[float, float]:
    return seconds(name, G), 0.0


def first(name: str, G: nx.Graph) -> tuple[float, float]:
    prefer_tilewise()
    return seconds(name, G), 0.0


def later(name: str, G: nx.Graph) -> tuple[float, float]:
    """The second call after kernels were built, and whether it was run here."""
    from tilewise.interop.networkx import Backend, readiness

    readiness.PATIENCE = readiness.LEAST = readiness.WORTH = 0  # built at once, for any expected time of NetworkX
    plain = found(name, G)
    prefer_tilewise()
    for _ in range(2):
        plain_name, _, keyword = name.partition(" ")
        taken = Backend.should_run(plain_name, (G,), {keyword: "weight"} if keyword else {}) is True
        assert alike(found(name, G), plain), f"{name}: not NetworkX's result"
        readiness.READINESS.wait()
    del plain  # hundreds of thousands of lists, which every garbage collection would visit
    gc.collect()
    return min(seconds(name, G) for _ in range(3)), float(taken)


def found(name: str, G: nx.Graph) -> object:
    made = called(name, G)
    return dict(made) if isinstance(made, Iterator) else made


def alike(ours: object, plain: object) -> bool:
    """The same keys and lengths; a shortest path may be another one as long."""
    if isinstance(plain, nx.Graph):
        return set(ours.edges) == set(plain.edges)
    if isinstance(plain, dict):
        return set(ours) == set(plain) and all(alike(ours[key], value) for key, value in plain.items())
    if isinstance(plain, tuple):
        return all(map(alike, ours, plain))
    if isinstance(plain, list):
        return ours == plain or (len(ours), ours[0], ours[-1]) == (len(plain), plain[0], plain[-1])
    if isinstance(plain, int | float):
        return math.isclose(ours, plain, rel_tol=1e-9, abs_tol=1e-12)
    return bool(abs(ours - plain).max() < 1e-9) if hasattr(plain, "max") else ours == plain


def timed(name: str, G: nx.Graph) -> tuple[float, float, float, float]:
    """A first call, a later one, NetworkX's own, and whether the later one was run here."""
    after, taken = in_a_process(later, name, G)
    own, ours = [], []
    while len(own) < MOST_ROUNDS and sum(own) < ENOUGH:
        own.append(in_a_process(theirs, name, G)[0])
        ours.append(in_a_process(first, name, G)[0])
    return min(ours), after, min(own), taken


def line(name: str, kind: str, n: int, times: tuple[float, float, float, float]) -> str:
    milliseconds = " | ".join(f"{1e3 * x:.1f} ms" for x in times[:3])
    ratios = f"{times[0] / times[2]:.2f} | {times[1] / times[2]:.2f}"
    return f"| {name} | {kind} | {n} | {milliseconds} | {ratios} | {'yes' if times[3] else 'left to NetworkX'} |"


def drawn_graph(rng: random.Random) -> tuple[str, str, nx.Graph]:
    """A function, the description of a graph, and the graph."""
    name, kind = rng.choice(list(FUNCTIONS)), rng.choice([*GENERATORS, *MORE])
    most = 150 if name in CUBIC else 1000
    n = round(60 * (most / 60) ** rng.random())
    made = {**GENERATORS, **MORE}[kind](n)
    if name in WHOLE:
        made = made.subgraph(max(nx.connected_components(made), key=len)).copy()
    if name in DIRECTED or (name not in (*WHOLE, UNDIRECTED) and rng.random() < 0.3):
        made, kind = nx.DiGraph((min(u, v), max(u, v)) for u, v in made.edges), f"{kind}, directed"
    ties = name.endswith(("path", "dijkstra", "johnson", "distance"))  # paths of equal weight need not be as long
    ends = name in ("center", "periphery")  # ties that rounding may break
    whole = ends or (rng.random() < 0.5 and not ties)
    for _, _, data in made.edges(data=True):
        data["weight"] = rng.randrange(1, 20) if whole else rng.random()
    if name in WEIGHTED and rng.random() < 0.4:
        name = f"{name} {WEIGHTED[name]}"
    return name, kind + (", whole weights" if whole else ""), made


def draw(limit: float, seed: int) -> None:
    """For so many seconds."""
    print(f"seed {seed}\n")
    rng, end, rows = random.Random(seed), time.monotonic() + limit, []
    while time.monotonic() < end:
        name, kind, G = drawn_graph(rng)
        if len(G) * (len(G) + 2 * G.number_of_edges()) * 1e-6 > LONGEST:
            continue
        times = timed(name, G)
        rows.append((max(times[0], times[1]) / times[2], line(name, kind, len(G), times)))
        print(rows[-1][1], flush=True)
    over = sum(ratio > 1.05 for ratio, _ in rows)
    print(f"\n{len(rows)} drawn, {over} above 1.05; the worst:\n")
    print("\n".join(row for _, row in sorted(rows, reverse=True)[:10]))


def main(arguments: list[str]) -> None:
    if "--drawn" in arguments:
        seed = int(arguments[arguments.index("--seed") + 1]) if "--seed" in arguments else time.time_ns() % 2**31
        draw(float(arguments[arguments.index("--drawn") + 1]), seed)
        return
    number, count = map(int, arguments[arguments.index("--part") + 1].split("/")) if "--part" in arguments else (0, 1)
    sizes = [int(text) for text in arguments if text.isdigit()] or [100, 400]
    print("| function | graph | nodes | first | later | NetworkX | first | later | taken |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for name in ([name for name in FUNCTIONS if name in arguments] or list(FUNCTIONS))[number::count]:
        for kind in GENERATORS:
            for n in sizes:
                print(line(name, kind, n, timed(name, graph(kind, n, name))), flush=True)


main(sys.argv[1:])
