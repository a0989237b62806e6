"""NetworkX with backend="tilewise" where no kernel is needed: its own results, in its order, to the last bit."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib.metadata import entry_points

import pytest

from seeds import next_seed, sample_size

nx = pytest.importorskip("networkx")

pytestmark = [
    pytest.mark.skipif(
        "tilewise" not in {e.name for e in entry_points(group="networkx.backends")},
        reason="backends are found by entry points, and tilewise is not installed here",
    ),
    pytest.mark.filterwarnings("ignore:(?s).*shortest_path will return an iterator:FutureWarning"),  # NetworkX 3.4's
]

ONES = ("eccentricity", "diameter", "radius", "center", "periphery", "average_shortest_path_length",
              "global_efficiency", "closeness_centrality", "harmonic_centrality", "all_pairs_shortest_path_length",
              "all_pairs_shortest_path", "shortest_path_length", "shortest_path")  # fmt: skip


def drawn(rng):
    """Deep and flat, in parts, with loops and double edges, directed or not; nodes of any kind."""
    n = rng.randrange(1, 60)
    kind = rng.choice([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
    made = kind()
    made.add_nodes_from(range(n))
    if rng.random() < 0.6:
        nx.add_path(made, rng.sample(range(n), rng.randrange(1, n + 1)))
    made.add_edges_from((rng.randrange(n), rng.randrange(n)) for _ in range(rng.choice([0, 2, n, 4 * n])))
    if rng.random() < 0.3:
        nx.add_cycle(made, range(n))
    names = [str, lambda v: v, lambda v: (v, "x"), lambda v: None if v < 0 else -v][rng.randrange(4)]
    made = nx.relabel_nodes(made, {v: names(v) for v in range(n)})
    return made.subgraph([v for v in made if rng.random() < 0.9]) if rng.random() < 0.2 else made


def result_of(call, how):
    try:
        made = call(**how)
        return list(made) if isinstance(made, Iterator) else made
    except (nx.NetworkXException, NotImplementedError, ValueError) as error:
        return type(error), None if isinstance(error, NotImplementedError) else str(error)


def test_where_every_edge_counts_one_results_are_networkxs_own():
    """In order and choice of paths as well, until a matrix takes over."""
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(sample_size(20)):
        G = drawn(rng)
        for name in ONES:
            how = {"cutoff": rng.choice([None, 0, 1, 2, 1.5, -1, 40])} if name.startswith("all_pairs") else {}
            call = partial(getattr(nx, name), G, **how)
            ours, theirs = result_of(call, {"backend": "tilewise"}), result_of(call, {})
            if isinstance(ours, tuple) and issubclass(ours[0], NotImplementedError):
                assert len(G) == 0 or (G.is_directed() and name == "global_efficiency"), (name, ours)
            elif name in ("harmonic_centrality", "global_efficiency") and not isinstance(theirs, tuple):
                assert ours == pytest.approx(theirs, rel=1e-12)  # counts over lengths, not one after the other
            else:
                assert repr(ours) == repr(theirs), (name, how, G)


def test_no_kernel_is_built_and_nothing_imported_where_every_edge_counts_one():
    code = "import sys, warnings, networkx as nx\nwarnings.simplefilter('error')\n"
    code += "nx.config.backend_priority = ['tilewise']\nG = nx.cycle_graph(90)\n"
    code += "print(nx.diameter(G), nx.radius(G), dict(nx.shortest_path_length(G))[0][45])\n"
    code += (
        "print('tilewise.interop.networkx.hops' in sys.modules, 'numpy' in sys.modules, 'tilewise.api' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["45", "45", "45", "True", "False", "False"]


def test_searches_grow_together_or_one_by_one_and_count_the_same():
    from tilewise.interop.networkx import hops

    rng = random.Random(next_seed())
    for _ in range(30):
        near = hops._neighbours(drawn(rng), rng.random() < 0.5)
        one_by_one = [hops._search(near, node) for node in range(len(near))]
        assert not near or hops._grow(near, len(near) + 1) == one_by_one
        assert not near or hops._grow(near, max(map(len, one_by_one)) - 1) is None, "cut off before the deepest"


WEIGHTED = ("all_pairs_dijkstra_path_length", "all_pairs_dijkstra_path", "all_pairs_dijkstra", "shortest_path",
            "shortest_path_length")  # fmt: skip


def test_weighted_searches_and_betweenness_are_networkxs_own_too():
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(12):
        G = drawn(rng)
        for _, _, data in G.edges(data=True):
            data["weight"] = rng.choice([0, 1, 2, 3, 2.5, 0.1, rng.random()])
        for name in WEIGHTED:
            pairs = name.startswith("all_pairs")
            how = {"cutoff": rng.choice([None, 0, 1, 2.5, -1])} if pairs else {"weight": "weight"}
            call = partial(getattr(nx, name), G, **how)
            ours, theirs = result_of(call, {"backend": "tilewise"}), result_of(call, {})
            assert repr(ours) == repr(theirs), (name, how, G)
        # These use Dijkstra's algorithm: of paths equal but for rounding it may take another, a last bit away.
        # NetworkX's Dijkstra is the oracle too: its Bellman-Ford re-queues a node for a shorter path, and where the
        # gain is lost in rounding (1.2000000000000002 and 1.2, plus 0.473) it never expands that node: nodes are
        # missing.
        theirs = dict(nx.all_pairs_dijkstra_path_length(G))
        for node, lengths in nx.all_pairs_bellman_ford_path_length(G, backend="tilewise"):
            assert lengths == pytest.approx(theirs[node], rel=1e-12)
        lengths, theirs = (
            {u: {v: nx.path_weight(G, path, "weight") for v, path in paths.items()} for u, paths in made.items()}
            for made in (nx.johnson(G, backend="tilewise"), nx.johnson(G))
        )
        assert lengths.keys() == theirs.keys()
        for node in theirs:
            assert lengths[node] == pytest.approx(theirs[node], rel=1e-12)
        how = {"normalized": rng.random() < 0.5, "endpoints": rng.random() < 0.5}
        assert nx.betweenness_centrality(G, **how, backend="tilewise") == nx.betweenness_centrality(G, **how)


def test_a_weight_below_zero_waits_for_kernels_where_plain_python_does_not():
    from tilewise.interop.networkx import Backend

    G = nx.gnp_random_graph(60, 0.1, seed=0, directed=True)
    for name in ("johnson", "all_pairs_bellman_ford_path", "all_pairs_bellman_ford_path_length"):
        assert Backend.should_run(name, (G,), {}) is True
    G.add_edge(0, 1, weight=-1)
    for name in ("johnson", "all_pairs_bellman_ford_path", "all_pairs_bellman_ford_path_length"):
        assert Backend.should_run(name, (G,), {}) is not True
    assert Backend.should_run("all_pairs_dijkstra_path", (G,), {}) is True  # and is handed back when it is seen


def test_reach_is_networkxs():
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(12):
        G = drawn(rng)
        for reflexive in (None, True, False):
            ours, theirs = (nx.transitive_closure(G, reflexive, **how) for how in ({"backend": "tilewise"}, {}))
            assert set(ours.edges) == set(theirs.edges), (G, reflexive)
            assert type(ours) is type(theirs)
        D = nx.DiGraph((u, v) for u, v in nx.DiGraph(nx.convert_node_labels_to_integers(G)).edges if u < v)
        D.add_edges_from([(n, n) for n in list(D)[:1] if rng.random() < 0.2])
        ours, theirs = (result_of(partial(nx.transitive_reduction, D), how) for how in ({"backend": "tilewise"}, {}))
        assert ours == theirs if isinstance(theirs, tuple) else set(ours.edges) == set(theirs.edges)


@pytest.mark.parametrize(
    ("G", "module"),
    [
        (nx.gnp_random_graph(150, 0.1, seed=0), "brandes_products"),
        (nx.path_graph(300), "brandes"),
        (nx.disjoint_union(nx.complete_graph(30), nx.path_graph(300)), "brandes"),
        (nx.DiGraph((u, v) for u, v in nx.barabasi_albert_graph(376, 4, seed=1).edges), "brandes"),
    ],
)
def test_shortest_paths_are_counted_by_products_only_where_searches_are_not_deep(G, module, monkeypatch):
    """Kernels or not: a level takes two products of the whole matrix, and a path has as many levels as nodes."""
    from tilewise.interop.networkx import Backend, readiness

    monkeypatch.setattr(readiness.Readiness, "is_ready", lambda *_: True)
    assert sys.modules[Backend.__module__]._module("betweenness_centrality", (G,), {}) == module


@pytest.mark.parametrize("endpoints", [False, True])
def test_paths_that_one_search_did_not_find_so_long_are_counted_all_the_same(endpoints):
    """Five searches find nothing of a path that lies between the nodes they begin at."""
    from tilewise.interop.networkx import brandes_products as products
    from tilewise.interop.networkx.graph import NxGraph
    from tilewise.interop.networkx.hops import sample_searches

    G = nx.Graph()
    G.add_nodes_from(range(100))
    nx.add_path(G, range(1, 20))
    assert sample_searches(G)[0] == 0
    assert products._count_paths(nx.to_numpy_array(G), 2) is None
    found = products.betweenness_centrality(NxGraph(G), normalized=False, endpoints=endpoints)
    assert found == nx.betweenness_centrality(G, normalized=False, endpoints=endpoints)
