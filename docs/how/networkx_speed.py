"""NetworkX with and without the backend: every function, three generators, two sizes. The table of networkx.md.

Every time is of a process of its own, forked where nothing but NetworkX is imported and nothing but a graph is made, so
that a first call loads, decides and builds whatever it does in a program; with and without the backend in turn, the
least of each, in one thread and seconds of its processor, so that a busy machine counts little. A later call finds
kernels built, where there are any; its result is compared with NetworkX's own.

`python docs/how/networkx_speed.py [SIZE …] [FUNCTION …] [--part NUMBER/COUNT]`: a part of the functions, to share them
among cores. For first calls with nothing on disk, name an empty folder: TILEWISE_CACHE_DIR.
"""

import ctypes
import gc
import math
import os
import random
import sys
import time
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
DIRECTED = ("transitive_closure", "transitive_reduction")
MOST_TURNS, ENOUGH = 7, 1.5  # processes of a kind, and seconds of NetworkX's in them


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
    """The two numbers that one of the functions below gives in a process of its own."""
    heard, said = os.pipe()
    child = os.fork()
    if not child:
        words = b"nothing"
        try:
            own_every_page()
            words = "{} {}".format(*how(name, G)).encode()
        finally:
            os.write(said, words)
            os._exit(0)
    os.close(said)
    with os.fdopen(heard) as pipe:
        one, two = map(float, pipe.read().split())
    os.waitpid(child, 0)
    return one, two


def own_every_page() -> None:
    """A child shares its parent's memory until it writes; copied now, or a first call would pay for that."""
    if not os.path.exists("/proc/self/maps"):
        return
    with open("/proc/self/maps") as file:
        lines = [line.replace("[heap]", "") for line in file.readlines()]
    places = [line.split()[0] for line in lines if " rw-p " in line and "[" not in line]
    for first, last in (map(partial(int, base=16), place.split("-")) for place in places):
        for at in range(first, last, 4096):
            byte = ctypes.c_char.from_address(at)
            byte.value = byte.value


def seconds(name: str, G: nx.Graph) -> float:
    start = time.thread_time()
    made = getattr(nx, name)(G)
    if isinstance(made, Iterator):
        dict(made)
    return time.thread_time() - start


def ask() -> None:
    """Of NetworkX: this backend first, for what returns graphs as well."""
    nx.config.backend_priority.algos = nx.config.backend_priority.generators = ["tilewise"]


def theirs(name: str, G: nx.Graph) -> tuple[float, float]:
    return seconds(name, G), 0.0


def first(name: str, G: nx.Graph) -> tuple[float, float]:
    ask()
    return seconds(name, G), 0.0


def later(name: str, G: nx.Graph) -> tuple[float, float]:
    """The second call after kernels were built, and whether it was run here."""
    from tilewise.interop.networkx import Backend, readiness

    readiness.PATIENCE = readiness.LEAST = readiness.WORTH = 0  # built at once, whatever NetworkX would take
    plain = found(name, G)
    ask()
    for _ in range(2):
        taken = Backend.should_run(name, (G,), {}) is True
        assert alike(found(name, G), plain), f"{name}: not NetworkX's result"
        readiness.READINESS.wait()
    del plain  # hundreds of thousands of lists, which each collection of garbage would look at; NetworkX has none
    gc.collect()
    return min(seconds(name, G) for _ in range(3)), float(taken)


def found(name: str, G: nx.Graph) -> object:
    made = getattr(nx, name)(G)
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


def row(name: str, kind: str, n: int) -> str:
    G = graph(kind, n, name)
    after, taken = in_a_process(later, name, G)
    own, ours = [], []
    while len(own) < MOST_TURNS and sum(own) < ENOUGH:
        own.append(in_a_process(theirs, name, G)[0])
        ours.append(in_a_process(first, name, G)[0])
    times = min(ours), after, min(own)
    words = " | ".join(f"{1e3 * x:.1f} ms" for x in times)
    ratios = f"{times[0] / times[2]:.2f} | {times[1] / times[2]:.2f}"
    return f"| {name} | {kind} | {n} | {words} | {ratios} | {'yes' if taken else 'left to NetworkX'} |"


def main(words: list[str]) -> None:
    number, count = map(int, words[words.index("--part") + 1].split("/")) if "--part" in words else (0, 1)
    sizes = [int(word) for word in words if word.isdigit()] or [100, 400]
    print("| function | graph | nodes | first | later | NetworkX | first | later | taken |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for name in ([name for name in FUNCTIONS if name in words] or list(FUNCTIONS))[number::count]:
        for kind in GENERATORS:
            for n in sizes:
                print(row(name, kind, n), flush=True)


main(sys.argv[1:])
