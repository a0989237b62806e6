"""NetworkX with backend="tilewise": its own answers, and its own tests."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from fractions import Fraction
from importlib.metadata import entry_points

import pytest

nx = pytest.importorskip("networkx")

pytestmark = [
    pytest.mark.skipif(
        "tilewise" not in {e.name for e in entry_points(group="networkx.backends")},
        reason="backends are found by entry points, and tilewise is not installed here",
    ),
    pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs"),
]

# where NetworkX keeps the tests of the functions in FUNCTIONS
THEIR_TESTS = ("networkx.algorithms.shortest_paths", "networkx.algorithms.tests.test_dag")


def graph(kind=nx.DiGraph, nodes=40, seed=0, low=1):
    rng = random.Random(seed)
    made = kind()
    made.add_nodes_from(f"n{i}" for i in range(nodes))
    for _ in range(4 * nodes):
        u, v = rng.sample(range(nodes), 2)
        made.add_edge(f"n{u}", f"n{v}", weight=rng.randint(low, 20))
    return made


def test_networkxs_own_tests_pass():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "--pyargs", *THEIR_TESTS]
    settings = {"NETWORKX_TEST_BACKEND": "tilewise", "NETWORKX_FALLBACK_TO_NX": "True"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **settings}, cwd="/")
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_the_same_answers_in_the_same_types(kind):
    G = graph(kind)
    assert nx.floyd_warshall(G, backend="tilewise") == nx.floyd_warshall(G)
    assert dict(nx.all_pairs_shortest_path_length(G, backend="tilewise")) == dict(nx.all_pairs_shortest_path_length(G))
    ours, theirs = (
        dict(nx.all_pairs_dijkstra_path_length(G, cutoff=9, **how)) for how in ({"backend": "tilewise"}, {})
    )
    assert ours == theirs
    assert all(type(x) is int for row in ours.values() for x in row.values()), "whole weights make whole lengths"
    order = list(reversed(list(G)))
    assert (nx.floyd_warshall_numpy(G, order, backend="tilewise") == nx.floyd_warshall_numpy(G, order)).all()


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize("reflexive", [True, False, None])
def test_transitive_closure(kind, reflexive):
    G = graph(kind, nodes=30, seed=3)
    G.remove_edges_from(list(G.edges)[20:])
    ours, theirs = (nx.transitive_closure(G, reflexive, **how) for how in ({"backend": "tilewise"}, {}))
    assert set(ours.edges) == set(theirs.edges)
    assert ours.edges(data=True) is not None
    assert type(ours) is kind


def test_predecessors_lead_along_shortest_paths():
    G = graph(nodes=30)
    before, lengths = nx.floyd_warshall_predecessor_and_distance(G, backend="tilewise")
    for u in G:
        for v in G:
            if u != v and lengths[u][v] < float("inf"):
                path = nx.reconstruct_path(u, v, before)
                assert nx.path_weight(G, path, "weight") == lengths[u][v]


def test_weights_may_be_functions_and_hide_edges():
    G = graph()

    def odd(u, v, data):
        return data["weight"] if data["weight"] % 2 else None

    ours, theirs = (
        dict(nx.all_pairs_dijkstra_path_length(G, weight=odd, **how)) for how in ({"backend": "tilewise"}, {})
    )
    assert ours == theirs


def test_negative_weights_and_cycles():
    G = nx.DiGraph()
    G.add_weighted_edges_from([("a", "b", 4), ("b", "c", -3), ("c", "d", 1)])
    ours, theirs = (dict(nx.all_pairs_bellman_ford_path_length(G, **how)) for how in ({"backend": "tilewise"}, {}))
    assert ours == theirs
    with pytest.raises(ValueError, match="negative weights"):
        dict(nx.all_pairs_dijkstra_path_length(G, backend="tilewise"))
    G.add_edge("d", "b", weight=1)
    with pytest.raises(nx.NetworkXUnbounded, match="b → c → d → b"):
        nx.floyd_warshall(G, backend="tilewise")


def test_what_a_matrix_cannot_hold_is_left_to_networkx():
    for weight in (Fraction(1, 3), 2**60, float("nan"), "heavy"):
        G = nx.Graph()
        G.add_edge(0, 1, weight=weight)
        with pytest.raises(NotImplementedError):
            nx.floyd_warshall(G, backend="tilewise")


def test_an_empty_graph():
    assert nx.floyd_warshall(nx.Graph(), backend="tilewise") == {}
    assert dict(nx.all_pairs_shortest_path_length(nx.DiGraph(), backend="tilewise")) == {}


def test_small_graphs_are_left_alone_and_large_ones_taken():
    from tilewise.interop.networkx import Backend

    assert Backend.should_run("floyd_warshall", (nx.path_graph(60),), {}) is True
    assert "10 nodes" in Backend.should_run("floyd_warshall", (nx.path_graph(10),), {})

    class Crowd(nx.Graph):
        def __len__(self):
            return 100_000

    assert "80 GB" in Backend.can_run("floyd_warshall", (Crowd(),), {})


def test_importing_networkx_imports_nothing_of_ours():
    code = "import sys, networkx; print('tilewise' in networkx.config.backends, 'tilewise.api' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
