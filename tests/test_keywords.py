"""Every keyword of every function is honoured or refused, on every route; every pair of them too."""

from __future__ import annotations

import itertools
import tempfile
import threading

import numpy as np
import pytest

import tilewise as tw
from keyword_pairs import CALLS, check_function
from seeds import next_seed
from tilewise.core.options import DEFAULTS
from tilewise.dispatch import prepared

VALUES = {
    "semiring": "min_plus",
    "out": "an array",
    "device": "cpu",
    "kernel": "reference",
    "tile": 8,
    "precision": "ieee",
    "accumulate": True,
    "return_arg": True,
    "nonnegative": True,
    "memory": "1GB",
    "dtype": "float64",
    "scales": (2.0, 3.0),
    "alpha": 2.0,
    "bias": "a row",
    "activation": "relu",
    "axes": [(0, 1)] * 3,
    "order": "F",
    "casting": "unsafe",
    "reproducible": "everywhere",
}


def operands():
    rng = np.random.default_rng(1)
    return rng.integers(0, 9, (6, 7)).astype(np.float32), rng.integers(0, 9, (7, 5)).astype(np.float32)


def expected(M, N, keywords, before, bias):
    """What the keywords mean, in float64."""
    m, n = M.astype(np.float64), N.astype(np.float64)
    P = (m[:, :, None] + n[None]).min(1) if keywords.get("semiring") == "min_plus" else m @ n
    if "scales" in keywords:
        P = P * 6
    P = P * keywords.get("alpha", 1.0)
    P = P + bias if "bias" in keywords else P
    if keywords.get("accumulate"):
        P = np.minimum(P, before) if keywords.get("semiring") == "min_plus" else P + before
    return np.maximum(P, 0) if keywords.get("activation") == "relu" else P


def test_the_table_knows_every_keyword():
    assert set(VALUES) == set(DEFAULTS)


@pytest.mark.drawn(50)
@pytest.mark.parametrize("names", [*((n,) for n in VALUES), *itertools.combinations(VALUES, 2)], ids="+".join)
def test_alone_and_in_pairs_keywords_are_honoured_or_refused(names):
    M, N = operands()
    dtype = np.float64 if "dtype" in names else np.float32
    before, bias = np.full((6, 5), 3, dtype), np.arange(5, dtype=np.float32)
    keywords = {name: VALUES[name] for name in names}
    if "out" in keywords or "accumulate" in keywords:
        keywords["out"] = before.copy()
    if "bias" in keywords:
        keywords["bias"] = bias
    refusal = None
    for _ in range(2):  # the second time by what is prepared, where it is
        if "out" in keywords:
            keywords["out"][...] = before
        try:
            made = tw.matmul(M, N, **keywords)
        except tw.TilewiseError as error:
            refusal = str(error)
            break
        if "return_arg" in names:
            made, arg = made
            assert arg.shape == made.shape
        assert made.dtype == dtype
        np.testing.assert_allclose(made, expected(M, N, keywords, before, bias), rtol=1e-6)
        assert "out" not in keywords or made is keywords["out"]
    assert refusal is None or any(name in refusal for name in names), refusal


def test_an_unknown_keyword_is_a_type_error():
    with pytest.raises(TypeError, match=r"matmul\(\) got an unexpected keyword argument 'semirign'"):
        tw.matmul(*operands(), semirign="min_plus")


def test_a_keyword_that_cannot_be_a_key_is_refused_by_its_name():
    with pytest.raises(tw.TilewiseError):
        tw.matmul(*operands(), semiring=["min_plus"])


ROUTES = {
    "sparse": lambda x: pytest.importorskip("scipy.sparse").csr_array(x),
    "dask": lambda x: pytest.importorskip("dask.array").from_array(x, chunks=4),
    "zarr": lambda x: pytest.importorskip("zarr").array(x),
    "modular": lambda x: x.astype(np.int64),
    "values with fields": lambda x: (x, x),
}
RING = {"modular": tw.modular(7), "values with fields": "min_count"}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("keyword", [{"precision": "nonsense"}, {"device": "nonsense"}, {"device": "cuda:7"}], ids=str)
def test_no_route_ignores_a_keyword(route, keyword):
    M, N = (ROUTES[route](x) for x in operands())
    more = {"semiring": RING[route]} if route in RING else {}
    with pytest.raises(tw.TilewiseError, match=next(iter(keyword))):
        tw.matmul(M, N, **more, **keyword)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tw.matmul_many([], precision="nonsense"), "precision='nonsense'"),
        (lambda: tw.matmul_many([], semiring="nonsense"), "semiring='nonsense'"),
        (lambda: tw.closure(np.ones((0, 3, 3)), device="nonsense"), "device='nonsense'"),
        (lambda: tw.einsum("ij,jk,kl->il", *[np.eye(2)] * 3, optimize="nonsense"), "optimize='nonsense'"),
    ],
)
def test_what_has_nothing_to_do_checks_its_keywords_all_the_same(call, message):
    with pytest.raises(tw.TilewiseError, match=message):
        call()


def mapped(x):
    with tempfile.TemporaryFile() as file:
        file.write(x.tobytes())
        file.flush()
        return np.memmap(file, x.dtype, "r", shape=x.shape)


KINDS = {"numpy": lambda x: x, "lists": lambda x: x.tolist(), "files": mapped, **ROUTES}
CROSSED = [(kind, *call) for kind in KINDS if kind not in RING for call in CALLS]


@pytest.mark.drawn(60)  # audited_calls draws the rest
@pytest.mark.parametrize(("kind", "name", "names"), CROSSED, ids=str)
def test_every_function_honours_or_refuses_its_keywords_on_every_route(kind, name, names):
    """A keyword that changes nothing leaves the numbers, another semiring gives what NumPy's arrays give."""
    computed = check_function(name, names, KINDS[kind])
    assert computed or kind != "numpy" or names == ("return_predecessors", "reproducible")  # which exclude each other


def test_calls_are_kept_by_signature_and_the_least_used_go_first(monkeypatch):
    monkeypatch.setattr(prepared, "LIMIT", 8)
    kept = prepared.Prepared()
    monkeypatch.setattr(prepared, "PREPARED", kept)

    class Call:
        pass

    for number in range(8):
        kept.keep((number,), Call())
    kept[(0,)].tick = prepared.tick()  # used again: 1 and 2 have now been unused for longest
    kept.keep((8,), Call())
    assert set(kept) == {(0,), (3,), (4,), (5,), (6,), (7,), (8,)}


def test_threads_with_many_signatures_all_get_their_own_products():
    seed, wrong = next_seed() % 2**32, []

    def work(number):
        rng = np.random.default_rng((seed, number))
        for _ in range(150):
            m, k, n = (int(x) for x in rng.integers(1, 30, 3))
            M, N = rng.integers(0, 9, (m, k)).astype(np.float32), rng.integers(0, 9, (k, n)).astype(np.float32)
            if not np.array_equal(tw.matmul(M, N), M @ N):
                wrong.append((m, k, n))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, f"seed {seed}"
