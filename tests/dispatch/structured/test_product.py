"""Values with fields: any of them through one kernel, laws with witnesses, paths counted as NetworkX counts them."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed
from structured_values import NAMES, RINGS, algebra_of, assert_same, drawn, expected


@pytest.fixture
def rng():
    seed = next_seed() % 2**32
    print("seed", seed)
    return np.random.default_rng(seed)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("ring", "dtypes"), RINGS, ids=NAMES)
def test_products_follow_the_definition(rng, ring, dtypes):
    for m, k, n in ((1, 1, 1), (3, 0, 2), (0, 4, 5), tuple(rng.integers(1, 70, 3)), (9, 700, 5)):
        M, N = drawn(rng, ring, dtypes, (m, k)), drawn(rng, ring, dtypes, (k, n))
        right = expected(ring, dtypes, M, N)
        assert_same(tw.matmul(M, N, semiring=ring), right)
        lying = [np.asfortranarray(x)[:, ::-1] for x in M], [np.repeat(y, 2, 1)[::-1, ::2] for y in N]
        assert_same(tw.matmul(*lying, semiring=ring), right)


def test_many_threads_give_the_same_bits(rng):
    ring, dtypes = RINGS[0]
    M, N = drawn(rng, ring, dtypes, (150, 90)), drawn(rng, ring, dtypes, (90, 130))
    made = []
    for threads in (1, 2, 5):
        tw.set_num_threads(threads)
        made.append(tw.matmul(M, N, semiring=ring))
    tw.set_num_threads(None)
    for other in made[1:]:
        assert_same(other, made[0])


def test_structured_arrays_in_and_out(rng):
    kind = np.dtype([("weight", "f4"), ("many", "i4")])
    M, N = (np.zeros((7, 7), kind) for _ in range(2))
    for x in (M, N):
        x["weight"], x["many"] = drawn(rng, *RINGS[1], (7, 7))
    P = tw.matmul(M, N, semiring="min_count")
    assert P.dtype.names == ("length", "paths")
    plain = tw.matmul((M["weight"], M["many"]), (N["weight"], N["many"]), semiring=tw.min_count)
    assert_same([P["length"], P["paths"]], plain)


def test_vectors_and_stacks_follow_matmul(rng):
    ring, dtypes = RINGS[1]
    M, N = drawn(rng, ring, dtypes, (3, 1, 4, 5)), drawn(rng, ring, dtypes, (2, 5, 6))
    P = tw.matmul(M, N, semiring=ring)
    assert P[0].shape == (3, 2, 4, 6)
    for i, j in np.ndindex(3, 2):
        assert_same([p[i, j] for p in P], expected(ring, dtypes, [x[i, 0] for x in M], [y[j] for y in N]))
    row, column = [x[0, 0, 0] for x in M], [y[0, :, 0] for y in N]
    whole = tw.matmul(row, column, semiring=ring)
    assert [p.shape for p in whole] == [(), ()]
    assert_same(
        [np.reshape(p, (1, 1)) for p in whole],
        expected(ring, dtypes, [x[None] for x in row], [y[:, None] for y in column]),
    )


@pytest.mark.interop
def test_torch_tensors_in_and_out(rng):
    torch = pytest.importorskip("torch")
    ring, dtypes = RINGS[0]
    M, N = drawn(rng, ring, dtypes, (5, 6)), drawn(rng, ring, dtypes, (6, 4))
    P = tw.matmul(tuple(map(torch.from_numpy, M)), tuple(map(torch.from_numpy, N)), semiring=ring)
    assert all(isinstance(p, torch.Tensor) for p in P)
    assert_same([p.numpy() for p in P], expected(ring, dtypes, M, N))


def test_ones_own_is_traced_field_by_field(rng):
    """Sums and products of intervals: the least and the largest that can come out."""
    span = tw.Semiring(
        "span", zero=(0.0, 0.0), fields=("low", "high"),
        add=lambda x, y: (x.low + y.low, x.high + y.high),
        mul=lambda x, y: (x.low * y.low, x.high * y.high),
        witnesses=lambda rng, count: np.sort(rng.random((2, count)).round(2), 0),
    )  # fmt: skip
    M, N = (np.sort(rng.integers(0, 9, (2, 6, 6)), 0).astype(float) for _ in range(2))
    low, high = tw.matmul(tuple(M), tuple(N), semiring=span)
    np.testing.assert_array_equal(low, M[0] @ N[0])
    np.testing.assert_array_equal(high, M[1] @ N[1])


def test_dual_numbers_carry_the_slope(rng):
    A, B, dA, dB = rng.standard_normal((4, 5, 5))
    value, slope = tw.matmul((A, dA), (B, dB), semiring="dual")
    np.testing.assert_allclose(value, A @ B)
    np.testing.assert_allclose(slope, dA @ B + A @ dB)


def test_the_arg_travels_with_the_maximum(rng):
    M, N = rng.integers(0, 5, (2, 9, 9)).astype(float)
    none = np.iinfo(np.int64).max
    tags = np.broadcast_to(np.arange(9), (9, 9))
    value, tag = tw.matmul((M, tags), (N, np.full((9, 9), none)), semiring=tw.max_arg)
    right, won = tw.matmul(M, N, semiring="max_plus", return_arg=True)
    np.testing.assert_array_equal(value, right)
    np.testing.assert_array_equal(tag, won)


@pytest.mark.parametrize("k", range(1, 9))
def test_the_k_best_are_the_k_least_sums(rng, k):
    M, N = (np.sort(rng.integers(0, 30, (k, 4, 5)), 0).astype(float) for _ in range(2))
    made = np.stack(tw.matmul(tuple(M), tuple(N.transpose(0, 2, 1)), semiring=tw.k_best(k)))
    for i, j in np.ndindex(4, 4):
        sums = np.sort((M[:, None, i] + N[None, :, j]).ravel())
        np.testing.assert_array_equal(made[:, i, j], sums[:k])


def counted(lengths):
    """Shortest paths and how many there are: S = A ⊕ A ⊗ S, one edge longer each time, until nothing changes."""
    ring = tw.min_count
    A = (lengths, np.where(np.isinf(lengths), 0, 1))
    S = A
    while True:
        T = tw.matmul(A, S, semiring=ring)
        T = algebra_of(ring, ("float64", "int64")).evaluate(ring.add, x=A, y=T)
        if all(np.array_equal(t, s) for t, s in zip(T, S, strict=True)):
            return S
        S = T


@pytest.mark.interop
def test_paths_are_counted_as_networkx_counts_them(rng):
    nx = pytest.importorskip("networkx")
    for number in range(50):
        n = int(rng.integers(2, 14))
        graph = nx.gnp_random_graph(n, 0.35, seed=int(rng.integers(2**31)), directed=number % 2 == 0)
        for _, _, edge in graph.edges(data=True):
            edge["weight"] = int(rng.integers(1, 4))
        W = nx.to_numpy_array(graph, nonedge=np.inf)
        length, paths = counted(W)
        for source in graph:
            before, far = nx.dijkstra_predecessor_and_distance(graph, source)
            many = {source: 1}
            for node in sorted(far, key=far.get):
                if node != source:
                    many[node] = sum(many[p] for p in before[node])
            for node in graph:
                if node != source:
                    assert length[source, node] == far.get(node, np.inf)
                    assert paths[source, node] == many.get(node, 0)
                    if node in far and number < 10:
                        assert many[node] == len(list(nx.all_shortest_paths(graph, source, node, "weight")))


def test_a_law_that_is_broken_is_named_with_its_witnesses():
    with pytest.raises(
        tw.AlgebraError, match=r"add must be commutative, but for x = \(.*\), y = \(.*\) add\(x, y\) is"
    ):
        tw.Semiring("a", zero=(0, 0), add=lambda x, y: (x[0], y[1]), mul=lambda x, y: (x[0], x[1]))
    with pytest.raises(tw.AlgebraError, match=r"zero must be neutral"):
        tw.Semiring("b", zero=(1, 0), add=lambda x, y: (x[0] + y[0], x[1] + y[1]), mul=lambda x, y: (x[0], x[1]))
    with pytest.raises(tw.AlgebraError, match=r"mul must distribute over add"):
        tw.Semiring(
            "c", zero=(0, 0), add=lambda x, y: (x[0] + y[0], x[1] + y[1]), mul=lambda x, y: (x[0] + y[0], y[1] + x[1])
        )
    with pytest.raises(tw.AlgebraError, match=r"must return 2 values, one for each of length, paths"):
        tw.Semiring("d", zero=(0, 0), fields=("length", "paths"), add=lambda x, y: x[0], mul=lambda x, y: x)


def test_bad_calls_are_refused():
    A = (np.ones((2, 2)), np.ones((2, 2), np.int64))
    for call, error, message in (
        (lambda: tw.matmul(A[0], A[0], semiring="min_count"), tw.UsageError, "a tuple of 2 arrays or as a NumPy"),
        (
            lambda: tw.matmul(A[:1], A, semiring="min_count"),
            tw.ShapeError,
            "M has 1 fields, and a value of min_count has 2",
        ),
        (lambda: tw.matmul((A[0], A[1][:1]), A, semiring="min_count"), tw.ShapeError, "M[1] is 1×2 and M[0] is 2×2"),
        (
            lambda: tw.matmul((A[1], A[1]), (A[1], A[1]), semiring="min_count"),
            tw.DtypeError,
            "convert the field to float64",
        ),
        (lambda: tw.matmul(A, A, semiring="min_count", out=A[0]), tw.UsageError, "out= does not go with min_count"),
        (lambda: tw.closure(A[0], semiring="min_count"), tw.UsageError, "pass W as a tuple of 2 arrays"),
        (
            lambda: tw.matmul((A[0] * 1j, A[1]), A, semiring="min_count"),
            tw.DtypeError,
            "the field length is complex128",
        ),
        (lambda: tw.k_best(9), tw.UsageError, "k=9 must be a whole number from 1 to 8"),
        (lambda: tw.matmul((A[0], A[1]), A, semiring="dual"), tw.DtypeError, "meets fields of float64 and int64"),
    ):
        with pytest.raises(error) as raised:
            call()
        assert message in str(raised.value)
