"""The card's closure without a card: its kernels compiled as C++, compared with the CPU backend's closure."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import HostDeviceArray, HostStream, put_on_the_host
from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES, dtype_of
from tilewise.arrays.numpy_library import NUMPY
from tilewise.compose.graph import card_closure, closure
from tilewise.compose.graph.predecessors import search_predecessors
from tilewise.core.machine import KNOWN_CARDS

pytestmark = pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")


@pytest.fixture
def card(monkeypatch, tmp_path_factory):
    launcher = put_on_the_host(monkeypatch, tmp_path_factory.getbasetemp())
    monkeypatch.setattr(card_closure, "Launcher", launcher)
    monkeypatch.setattr(card_closure, "allocate", lambda nbytes, device, stream: HostBuffer(nbytes))
    monkeypatch.setattr(card_closure, "memory", lambda device: (1 << 40, 1 << 40))
    monkeypatch.setattr(card_closure, "describe", lambda device: KNOWN_CARDS["h200"])
    monkeypatch.setattr(card_closure, "DeviceArray", HostDeviceArray)


class HostBuffer:
    """Memory of the card, on the host; it starts poisoned."""

    def __init__(self, nbytes):
        self.memory = np.full(nbytes + 64, 0xFF, np.uint8)
        self.handle = -(-self.memory.ctypes.data // 64) * 64

    def close(self, stream=None):
        self.memory = None


def weights(n, dtype, seed, density=0.3):
    rng = np.random.default_rng(seed)
    there = rng.random((n, n)) < density
    if dtype == "bool":
        return there
    if np.dtype(dtype).kind == "i":
        return np.where(there, rng.integers(0, 50, (n, n)), np.iinfo(dtype).max).astype(dtype)
    return np.where(there, rng.integers(1, 50, (n, n)) / 4, np.inf).astype(dtype)


def closed(W, name, tracks=False):
    given = find_semiring(name).over(dtype_of(W.dtype))
    hops = tracks and given.partial.kind == "b"
    work = find_semiring("min_plus").over(DTYPES["float32"]) if hops else given
    P, before = np.zeros(W.shape, given.result.numpy), np.full(W.shape, -7)
    operands = [NUMPY.operand(x, "x") for x in (W, P, before)]
    made = card_closure.close_on_card(
        operands[0], operands[1], operands[2] if tracks else None, given, work, HostStream()
    )
    return P, before, made


@pytest.mark.parametrize(
    ("name", "dtype", "n"),
    [
        ("min_plus", "float32", 100),
        pytest.param("min_plus", "int32", 150, marks=pytest.mark.slow),
        pytest.param("min_plus", "float16", 70, marks=pytest.mark.slow),
        pytest.param("lor_land", "bool", 130, marks=pytest.mark.slow),
    ],
)
def test_the_card_closes_as_the_cpu_does(card, monkeypatch, name, dtype, n):
    monkeypatch.setattr(card_closure, "BLOCKS", (128, 64))
    W = weights(n, dtype, n, 0.05)
    P, _, made = closed(np.asfortranarray(W) if n == 100 else W, name)
    assert not made.improves
    np.testing.assert_array_equal(P, tw.closure(W, semiring=name))


@pytest.mark.slow  # g++ compiles six kernels, 7 s; tests/cuda runs it on a card
@pytest.mark.parametrize(("dtype", "n"), [("float32", 70), ("bool", 80)])
def test_predecessors_lead_along_best_paths(card, monkeypatch, dtype, n):
    monkeypatch.setattr(card_closure, "BAND", 48)
    W = weights(n, dtype, 5, 0.06)
    name = "lor_land" if dtype == "bool" else "min_plus"
    P, before, made = closed(W, name, tracks=True)
    expected, _ = tw.closure(W, semiring=name, return_predecessors=True)
    np.testing.assert_array_equal(P, expected)
    assert made.lost.size == 0
    steps = W if dtype != "bool" else np.where(W, np.float32(1), np.inf)
    for source in range(0, n, 7):
        for target in range(n):
            nodes = tw.path(before, source, target)
            assert (nodes is not None and len(nodes) > 0) == bool(
                source == target or expected[source, target] not in (np.inf, False)
            )
            if nodes and dtype != "bool":
                total = sum(steps[a, b] for a, b in pairwise(nodes))
                assert total == expected[source, target]


@pytest.mark.slow
def test_cycles_of_weight_zero_among_predecessors_are_found(card):
    W = weights(70, "float32", 3, 0.2)
    W[W < 6] = 0
    _, before, made = closed(W, "min_plus", tracks=True)
    algebra = find_semiring("min_plus").over(DTYPES["float32"])
    if made.lost.size:
        before[made.lost] = search_predecessors(made.lost, W, algebra)
    expected = tw.closure(W)
    for source in range(0, 70, 5):
        for target in range(70):
            nodes = tw.path(before, source, target)
            if np.isfinite(expected[source, target]):
                assert sum(W[a, b] for a, b in pairwise(nodes)) == expected[source, target]


def test_an_improving_cycle_is_seen(card):
    W = weights(90, "float32", 4, 0.1)
    W[3, 5], W[5, 3] = -4, 2
    assert closed(W, "min_plus")[2].improves


def test_what_does_not_fit_is_refused_with_what_does(card, monkeypatch):
    W = weights(200, "float32", 1)
    monkeypatch.setattr(card_closure, "memory", lambda device: (100_000, 1_000_000))
    with pytest.raises(
        tw.OutOfMemoryError, match=r"closure of 200 nodes needs .* bytes beside W, and 100,000 .* up to"
    ):
        closed(W, "min_plus")


def test_integers_whose_paths_could_wrap_are_refused(card):
    W = weights(50, "int16", 1)
    W[0, 1] = 3000
    with pytest.raises(tw.DtypeError, match="weights up to 3000"):
        closed(W, "min_plus")


@pytest.mark.parametrize(("dtype", "name"), [("float32", "min_plus"), ("int32", "min_plus"), ("bool", "lor_land")])
def test_what_the_host_repairs_has_the_weights_of_the_graph(dtype, name, monkeypatch):
    """float32 min_plus is also the algebra in which predecessors over bool are counted."""
    W = weights(40, dtype, 3)
    given = find_semiring(name).over(dtype_of(W.dtype))
    work = find_semiring("min_plus").over(DTYPES["float32"]) if dtype == "bool" else given
    written = []
    monkeypatch.setattr(card_closure, "put_rows", lambda table, rows, values, stream: written.append(values))
    lost = card_closure.CardClosure(False, np.arange(40))
    closure._repair_on_host(W, lost, given, work, NUMPY.operand(W, "W"), None)
    D, (before,) = tw.closure(W, semiring=name), written
    for source, target in np.ndindex(40, 40):
        nodes = tw.path(before, source, target)
        steps = [W[a, b] for a, b in pairwise(nodes)]
        assert D[source, target] == (bool(nodes) if dtype == "bool" else sum(steps) if nodes else given.zero)


def test_a_negative_cycle_is_named_by_the_host():
    W = weights(40, "float32", 5)
    W[7, 9], W[9, 7] = -5, 2
    given = find_semiring("min_plus").over(DTYPES["float32"])
    improving = card_closure.CardClosure(True, np.zeros(0, np.int64))
    with pytest.raises(tw.CycleError, match="7 → 9 → 7"):
        closure._repair_on_host(W, improving, given, given, None, None)
