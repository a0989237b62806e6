"""NetworkX with backend="tilewise": its own answers, and its own tests."""

from __future__ import annotations

import inspect
import math
import os
import random
import subprocess
import sys
from fractions import Fraction
from importlib.metadata import entry_points

import pytest

from seeds import next_seed

nx = pytest.importorskip("networkx")
measures = pytest.importorskip("tilewise.interop.networkx.measures")

pytestmark = [
    pytest.mark.skipif(
        "tilewise" not in {e.name for e in entry_points(group="networkx.backends")},
        reason="backends are found by entry points, and tilewise is not installed here",
    ),
    pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs"),
    pytest.mark.filterwarnings("ignore:(?s).*shortest_path will return an iterator:FutureWarning"),  # NetworkX 3.4's
]

# where NetworkX keeps the tests of the functions in FUNCTIONS
QUICK_TESTS = (
    "networkx.algorithms.shortest_paths.tests.test_dense",
    "networkx.algorithms.shortest_paths.tests.test_generic",
    "networkx.algorithms.tests.test_efficiency",
    "networkx.algorithms.centrality.tests.test_harmonic_centrality",
)
THEIR_TESTS = (
    "networkx.algorithms.shortest_paths",
    "networkx.algorithms.tests.test_dag",
    "networkx.algorithms.tests.test_distance_measures",
    "networkx.algorithms.centrality.tests.test_closeness_centrality",
    "networkx.algorithms.centrality.tests.test_betweenness_centrality",
)


def graph(kind=nx.DiGraph, nodes=40, seed=0, low=1):
    rng = random.Random(seed)
    made = kind()
    made.add_nodes_from(f"n{i}" for i in range(nodes))
    for _ in range(4 * nodes):
        u, v = rng.sample(range(nodes), 2)
        made.add_edge(f"n{u}", f"n{v}", weight=rng.randint(low, 20))
    return made


@pytest.mark.parametrize("tests", [QUICK_TESTS, pytest.param(THEIR_TESTS, marks=pytest.mark.slow)], ids=["some", "all"])
def test_networkxs_own_tests_pass(tests):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "--pyargs", *tests]
    settings = {"NETWORKX_TEST_BACKEND": "tilewise", "NETWORKX_FALLBACK_TO_NX": "True"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **settings}, cwd="/")
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def connected(kind, seed, nodes=30):
    """With a cycle through all nodes, so that every pair has a path."""
    made = graph(kind, nodes, seed)
    nodes = list(made)
    made.add_edges_from((u, v, {"weight": 7}) for u, v in zip(nodes, nodes[1:] + nodes[:1], strict=True))
    return made


def alike(ours, theirs):
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key, value in theirs.items():
            alike(ours[key], value)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12)
    else:
        assert ours == theirs
        assert type(ours) is type(theirs)


MEASURES = [
    ("eccentricity", {}), ("eccentricity", {"weight": "weight"}), ("diameter", {}), ("diameter", {"weight": "weight"}),
    ("radius", {}), ("center", {}), ("center", {"weight": "weight"}), ("periphery", {}),
    ("average_shortest_path_length", {}), ("average_shortest_path_length", {"weight": "weight"}),
    ("closeness_centrality", {}), ("closeness_centrality", {"distance": "weight", "wf_improved": False}),
    ("harmonic_centrality", {}), ("harmonic_centrality", {"distance": "weight"}),
    ("betweenness_centrality", {}), ("betweenness_centrality", {"normalized": False, "endpoints": True}),
    ("betweenness_centrality", {"endpoints": True}), ("betweenness_centrality", {"normalized": False}),
]  # fmt: skip


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph])
@pytest.mark.parametrize(("name", "how"), MEASURES, ids=str)
def test_measures_are_networkxs(kind, name, how):
    seed = next_seed() % 2**32
    print("seed", seed)
    for nodes in (1, 2, 3, 30):
        G = connected(kind, seed, nodes) if nodes > 2 else nx.path_graph(nodes, kind() if nodes == 1 else nx.Graph())
        alike(getattr(nx, name)(G, backend="tilewise", **how), getattr(nx, name)(G, **how))


def test_efficiency_and_graphs_in_parts():
    G = graph(nx.Graph, 40, 1)
    G.remove_edges_from(list(G.edges)[10:])
    assert nx.global_efficiency(G, backend="tilewise") == pytest.approx(nx.global_efficiency(G))
    for name in ("closeness_centrality", "harmonic_centrality", "betweenness_centrality"):
        alike(getattr(nx, name)(G, backend="tilewise"), getattr(nx, name)(G))
    for name in ("eccentricity", "diameter", "average_shortest_path_length"):
        with pytest.raises(nx.NetworkXError, match="not connected"):
            getattr(nx, name)(G, backend="tilewise")


PATHS = [
    ("all_pairs_shortest_path", {}, None), ("all_pairs_shortest_path", {"cutoff": 2}, None),
    ("shortest_path", {}, None),
    ("shortest_path", {"weight": "weight"}, "weight"), ("all_pairs_dijkstra_path", {}, "weight"),
    ("all_pairs_dijkstra_path", {"cutoff": 9}, "weight"), ("all_pairs_bellman_ford_path", {}, "weight"),
    ("johnson", {}, "weight"), ("shortest_path", {"weight": "weight", "method": "bellman-ford"}, "weight"),
]  # fmt: skip


@pytest.mark.parametrize("cutoff", [-1, 0, 1.5, 2, math.inf])
@pytest.mark.parametrize("name", ["all_pairs_shortest_path_length", "all_pairs_dijkstra_path_length"])
def test_cutoffs_are_networkxs_by_matrix_too(name, cutoff, monkeypatch):
    from tilewise.interop.networkx import Backend

    monkeypatch.setattr(sys.modules[Backend.__module__], "_module", lambda *_: "lengths")
    G = graph(nx.Graph, 30, 5)
    G.add_edge("n0", "n1", weight=0)
    call = getattr(nx, name)
    ours, theirs = (dict(call(G, cutoff=cutoff, **where)) for where in ({"backend": "tilewise"}, {}))
    for u, row in theirs.items():
        assert ours[u] == row


@pytest.mark.drawn(12)
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
@pytest.mark.parametrize("fractions", [True, False])
@pytest.mark.parametrize(("name", "how", "weight"), PATHS, ids=str)
def test_paths_are_shortest_ones(kind, name, how, weight, fractions):
    seed = next_seed() % 2**32
    print("seed", seed)
    G = graph(kind, 40, seed)
    if fractions:
        rng = random.Random(seed)
        for _, _, data in G.edges(data=True):
            data["weight"] = rng.choice([0.0, rng.random()])
    ours, theirs = (dict(getattr(nx, name)(G, **how, **where)) for where in ({"backend": "tilewise"}, {}))
    assert set(ours) == set(theirs)
    for u in theirs:
        assert set(ours[u]) == set(theirs[u])
        for v, path in ours[u].items():
            assert path[0] == u
            assert path[-1] == v
            length = len if weight is None else lambda p: nx.path_weight(G, p, "weight")
            assert length(path) == pytest.approx(length(theirs[u][v]))


def test_paths_of_all_pairs_are_as_networkx_gives_them(monkeypatch):
    """A dictionary up to NetworkX 3.4, pairs one by one since."""
    from tilewise.interop.networkx import Backend

    G = graph()
    theirs = nx.shortest_path(G)
    assert isinstance(nx.shortest_path(G, backend="tilewise"), type(theirs))
    for wanted in (True, False):
        monkeypatch.setattr(sys.modules[Backend.__module__], "PATHS_ARE_A_DICTIONARY", wanted)
        assert isinstance(nx.shortest_path(G, backend="tilewise"), dict) == wanted


def test_lengths_and_paths_together():
    G = graph()
    for u, (lengths, paths) in nx.all_pairs_dijkstra(G, backend="tilewise"):
        theirs, _ = nx.single_source_dijkstra(G, u)
        assert lengths == theirs
        assert set(paths) == set(theirs)
    assert dict(nx.shortest_path_length(G, backend="tilewise")) == dict(nx.shortest_path_length(G))
    how = {"weight": "weight", "method": "bellman-ford"}
    assert dict(nx.shortest_path_length(G, backend="tilewise", **how)) == dict(nx.shortest_path_length(G, **how))


def test_transitive_reduction():
    rng = random.Random(0)
    G = nx.DiGraph((u, v) for u in range(30) for v in range(u + 1, 30) if rng.random() < 0.2)
    assert set(nx.transitive_reduction(G, backend="tilewise").edges) == set(nx.transitive_reduction(G).edges)
    G.add_edge(29, 0)
    with pytest.raises(nx.NetworkXError, match="Directed Acyclic Graph required"):
        nx.transitive_reduction(G, backend="tilewise")


def test_what_is_not_about_all_pairs_is_left_to_networkx():
    from tilewise.interop.networkx import Backend

    G = nx.path_graph(100)
    for name, args, kwargs in (
        ("shortest_path", (G, 3), {}), ("shortest_path_length", (G,), {"target": 4}), ("eccentricity", (G,), {"v": 3}),
        ("closeness_centrality", (G,), {"u": 1}), ("betweenness_centrality", (G, 10), {}),
        ("diameter", (G,), {"usebounds": True}),
    ):  # fmt: skip
        assert "is not about all pairs" in Backend.can_run(name, args, kwargs)
    assert Backend.can_run("shortest_path", (G,), {}) is True


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


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize(
    "name",
    ["floyd_warshall", "closeness_centrality", "harmonic_centrality", "eccentricity", "average_shortest_path_length"],
)
def test_functions_as_weights_are_called_as_networkx_calls_them(kind, name):
    """To Floyd and Warshall they are names of attributes; closeness searches the reversed graph, ends exchanged."""
    graph = nx.gnm_random_graph(20, 90, seed=3, directed=kind in (nx.DiGraph, nx.MultiDiGraph))
    G = kind(graph)
    G.add_edges_from(list(graph.edges)[:9])

    def weight(u, v, data):
        return 1 + (3 * u + v) % 7

    key = "distance" if name.endswith("_centrality") else "weight"
    got, want = (getattr(nx, name)(G, **{key: weight}, backend=backend) for backend in ("tilewise", "networkx"))
    assert got == (pytest.approx(want) if name != "floyd_warshall" else want)


TREES = [nx.path_graph(9), nx.path_graph(10), nx.star_graph(5), nx.path_graph(2), nx.path_graph(1)]


@pytest.mark.parametrize("graph", [*TREES, nx.random_labeled_tree(200, seed=4), nx.random_labeled_tree(77, seed=5)])
def test_the_center_of_a_tree_is_found_by_removing_leaves(graph, monkeypatch):
    monkeypatch.setattr(measures, "eccentricity", None)
    assert nx.center(graph, backend="tilewise") == nx.center(graph, backend="networkx")


@pytest.mark.parametrize(
    "edges",
    [
        [(0, 1), (1, 2), (2, 0), (3, 3)], [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5)], [(0, 0), (1, 1), (0, 2), (1, 3)],
        [(0, 0), (1, 1), (2, 3)], [(0, 1), (1, 2), (2, 0), (0, 3)], [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0), (5, 1)],
        [(0, 1), (1, 2), (2, 3), (3, 0), (0, 0), (1, 1)],
    ],
)  # fmt: skip
def test_graphs_with_as_many_edges_as_a_tree(edges):
    """Cycles, edges from a node to itself, and parts that are not connected."""
    graph = nx.Graph(edges)
    made = []
    for backend in ("tilewise", "networkx"):
        try:
            made.append(nx.center(graph, backend=backend))
        except nx.NetworkXError as error:
            made.append(str(error))
    assert made[0] == made[1]


def test_negative_weights_and_cycles():
    G = nx.DiGraph()
    G.add_weighted_edges_from([("a", "b", 4), ("b", "c", -3), ("c", "d", 1)])
    ours, theirs = (dict(nx.all_pairs_bellman_ford_path_length(G, **how)) for how in ({"backend": "tilewise"}, {}))
    assert ours == theirs
    with pytest.raises(NotImplementedError):
        dict(nx.all_pairs_dijkstra_path_length(G, backend="tilewise"))
    with nx.config(backend_priority=["tilewise"]):
        assert dict(nx.all_pairs_dijkstra_path_length(G)) == theirs
    G.add_edge("d", "b", weight=1)
    with pytest.raises(nx.NetworkXUnbounded, match="b → c → d → b"):
        nx.floyd_warshall(G, backend="tilewise")


def test_what_a_matrix_cannot_hold_is_left_to_networkx():
    for weight in (Fraction(1, 3), 2**60, float("nan"), "heavy"):
        G = nx.Graph()
        G.add_edge(0, 1, weight=weight)
        with pytest.raises(NotImplementedError):
            nx.floyd_warshall(G, backend="tilewise")


def test_an_infinite_edge_is_a_path_as_in_networkx():
    """NetworkX reaches what lies behind it, ∞ away; a matrix of lengths does not know it from no edge."""
    G = connected(nx.DiGraph, 4)
    for u, v in list(G.edges)[::2]:
        G[u][v]["weight"] = math.inf
    G.add_edge("n1", "beyond", weight=math.inf)
    for name, how in (
        ("closeness_centrality", {"distance": "weight"}), ("harmonic_centrality", {"distance": "weight"}),
        ("all_pairs_bellman_ford_path_length", {}), ("all_pairs_dijkstra_path_length", {}),
    ):  # fmt: skip
        with nx.config(backend_priority=["tilewise"]):
            ours = getattr(nx, name)(G, **how)
            theirs = getattr(nx, name)(G, **how, backend="networkx")
            assert dict(ours) == dict(theirs), name
        if how:
            with pytest.raises(NotImplementedError):
                getattr(nx, name)(G, **how, backend="tilewise")
    assert nx.floyd_warshall(G, backend="tilewise") == nx.floyd_warshall(G)


def test_an_edge_without_a_weight_is_of_networkxs_kind_to_floyd_and_warshall():
    ours, theirs = (nx.floyd_warshall(nx.path_graph(5), **how)[0][3] for how in ({"backend": "tilewise"}, {}))
    assert (ours, type(ours)) == (theirs, type(theirs))


@pytest.mark.parametrize("name", ["floyd_warshall", "floyd_warshall_numpy", "floyd_warshall_predecessor_and_distance"])
def test_negative_loops_and_cycles_are_floyd_and_warshalls(name):
    """NetworkX refuses them since 3.7 and returned a table before, where this backend refused a cycle already."""

    def made(G, **how):
        try:
            table = getattr(nx, name)(G, **how)
        except nx.NetworkXUnbounded:
            return "unbounded"
        return table.tolist() if name.endswith("numpy") else table

    refuses = tuple(map(int, nx.__version__.split(".")[:2])) >= (3, 7)
    for edges in ([(0, 1, 2), (1, 1, -1)], [(0, 1, 2), (1, 1, 3)], [(0, 1, 2), (1, 2, -3), (2, 1, 1)]):
        G = nx.DiGraph()
        G.add_weighted_edges_from(edges)
        ours, theirs = made(G, backend="tilewise"), made(G)
        assert ours == theirs or (ours == "unbounded" and not refuses), edges


def test_lengths_that_are_given_are_left_to_networkx():
    if "sp" not in inspect.signature(nx.closeness_centrality.orig_func).parameters:
        pytest.skip("NetworkX 3.7 brought them")
    G = connected(nx.Graph, 1, 30)
    given = {u: dict.fromkeys(G, 2.0) for u in G}
    with nx.config(backend_priority=["tilewise"]):
        assert nx.closeness_centrality(G, sp=given) == nx.closeness_centrality(G, sp=given, backend="networkx")


def test_an_empty_graph():
    assert nx.floyd_warshall(nx.Graph(), backend="tilewise") == {}
    assert dict(nx.all_pairs_shortest_path_length(nx.DiGraph(), backend="tilewise")) == {}


def test_small_graphs_are_left_alone_and_large_ones_taken(monkeypatch):
    from tilewise.interop.networkx import Backend
    from tilewise.interop.networkx.readiness import READINESS, Readiness

    monkeypatch.setattr(Readiness, "_wait", lambda *_: 0.0)

    dense = nx.gnp_random_graph(300, 0.2, seed=0)
    assert Backend.should_run("floyd_warshall", (nx.path_graph(400),), {}) is True  # worth the time to build kernels
    assert "10 nodes" in Backend.should_run("floyd_warshall_numpy", (nx.path_graph(10),), {})
    Backend.should_run("diameter", (dense,), {"weight": "weight"})
    READINESS.wait()
    assert Backend.should_run("diameter", (dense,), {"weight": "weight"}) is True
    assert Backend.should_run("diameter", (nx.path_graph(40),), {}) is True, "no kernel is needed"
    assert "20 nodes" in Backend.should_run("diameter", (nx.path_graph(20),), {})

    class Crowd(nx.Graph):
        def __len__(self):
            return 100_000

    assert "80 GB" in Backend.can_run("floyd_warshall", (Crowd(),), {})


@pytest.mark.parametrize("name", ["all_pairs_bellman_ford_path", "diameter", "all_pairs_dijkstra_path", "betweenness"])
def test_kernels_are_compiled_in_the_background_and_then_used(name, monkeypatch):
    """A first call is left to NetworkX, or runs here in plain Python."""
    from tilewise.interop.networkx import Backend, readiness

    fresh, ours = readiness.Readiness(), sys.modules[Backend.__module__]
    monkeypatch.setattr(readiness.Readiness, "_wait", lambda *_: 0.0)
    monkeypatch.setattr(readiness, "READINESS", fresh)
    G, how = nx.gnp_random_graph(150, 0.2, seed=0), {"weight": "weight"} if name == "diameter" else {}
    name = "betweenness_centrality" if name == "betweenness" else name
    used = []
    with monkeypatch.context() as seen:
        tried = ours._compile_kernels
        seen.setattr(ours, "_compile_kernels", lambda *how: (used.append(how), tried(*how)))
        answers = [Backend.should_run(name, (G,), how) for _ in range(2)]
        modules = [ours._module(name, (G,), how)]
        fresh.wait()
    modules.append(ours._module(name, (G,), how))
    plain = {"diameter": None, "betweenness_centrality": "brandes"}.get(name, "dijkstra")
    assert all(answer is True if plain else "not built yet" in answer for answer in answers)
    assert [used_by[0] for used_by in used] == [name]
    assert Backend.should_run(name, (G,), how) is True
    assert modules[1] in ("lengths", "measures", "brandes_products")
    assert ours._module("all_pairs_shortest_path", (G,), {}) == "searches", "never by matrix"
    assert modules[0] == plain or not plain


def test_a_build_that_fails_counts_as_ready_and_the_call_raises_it(monkeypatch):
    from tilewise.interop.networkx.readiness import Readiness

    fresh, kind = Readiness(), ("lengths", False, 5, 5)
    monkeypatch.setattr(Readiness, "_wait", lambda *_: 0.0)
    fresh.build_in_background(kind, lambda: 1 / 0, 1.0)
    fresh.wait()
    assert fresh.is_ready(kind)


def test_no_thread_is_started_for_a_kind_before_its_calls_are_worth_one(monkeypatch):
    from tilewise.interop.networkx import readiness

    fresh, kind, built = readiness.Readiness(), ("lengths", False, 5, 5), []
    monkeypatch.setattr(readiness.Readiness, "_wait", lambda *_: 0.0)
    for _ in range(4):
        fresh.build_in_background(kind, lambda: built.append(1), 0.3 * readiness.WORTH)
        fresh.wait()
    assert built == [1]
    assert fresh.is_ready(kind)


def test_no_node_is_printed_to_leave_a_call_to_networkx():
    """NetworkX calls can_run for each source of its own searches: a node may take any time to print."""
    from tilewise.interop.networkx import Backend

    class Node:
        def __repr__(self):
            raise AssertionError("printed")

    G, node = nx.Graph(), Node()
    G.add_node(node)
    assert "all pairs" in Backend.can_run("shortest_path_length", (G, node), {})


def test_a_call_that_is_left_to_networkx_imports_no_kernels():
    code = "import sys, networkx as nx\nwith nx.config(backend_priority=['tilewise']): nx.diameter(nx.cycle_graph(9))\n"
    code += "print('tilewise.interop.networkx' in sys.modules, 'tilewise.api' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_importing_networkx_imports_nothing_of_ours():
    code = "import sys, networkx; print('tilewise' in networkx.config.backends, 'tilewise.api' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
