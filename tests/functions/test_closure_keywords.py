"""Every subset of closure's keywords, over every route and dtype: honoured, or refused by its name."""

from __future__ import annotations

import itertools
from importlib.util import find_spec

import numpy as np
import pytest

import tilewise as tw
from tilewise.algebra.dtypes import dtype_named

NODES, SOURCES = 7, [4, 0, 4]
RINGS = (
    "min_plus",
    "max_plus",
    "max_min",
    "min_max",
    "max_times",
    "lor_land",
    "plus_times",
    "logaddexp_plus",
    "min_count",
)
KEYWORDS = ("sources", "return_predecessors", "progress", "device")
DTYPES = ("float64", "float32", "int32", "bool")
SUBSETS = [names for count in range(len(KEYWORDS) + 1) for names in itertools.combinations(KEYWORDS, count)]


def weights(ring, dtype):
    """Edges from lower to higher numbers, and backward ones that close no improving cycle."""
    rng = np.random.default_rng(5)
    shape = (NODES, NODES)
    if dtype == "bool":
        return rng.random(shape) < 0.3
    held = np.triu(rng.random(shape) < 0.5, 1)
    whole = rng.integers(1, 4, shape)
    signs = {"max_plus": -whole, "max_times": np.ones(shape, int)}
    algebra = (tw.semirings["min_plus"] if ring == "min_count" else tw.semirings[ring]).over(dtype_named(dtype))
    return np.where(held, signs.get(ring, whole), algebra.zero).astype(dtype)


def by_definition(W, ring):
    """I ⊕ W ⊕ W⊗W ⊕ … over stored cells alone; None where the semiring has no such closure over the dtype."""
    algebra = tw.semirings[ring].over(dtype_named(W.dtype.name))
    one = {"min_plus": 0, "max_plus": 0, "logaddexp_plus": 0, "plus_times": 1, "max_times": 1, "lor_land": True}
    extreme = {"max_min": dtype_named(W.dtype.name).largest(), "min_max": dtype_named(W.dtype.name).smallest()}
    kind = algebra.partial.numpy
    D = np.full(W.shape, algebra.zero, kind)
    for source in range(len(W)):
        row = np.full(len(W), algebra.zero, kind)
        row[source] = one.get(ring, extreme.get(ring))
        total = row.copy()
        for _ in range(len(W)):
            following = np.full(len(W), algebra.zero, kind)
            for u, v in zip(*np.nonzero(algebra.zero != W), strict=True):
                if row[u] != algebra.zero:
                    with np.errstate(all="ignore"):
                        made = algebra.mul(row[u : u + 1], W[u, v, None].astype(kind))
                        following[v] = algebra.add(following[v : v + 1], made)[0]
            row = following
            with np.errstate(all="ignore"):
                total = algebra.add(total, row)
        D[source] = total
    return D.astype(algebra.result.numpy)


def sparse_of(W, ring, form):
    sparse = pytest.importorskip("scipy.sparse")
    zero = tw.semirings[ring].over(dtype_named(W.dtype.name)).zero
    u, v = np.nonzero(zero != W)
    return getattr(sparse.coo_array((W[u, v], (u.astype(np.int32), v.astype(np.int32))), shape=W.shape), f"to{form}")()


def tensor_of(W, grad=False):
    torch = pytest.importorskip("torch")
    return torch.tensor(W, requires_grad=grad)


ROUTES = {
    "numpy": lambda W, ring: W,
    "stack": lambda W, ring: np.stack([W, W]),
    "transposed": lambda W, ring: np.asfortranarray(W),
    "csr": lambda W, ring: sparse_of(W, ring, "csr"),
    "coo": lambda W, ring: sparse_of(W, ring, "coo"),
    "dask": lambda W, ring: pytest.importorskip("dask.array").from_array(W, chunks=3),
    "memmap": None,
    "torch": lambda W, ring: tensor_of(W),
    "torch gradient": lambda W, ring: tensor_of(W, True),
}
MARKS = {"torch": pytest.mark.interop, "torch gradient": pytest.mark.interop}


def operand(route, W, ring, folder):
    if route == "memmap":
        np.save(folder / "W.npy", W)
        return np.load(folder / "W.npy", mmap_mode="r")
    return ROUTES[route](W, ring)


def array(x):
    if hasattr(x, "compute"):
        return x.compute()
    return x.detach().numpy() if hasattr(x, "detach") else np.asarray(x)


@pytest.mark.drawn(100)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize(
    "route",
    [pytest.param(x, marks=[MARKS[x], pytest.mark.skipif(not find_spec("torch"), reason="torch")] if x in MARKS else ())
     for x in ROUTES],
)  # fmt: skip
def test_every_subset_is_honoured_or_refused(route, ring, dtype, tmp_path):
    if (ring == "lor_land") == (dtype != "bool") and dtype != "float64":
        pytest.skip("edges of bool are lor_land's")
    if route == "torch gradient" and not dtype.startswith("float"):
        pytest.skip("no gradient of whole numbers")
    if ring in ("logaddexp_plus", "min_count") and dtype != "float64":
        pytest.skip("of floats")
    W = weights("plus_times" if ring == "lor_land" else ring, dtype)
    structured = ring == "min_count"
    want = by_definition(W, "min_plus" if structured else ring)
    given = operand(route, W, "min_plus" if structured else ring, tmp_path)
    if structured:
        if route not in ("numpy", "stack", "transposed", "torch"):
            pytest.skip("fields are arrays")
        given = (given, operand(route, np.isfinite(W).astype(np.int64), "min_plus", tmp_path))
    made, reported = 0, []

    def progress(*at):
        reported.append(at)

    values = {"sources": SOURCES, "return_predecessors": True, "progress": progress, "device": "cpu"}
    for names in SUBSETS:
        reported.clear()
        keywords = {name: values[name] for name in names}
        try:
            result = tw.closure(given, semiring=ring, **keywords)
        except (tw.UsageError, tw.AlgebraError, tw.DtypeError, tw.DeviceError, tw.ShapeError) as error:
            text = str(error)
            assert any(f"{name}=" in text for name in names) or ring in text or "square" in text or dtype in text, text
            continue
        made += 1
        D, before = result if "return_predecessors" in names else (result, None)
        D = array(D[0] if structured else D)
        rows = SOURCES if "sources" in names else list(range(NODES))
        stacked = D if route == "stack" else D[None]
        assert (len(stacked), *stacked.shape[1:]) == (2 if route == "stack" else 1, len(rows), NODES)
        for one in stacked:
            np.testing.assert_allclose(one, want[rows], rtol=1e-5)
        assert D.dtype == want.dtype
        if before is not None:
            for table in array(before).reshape(-1, len(rows), NODES):
                check_paths(table, rows)
        assert bool(reported) == ("progress" in names)
        assert not reported or reported[-1][0] == reported[-1][1]
    assert made or dtype != "float64" or ring not in ("min_plus", "max_plus", "max_min", "min_max")


def check_paths(table, rows):
    for row, source in enumerate(rows):
        for target in range(NODES):
            nodes = tw.path(table[row : row + 1], source, target, sources=[source])
            assert not nodes or (nodes[0], nodes[-1]) == (source, target)


def test_keywords_that_closure_does_not_have_are_type_errors():
    for name in ("out", "return_arg", "dtype", "memory", "kernel"):
        with pytest.raises(TypeError, match=name):
            tw.closure(np.ones((2, 2)), **{name: None})
