"""scipy.sparse operands over any semiring, held against their dense products; closures of sparse graphs."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
import tilewise.api as api
from seeds import next_seed
from tilewise.algebra.dtypes import dtype_named
from tilewise.backends.cpu.kernels.gustavson import run as gustavson
from tilewise.dispatch import product as dispatch_product
from tilewise.dispatch.sparse import product as sparse_product

sp = pytest.importorskip("scipy.sparse")

RINGS = ["min_plus", "max_plus", "min_max", "max_min", "max_times", "lor_land", "plus_times"]
OWN = tw.Semiring("least_gap", add=tw.minimum, mul=lambda x, y: y - 2 * x, zero=tw.largest, pad_m=0, pad_n=tw.largest)


def sparse(rng, m, n, density):
    made = sp.random_array((m, n), density=density, rng=rng, format="csr")
    made.data[:] = rng.integers(1, 20, made.nnz)
    return made


def dense_of(S, semiring, dtype=float):
    algebra = (semiring if isinstance(semiring, tw.Semiring) else tw.semirings[semiring]).over(
        dtype_named(np.dtype(dtype).name)
    )
    made = np.full(S.shape, algebra.zero, dtype)
    c = S.tocoo()
    made[c.coords] = c.data
    return made


def by_hand(M, N, ring, meets, dtype="float64"):
    """The definition: only products of stored cells are added."""
    algebra = (ring if isinstance(ring, tw.Semiring) else tw.semirings[ring]).over(dtype_named(dtype))
    wide = algebra.partial.numpy
    with np.errstate(all="ignore"):
        terms = algebra.mul(*(np.broadcast_to(x, meets.shape).astype(wide) for x in (M[:, :, None], N[None])))
        total = np.full((M.shape[0], N.shape[1]), algebra.zero, wide)
        for k in range(M.shape[1]):
            total = np.where(meets[:, k], algebra.add(total, terms[:, k]), total)
    return total


@pytest.mark.drawn(2)
@pytest.mark.parametrize("ring", [*RINGS, OWN], ids=str)
@pytest.mark.parametrize("tiles", [True, False])
def test_products_by_stored_cells(ring, tiles, monkeypatch):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(sparse_product, "CELL", 1e9 if tiles else 0.0)
    for m, k, n, density in ((7, 9, 5, 0.2), (40, 30, 50, 0.05), (3, 4, 5, 0.0), (20, 1, 20, 0.5), (1, 30, 1, 0.3)):
        S, T = sparse(rng, m, k, density), sparse(rng, k, n, density)
        M, N = rng.integers(1, 20, (m, k)).astype(float), rng.integers(1, 20, (k, n)).astype(float)
        left, right = (x.toarray() != 0 for x in (S, T))
        expected = by_hand(S.toarray(), N, ring, np.broadcast_to(left[:, :, None], (m, k, n)))
        np.testing.assert_array_equal(tw.matmul(S, N, semiring=ring), expected)
        np.testing.assert_array_equal(tw.matmul(S, N[:, 0], semiring=ring), expected[:, 0])
        expected = by_hand(M, T.toarray(), ring, np.broadcast_to(right, (m, k, n)))
        np.testing.assert_array_equal(tw.matmul(M, T, semiring=ring), expected)
        np.testing.assert_array_equal(tw.matmul(M[0], T, semiring=ring), expected[0])
        both = tw.matmul(S, T, semiring=ring)
        assert sp.issparse(both)
        expected = by_hand(S.toarray(), T.toarray(), ring, left[:, :, None] & right)
        np.testing.assert_array_equal(
            dense_of(both, ring if ring != "lor_land" else "plus_times", both.dtype), expected
        )


@pytest.mark.drawn(2)
@pytest.mark.parametrize("ring", ["min_plus", "max_times", "lor_land", "soft", OWN, tw.modular(97)], ids=str)
def test_the_algorithms_for_two_sparse_matrices_agree(ring, monkeypatch):
    """Row by row in machine code, by sorting, by dense tiles; short rows and wide ones; any number of threads."""
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    if ring == "soft":
        ring = tw.Semiring("soft", tw.logaddexp, lambda x, y: x + y, -np.inf)
    for m, k, n, density in ((90, 70, 5000, 0.01), (300, 200, 100, 0.05), (9, 9, 9, 0.5), (5, 400, 70000, 0.0005)):
        dtype = np.int64 if isinstance(ring, type(tw.modular(2))) else rng.choice([np.float32, np.float64])
        S, T = sparse(rng, m, k, density).astype(dtype), sparse(rng, k, n, density).astype(dtype)
        made = {}
        for algorithm in ("rows", "one thread", "sorted", "tiles"):
            with monkeypatch.context() as patched:
                patched.setattr(sparse_product, "PAIR", 1e9 if algorithm == "tiles" else 0.0)
                if algorithm == "sorted":
                    patched.setattr(sparse_product, "_compiles", lambda algebra: False)
                tw.set_num_threads(1 if algorithm == "one thread" else None)
                made[algorithm] = tw.matmul(S, T, semiring=ring)
        tw.set_num_threads(None)
        one = made["rows"]
        assert one.has_sorted_indices
        assert one.dtype == made["sorted"].dtype
        assert (one.data == made["one thread"].data).all()
        for other in made.values():
            assert (one.indptr == other.indptr).all()
            assert (one.indices == other.indices).all()
            np.testing.assert_allclose(one.data.astype(float), other.data.astype(float), rtol=1e-3)


@pytest.mark.drawn(12)
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("ring", ["min_plus", "max_min", "lor_land", "max_times", "logaddexp_plus", OWN], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64", "bool"])
@pytest.mark.parametrize("threads", [1, 3])
def test_vectors_and_matrices_of_any_width_on_either_side(form, ring, dtype, threads, monkeypatch):
    """Rows of P or of the dense operand are divided over threads; columns by vectors and a remainder."""
    algebra_of = ring if isinstance(ring, tw.Semiring) else tw.semirings[ring]
    if (dtype == "bool" and ring != "lor_land") or (ring in ("logaddexp_plus", OWN) and "float" not in dtype):
        pytest.skip("not over this dtype")
    monkeypatch.setattr(sparse_product, "CELL", 0.0)
    monkeypatch.setattr(gustavson, "STEPS", 20)
    rng = np.random.default_rng(next_seed() % 2**32)
    S = sp.random_array((30, 40), density=0.1, rng=rng, format="csr")
    S.data[:] = rng.integers(1, 5, S.nnz)
    stored = getattr(S.astype(dtype), f"to{form}")()
    dense = dense_of(stored, algebra_of, dtype)
    tw.set_num_threads(threads)
    try:
        for width in (0, 1, 3, 15, 16, 70):
            N = rng.integers(0, 6, (40, width) if width else 40).astype(dtype)
            M = rng.integers(0, 6, (width, 30) if width else 30).astype(dtype)
            held, left = (dense != algebra_of.over(dtype_named(dtype)).zero), width or 1
            both = (np.broadcast_to(held[:, :, None], (30, 40, left)), np.broadcast_to(held[None], (left, 30, 40)))
            right_want = by_hand(dense, N.reshape(40, -1), algebra_of, both[0], dtype)
            left_want = by_hand(M.reshape(-1, 30), dense, algebra_of, both[1], dtype)
            got = tw.matmul(stored, N, semiring=algebra_of)
            assert got.shape == (30, *N.shape[1:])
            np.testing.assert_allclose(got.reshape(30, -1), right_want, rtol=1e-6)
            got = tw.matmul(M, stored, semiring=algebra_of)
            assert got.shape == (*M.shape[:-1], 40)
            np.testing.assert_allclose(got.reshape(-1, 40), left_want, rtol=1e-6)
    finally:
        tw.set_num_threads(None)


def test_bands_of_rows(monkeypatch):
    monkeypatch.setattr(sparse_product, "BAND", 64)
    monkeypatch.setattr(sparse_product, "CELL", 0.0)
    monkeypatch.setattr(sparse_product, "_compiles", lambda algebra: False)
    rng = np.random.default_rng(0)
    S, T = sparse(rng, 60, 50, 0.1), sparse(rng, 50, 40, 0.1)
    M, N = dense_of(S, "min_plus"), dense_of(T, "min_plus")
    np.testing.assert_array_equal(tw.matmul(S, N, semiring="min_plus"), tw.matmul(M, N, semiring="min_plus"))
    np.testing.assert_array_equal(
        dense_of(tw.matmul(S, T, semiring="min_plus"), "min_plus"), tw.matmul(M, N, semiring="min_plus")
    )


def test_integers_keep_no_edge_apart(monkeypatch):
    monkeypatch.setattr(sparse_product, "CELL", 0.0)
    top = np.iinfo(np.int32).max
    S = sp.csr_array(np.array([[0, 7], [3, 0]], np.int32))
    N = np.array([[top, 5], [1, top]], np.int32)
    assert tw.matmul(S, N, semiring="min_plus").tolist() == [[8, top], [top, 8]]
    assert tw.matmul(S, S, semiring="min_plus").toarray().tolist() == [[10, 0], [0, 10]]


def test_what_is_refused():
    S = sp.csr_array(np.eye(3))
    with pytest.raises(tw.UsageError, match=r"return_arg= needs? dense operands: pass M.toarray"):
        tw.matmul(S, S, semiring="min_plus", return_arg=True)
    with pytest.raises(tw.UsageError, match=r"M is a scipy.sparse matrix, which this does not take: pass M.toarray"):
        tw.plan(S, S)
    with pytest.raises(tw.ShapeError, match="the 3 columns of M do not meet the 4 rows of N"):
        tw.matmul(S, np.ones((4, 2)), semiring="min_plus")


@pytest.mark.parametrize("ring", ["min_plus", "max_min", "lor_land"])
def test_few_cells_in_one_pass_are_the_same_bits_as_counted_first(ring, monkeypatch):
    from tilewise.backends.cpu.kernels.gustavson import run

    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for rows, cols, share in ((1, 1, 1.0), (40, 3000, 0.01), (300, 70, 0.05), (5000, 5000, 0.0002), (7, 9, 0.0)):
        M = sp.random_array((rows, cols), density=share, rng=rng, format="csr")
        N = sp.random_array((cols, rows), density=share, rng=rng, format="csr")
        at_once = tw.matmul(M, N, semiring=ring)
        with monkeypatch.context() as counted:
            counted.setattr(run, "PAIRS", 0)
            other = tw.matmul(M, N, semiring=ring)
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(at_once, name), getattr(other, name))
        assert at_once.has_canonical_format


@pytest.mark.parametrize("extents", [(3, 3, 3), (2, 3, 1), (0, 3, 2), (3, 0, 2), (3, 2, 0)], ids=str)
def test_diagonals_that_hold_nothing_are_multiplied(extents):
    """SciPy's own product of them ends in `vector::_M_default_append`."""
    m, k, n = extents
    for left, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
        M, N = sp.dia_array(left * np.ones((m, k))), sp.dia_array(right * np.ones((k, n)))
        np.testing.assert_array_equal(tw.matmul(M, N).toarray(), M.toarray() @ N.toarray())


def with_duplicates(rng, n, form, dtype="float64"):
    """A matrix of small whole numbers, most of its cells stored two or three times, and the cells one by one."""
    cells = rng.integers(0, n, (2, 3 * n))
    rows, cols = np.concatenate([cells, cells[:, ::2], cells[:, ::5]], axis=1).astype(np.int32)
    order = rng.permutation(len(rows))
    rows, cols = rows[order], cols[order]
    data = rng.integers(1, 6, len(rows)).astype(dtype)
    if form == "coo":
        made = sp.coo_array((data, (rows, cols)), shape=(n, n))
    elif form == "bsr":  # the same block twice in a row of blocks
        blocks = rng.integers(1, 6, (6, 2, 2)).astype(dtype)
        made = sp.bsr_array((blocks, np.array([0, 0, 1, 2, 2, 2]), np.array([0, 3, 3, 6])), shape=(6, 6))
        c = made.tocoo()
        rows, cols, data = c.row, c.col, c.data
    else:
        major, others = (rows, cols) if form == "csr" else (cols, rows)
        order = np.argsort(major, kind="stable")
        starts = np.searchsorted(major[order], np.arange(n + 1))
        kind = sp.csr_array if form == "csr" else sp.csc_array
        made = kind((data[order], others[order], starts), shape=(n, n))
    assert not getattr(made, "has_canonical_format", False)
    return made, (rows, cols, data)


def combined(cells, n, semiring, dtype="float64"):
    """The dense matrix of cells that are stored several times, by the semiring's own add."""
    algebra = tw.semirings[semiring].over(dtype_named(dtype))
    made = np.full((n, n), algebra.zero, algebra.partial.numpy)
    for i, j, value in zip(*cells, strict=True):
        value = value != 0 if algebra.partial.kind == "b" else value
        made[i, j] = algebra.add(made[i, j, None], np.full(1, value, made.dtype))[0]
    return made.astype(dtype) if algebra.partial.kind != "b" else made


@pytest.mark.parametrize("form", ["coo", "csr", "csc", "bsr"])
@pytest.mark.parametrize("semiring", [*(ring for ring in RINGS if ring != "max_times"), "logaddexp_plus"])
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_cells_stored_twice_meet_by_the_semirings_add(form, semiring, dtype):
    dtype = "float64" if semiring == "logaddexp_plus" else dtype
    rng = np.random.default_rng([len(form), len(semiring)])
    n = 6
    (A, a), (B, b) = with_duplicates(rng, n, form, dtype), with_duplicates(rng, n, form, dtype)
    left, right = (combined(x, n, semiring, dtype) for x in (a, b))
    want = tw.matmul(left, right, semiring=semiring)
    kept = A.copy()
    for got in (tw.matmul(A, B, semiring=semiring), tw.matmul(A, right.astype(dtype), semiring=semiring)):
        got = dense_of(got, semiring, dtype if semiring != "lor_land" else bool) if sp.issparse(got) else got
        np.testing.assert_allclose(got, want, rtol=1e-12)
    np.testing.assert_allclose(tw.matmul(left.astype(dtype), B, semiring=semiring), want, rtol=1e-12)
    assert kept.nnz == A.nnz  # the caller's matrix is not rewritten
    np.testing.assert_array_equal(kept.data, A.data)


@pytest.mark.parametrize("form", ["coo", "csr", "csc", "bsr"])
@pytest.mark.parametrize("semiring", ["min_plus", "max_min", "min_max", "lor_land"])
@pytest.mark.parametrize("sources", [None, [4, 0]])
def test_closures_of_cells_stored_twice(form, semiring, sources):
    A, cells = with_duplicates(np.random.default_rng(7), 6, form)
    want = tw.closure(combined(cells, 6, semiring), semiring=semiring, sources=sources)
    np.testing.assert_array_equal(tw.closure(A, semiring=semiring, sources=sources), want)


def test_two_edges_between_two_nodes_are_not_one_long_edge():
    A = sp.coo_array(([1.0, 5.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert tw.closure(A)[0, 1] == 1
    assert tw.matmul(A, np.array([[9.0], [2.0]]), semiring="min_plus")[0, 0] == 3
    opposite = sp.coo_array(([1.0, -1.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert tw.closure(opposite, semiring="lor_land")[0, 1]


@pytest.mark.parametrize("kinds", [("int16", "float32"), ("float64", "int8"), ("int8", "int32"), ("bool", "float32")])
@pytest.mark.parametrize("semiring", ["min_plus", "max_min"])
def test_operands_of_two_dtypes_have_the_no_edge_of_their_common_one(kinds, semiring):
    """Few cells of few: dense tiles multiply, and ∞ has no place in an int16."""
    rng = np.random.default_rng(8)
    common = np.result_type(*kinds)
    (A, B), dense = (sp.random_array((6, 6), density=0.5, rng=rng, format="csr") for _ in kinds), []
    made = []
    for S, kind in zip((A, B), kinds, strict=True):
        S.data[:] = rng.integers(1, 6, S.nnz)
        made.append(S.astype(kind))
        dense.append(dense_of(made[-1].astype(common), semiring, common))
    want = tw.matmul(*dense, semiring=semiring)
    got = tw.matmul(*made, semiring=semiring)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(dense_of(got, semiring, common), want)
    np.testing.assert_array_equal(tw.matmul(made[0], dense[1], semiring=semiring), want)
    np.testing.assert_array_equal(tw.matmul(dense[0], made[1], semiring=semiring), want)


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("ring", ["min_plus", "max_times", "logaddexp_plus"])
def test_a_second_call_is_prepared_on_either_side(form, ring, monkeypatch):
    """With a vector on either side and a matrix: one call of machine code, also of arrays that have strides."""
    rng = np.random.default_rng(next_seed() % 2**32)
    S = getattr(sparse(rng, 30, 40, 0.1), f"to{form}")()
    held = [np.repeat(x, 2)[::2] for x in (S.data, S.indices, S.indptr)]  # SciPy keeps such arrays as they are
    strided = type(S)(tuple(held), shape=S.shape)
    strided.data, strided.indices, strided.indptr = held
    for stored in (S, strided):
        for M, N in ((stored, rng.random(40)), (rng.random(30), stored), (stored, rng.random((40, 5)))):
            expected = tw.matmul(M, N, semiring=tw.semirings[ring])  # no name: not prepared
            tw.matmul(M, N, semiring=ring)
            tw.matmul(M, N, semiring=ring)
            with monkeypatch.context() as patched:
                patched.setattr(dispatch_product, "first_call", None)
                patched.setattr(api, "first_call", None)
                if stored is S and 1 in (M.ndim, N.ndim):
                    patched.setattr(sparse_product, "_with_dense", None)
                np.testing.assert_allclose(tw.matmul(M, N, semiring=ring), expected)
