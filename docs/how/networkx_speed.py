"""NetworkX with and without the backend: every function, three generators, two sizes. The table of networkx.md.

Every time is of an interpreter of its own, so that a first call loads, decides and builds whatever it does in a
program; with and without the backend in turn, the least of each, in one thread and seconds of its processor, so that
a busy machine counts little. A later call finds kernels built.

`python docs/how/networkx_speed.py [SIZE …] [FUNCTION …] [--fit] [--part NUMBER/COUNT]`: with `--fit` also what the
backend would leave to NetworkX; a part of the functions, to share them among cores. For first calls with nothing on
disk, name an empty folder: TILEWISE_CACHE_DIR.
"""

import os
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator

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


def in_a_process(how: str, name: str, kind: str, n: int) -> tuple[float, float]:
    """The two numbers that one of the functions below gives in an interpreter of its own."""
    words = [sys.executable, __file__, "--call", how, name, kind, str(n)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return float(said[0]), float(said[1])


def seconds(name: str, G: nx.Graph, **how) -> float:
    start = time.thread_time()
    made = getattr(nx, name)(G, **how)
    if isinstance(made, Iterator):
        dict(made)
    return time.thread_time() - start


def theirs(name: str, G: nx.Graph) -> tuple[float, float]:
    return seconds(name, G), 0.0


def first(name: str, G: nx.Graph) -> tuple[float, float]:
    nx.config.backend_priority = ["tilewise"]
    return seconds(name, G), 0.0


def later(name: str, G: nx.Graph) -> tuple[float, float]:
    """The second call after kernels were built, and whether it was run here."""
    from tilewise.interop.networkx import Backend, readiness

    readiness.PATIENCE = readiness.LEAST = readiness.WORTH = 0  # built at once, whatever NetworkX would take
    Backend.should_run(name, (G,), {})
    readiness.READINESS.wait()
    taken = Backend.should_run(name, (G,), {}) is True
    if taken:
        nx.config.backend_priority = ["tilewise"]
    how = {} if taken else {"backend": "tilewise"}
    seconds(name, G, **how)
    return min(seconds(name, G, **how) for _ in range(2)), float(taken)


def row(name: str, kind: str, n: int, always: bool) -> str | None:
    after, taken = in_a_process("later", name, kind, n)
    if not taken and not always:
        return None
    own, ours = [], []
    while len(own) < MOST_TURNS and sum(own) < ENOUGH:
        own.append(in_a_process("theirs", name, kind, n)[0])
        ours.append(in_a_process("first", name, kind, n)[0])
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
                line = row(name, kind, n, "--fit" in words)
                if line:
                    print(line, flush=True)


if sys.argv[1:2] == ["--call"]:
    how, name, kind, n = sys.argv[2:]
    print(*{"theirs": theirs, "first": first, "later": later}[how](name, graph(kind, int(n), name)))
else:
    main(sys.argv[1:])
