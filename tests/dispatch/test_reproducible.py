"""`reproducible=` is part of a call's key, and is honoured or refused on every route."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from tilewise.errors import DeviceError, UsageError

EVERYWHERE = {"reproducible": "everywhere"}


def operands(dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    return rng.standard_normal((9, 800)).astype(dtype), rng.standard_normal((800, 5)).astype(dtype)


def test_calls_with_and_without_it_are_kept_apart():
    M, N = operands()
    want = tw.matmul(M, N, kernel="reference", **EVERYWHERE).tobytes()
    for _ in range(3):
        usual, defined = tw.matmul(M, N).tobytes(), tw.matmul(M, N, **EVERYWHERE).tobytes()
        assert defined == want
        assert usual != want


def test_problems_and_plans_carry_it():
    M, N = operands()
    plan = tw.plan(M, N, **EVERYWHERE)
    assert plan.problem.reproducible == "everywhere"
    assert plan.to_json()["problem"]["reproducible"] == "everywhere"
    assert "reproducible" not in tw.plan(M, N).to_json()["problem"]
    assert plan.blocking.KC == 512


@pytest.mark.parametrize("value", ["bits", "", 1, True, ["batch"]])
def test_other_values_are_refused(value):
    M, N = operands()
    for function in (tw.matmul, tw.plan):
        with pytest.raises(UsageError, match="'batch', 'everywhere'"):
            function(M, N, reproducible=value)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"bias": np.ones(5, np.float32)}, "bias="),
        ({"activation": "relu"}, "activation="),
        ({"alpha": 2.0}, "alpha="),
        ({"memory": "1GB", "device": "cuda"}, "reproducible='everywhere' streams"),
        ({"semiring": "logaddexp_plus"}, "no defined bits for logaddexp_plus over float32"),
        ({"semiring": tw.Semiring("square", add=lambda x, y: x + y, mul=lambda x, y: x * y * y, zero=0)}, "square"),
    ],
)
def test_what_it_does_not_specify_is_refused(keywords, message):
    M, N = operands()
    with pytest.raises(UsageError, match=message):
        tw.matmul(M, N, **EVERYWHERE, **keywords)


def test_on_the_cpu_the_caller_finishes_the_sums():
    M, N = operands()
    with pytest.raises(UsageError, match="bias= and reproducible= exclude each other here: apply them to the product"):
        tw.plan(M, N, device="cpu", reproducible="batch", bias=np.ones(N.shape[1], np.float32))


def test_routes_without_it_refuse_it():
    M, N = operands()
    with pytest.raises(DeviceError, match="no kernel on"):
        tw.matmul(M, N, device="simt", **EVERYWHERE)
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(UsageError, match="dense"):
        tw.matmul(sparse.csr_array(M), N, **EVERYWHERE)


def test_libraries():
    M, N = operands()
    want = tw.matmul(M, N, **EVERYWHERE).tobytes()
    torch = pytest.importorskip("torch")
    A, B = torch.from_numpy(M), torch.from_numpy(N)
    for _ in range(2):
        assert tw.matmul(A, B, **EVERYWHERE).numpy().tobytes() == want
    assert torch.func.vmap(lambda x: tw.matmul(x, B, **EVERYWHERE))(A[None]).numpy().tobytes() == want
    assert tw.matmul(A.requires_grad_(), B, **EVERYWHERE).detach().numpy().tobytes() == want


def test_integers_and_truths_have_it_already():
    M, N = (x.astype(np.int32) for x in operands())
    for ring, left, right in (("plus_times", M, N), ("min_plus", M, N), ("lor_land", M > 0, N > 0)):
        how = {"semiring": ring}
        assert tw.plan(left, right, **how, **EVERYWHERE).blocking == tw.plan(left, right, **how).blocking


def test_einsum_and_lists_of_products():
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 30, 40, 5), (40, 4, 6, 30)))
    M, N = x.transpose(0, 3, 1, 2).reshape(4, 5, -1), y.transpose(1, 3, 0, 2).reshape(4, -1, 6)
    want = tw.matmul(M, N, **EVERYWHERE)
    for left, right in ((x, y), (np.asfortranarray(x), y), (x, y[::-1][::-1])):
        for _ in range(2):
            assert tw.einsum("bpqi,qbjp->bij", left, right, **EVERYWHERE).tobytes() == want.tobytes()
    ones = np.ones(150, np.float32)
    sums = tw.matmul(x.transpose(1, 2, 0, 3).reshape(1200, 20), ones[:20], **EVERYWHERE)
    assert tw.einsum("bpqi->pq", x, **EVERYWHERE).tobytes() == sums.tobytes()
    (made,) = tw.matmul_many([(M[0], N[0])], **EVERYWHERE)
    assert made.tobytes() == want[0].tobytes()
    for function in (
        lambda: tw.einsum("ij,jk", M[0], N[0], reproducible="x"),
        lambda: tw.matmul_many([], reproducible=1),
    ):
        with pytest.raises(UsageError, match="'batch', 'everywhere'"):
            function()


def test_groups_of_rows_on_the_host():
    M, _ = operands()
    w = np.random.default_rng(4).standard_normal((3, 800, 6)).astype(np.float32)
    ends = np.array([2, 2, 7])
    P = tw.grouped_matmul(M, w, ends, **EVERYWHERE)
    for group, (first, last) in enumerate(((0, 2), (2, 2), (2, 7))):
        assert P[first:last].tobytes() == tw.matmul(M[first:last], w[group], **EVERYWHERE).tobytes()
    assert not P[7:].any()
    rows = np.array([3, 1, 4, 1, 5, 2, 6, 0])
    chosen = tw.grouped_matmul(M, w, ends, rows=rows, **EVERYWHERE)
    assert chosen.tobytes() == tw.grouped_matmul(M[rows], w, ends, **EVERYWHERE).tobytes()
    with pytest.raises(UsageError, match="'batch', 'everywhere'"):
        tw.grouped_matmul(M, w, ends, reproducible="rows")


def test_functions_of_vectors_and_chains_multiply_so_too():
    rng = np.random.default_rng(5)
    A, B, C = (rng.standard_normal(shape).astype(np.float32) for shape in ((40, 700), (700, 30), (30, 40)))
    x, y = A[0], B[:, 0]

    def product(M, N):
        return tw.matmul(M, N, kernel="reference", **EVERYWHERE)

    made = {
        "matvec": (tw.matvec(A, y, **EVERYWHERE), product(A, y)),
        "vecmat": (tw.vecmat(x, B, **EVERYWHERE), product(x, B)),
        "vecdot": (tw.vecdot(A, A[:1], **EVERYWHERE), product(A, x)),
        "inner": (tw.inner(A, B.T, **EVERYWHERE), product(A, B)),
        "outer": (tw.outer(x, y, **EVERYWHERE), product(x[:, None], y[None])),
        "tensordot": (tw.tensordot(A, B, 1, **EVERYWHERE), product(A, B)),
        "chain": (tw.chain([A, B, C], **EVERYWHERE), product(product(A, B), C)),
        "power": (tw.power(product(A, product(B, C)), 3, **EVERYWHERE), None),
        "block_sparse_matmul": (
            tw.block_sparse_matmul(A, B, [[1, 0], [0, 1]], **EVERYWHERE),
            np.concatenate([product(A[:20, :350], B[:350]), product(A[20:, 350:], B[350:])]),
        ),
    }
    square = product(A, product(B, C))
    made["power"] = made["power"][0], product(square, product(square, square))
    assert [name for name, (one, two) in made.items() if one.tobytes() != two.tobytes()] == []
    usual = tw.matvec(A, y).tobytes(), tw.inner(A, B.T).tobytes(), tw.chain([A, B, C]).tobytes()
    assert usual != tuple(made[name][0].tobytes() for name in ("matvec", "inner", "chain"))  # the keyword decides


def test_products_without_a_sum_have_the_zeros_and_nan_of_a_step():
    x, y = np.array([0.0, -np.nan, 2.0], np.float32), np.array([-1.0, 1.0, -1e-45], np.float32)
    want = np.array([0, 0x7FC00000, 0x80000002], np.uint32)  # 0 · −1 + 0 is +0
    assert tw.einsum("i,i->i", x, y, **EVERYWHERE).view(np.uint32).tolist() == want.tolist()
    assert np.diagonal(tw.outer(x, y, **EVERYWHERE)).copy().view(np.uint32).tolist() == want.tolist()


def test_a_chain_of_any_number_of_rows_is_grouped_alike_with_batch():
    rng = np.random.default_rng(6)
    M, A, B = (rng.standard_normal(shape).astype(np.float32) for shape in ((300, 40), (40, 3), (3, 40)))
    how = {"reproducible": "batch"}
    whole = tw.chain([M, A, B], **how)
    assert tw.chain([M[7:8], A, B], **how).tobytes() == whole[7:8].tobytes()
    flat = [rng.standard_normal(shape).astype(np.float32) for shape in ((300, 3), (3, 40), (40, 40))]
    whole = tw.chain(flat, **how)
    assert tw.chain([flat[0][:1], *flat[1:]], **how).tobytes() == whole[:1].tobytes()
    assert tw.chain(flat).tobytes() != whole.tobytes()  # which multiplies the last two first
    with pytest.raises(UsageError, match="'batch' of 3 operands: optimize='auto'"):
        tw.einsum("ij,jk,kl", *flat, **how)
    made = tw.einsum("ij,jk,kl", *flat, optimize=[(0, 1), (0, 1)], **how)
    assert (
        made[:1].tobytes() == tw.einsum("ij,jk,kl", flat[0][:1], *flat[1:], optimize=[(0, 1), (0, 1)], **how).tobytes()
    )
