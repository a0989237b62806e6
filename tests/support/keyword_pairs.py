"""Every keyword of a public function alone and with every other, on arrays of any kind: honoured as for NumPy's arrays,
or refused by name."""

from __future__ import annotations

import itertools

import numpy as np

import tilewise as tw

VALUES = {
    "semiring": "min_plus", "out": "an array", "device": "cpu", "kernel": "reference", "tile": 8, "precision": "ieee",
    "accumulate": True, "return_arg": True, "nonnegative": True, "memory": "1GB", "dtype": "float32",
    "scales": (2.0, 3.0), "alpha": 2.0, "bias": "a row", "activation": "relu",
}  # fmt: skip
PAIRS = [*((name,) for name in VALUES), *itertools.combinations(VALUES, 2)]


def check(names, multiply, made_of, refused=tw.TilewiseError):
    """`multiply(M, N, keywords)` is the route; `made_of` makes an array of its library."""
    rng = np.random.default_rng(1)
    M, N = (rng.integers(0, 9, shape).astype(np.float32) for shape in ((6, 7), (7, 5)))
    given = {name: VALUES[name] for name in names}
    if "out" in given or "accumulate" in given:
        given["out"] = np.full((6, 5), 3, np.float32)
    if "bias" in given:
        given["bias"] = np.arange(5, dtype=np.float32)

    def of(library):
        return {name: library(x) if isinstance(x, np.ndarray) else x for name, x in given.items()}

    try:
        want = tw.matmul(M, N, **of(np.array))
    except tw.TilewiseError:
        want = None
    keywords, sentence = of(made_of), ""
    try:
        made = multiply(made_of(M), made_of(N), keywords)
    except refused as error:
        sentence = str(error)
    if sentence:
        assert any(name in sentence for name in (*names, "out" if "accumulate" in names else names[0])), sentence
        return
    assert want is not None, "it is refused for NumPy's arrays"
    for one, two in zip(*(x if isinstance(x, tuple) else (x,) for x in (made, want)), strict=True):
        np.testing.assert_allclose(np.asarray(one), two, rtol=1e-6)
    if "out" in given:
        np.testing.assert_allclose(
            np.asarray(keywords["out"]), two if "return_arg" not in names else want[0], rtol=1e-6
        )


W = np.random.default_rng(2).integers(1, 9, (6, 6)).astype(np.float64)
BEFORE = tw.closure(W, return_predecessors=True, sources=range(6))[1]
KEPT = {  # values that leave the numbers of float64 operands as they are
    "device": "cpu", "precision": "ieee", "nonnegative": True, "dtype": "float64", "casting": "safe", "order": "C",
    "optimize": "greedy", "along": "rows", "rows": np.arange(6), "sources": list(range(6)), "progress": lambda *_: None,
    "weights": np.ones(6), "axis": -1, "kernel": "reference", "return_predecessors": True, "semiring": "max_min",
    "out": np.full((6, 6), np.nan), "reproducible": "everywhere",
}  # fmt: skip
VECTORS = "semiring device precision nonnegative dtype casting out reproducible"
FUNCTIONS = {  # the call, in which `of` makes the other operands, and its keywords
    "matvec": (lambda x, of, how: tw.matvec(x, of(W[0]), **how), VECTORS),
    "vecmat": (lambda x, of, how: tw.vecmat(of(W[0]), x, **how), VECTORS),
    "vecdot": (lambda x, of, how: tw.vecdot(x, of(W[0]), **how), f"{VECTORS} axis"),
    "inner": (lambda x, of, how: tw.inner(x, of(W), **how), "semiring reproducible"),
    "outer": (lambda x, of, how: tw.outer(x, of(W[0]), **how), "semiring out reproducible"),
    "tensordot": (lambda x, of, how: tw.tensordot(x, of(W), 1, **how), "semiring reproducible"),
    "einsum": (
        lambda x, of, how: tw.einsum("ij,jk", x, of(W), **how),
        "semiring optimize out dtype order casting reproducible",
    ),
    "chain": (lambda x, of, how: tw.chain([x, of(W), of(W)], **how), "semiring reproducible"),
    "power": (lambda x, of, how: tw.power(x, 3, **how), "semiring reproducible"),
    "closure": (
        lambda x, of, how: tw.closure(x, **how),
        "semiring return_predecessors progress device sources reproducible",
    ),
    "path": (lambda x, of, how: np.array(tw.path(of(BEFORE), 0, 3, **how)), "sources"),
    "matmul_many": (lambda x, of, how: tw.matmul_many([(x, of(W))], **how)[0], "semiring precision reproducible"),
    "grouped_matmul": (
        lambda x, of, how: tw.grouped_matmul(x, of(W[None]), of(np.array([6])), **how),
        "along rows semiring out precision kernel reproducible",
    ),
    "block_sparse_matmul": (
        lambda x, of, how: tw.block_sparse_matmul(x, of(W), [[1, 1]], **how),
        "semiring precision reproducible",
    ),
    "scatter_rows": (lambda x, of, how: tw.scatter_rows(x, of(np.arange(6)), 6, **how), "weights"),
}
CALLS = [
    (name, chosen)
    for name, (_, keywords) in FUNCTIONS.items()
    for count in (0, 1, 2)
    for chosen in itertools.combinations(keywords.split(), count)
]


def check_function(name, names, made_of, others=np.array, run=lambda call, x: call(x), refused=tw.TilewiseError):
    """A function of W as `made_of` makes it, beside operands that `others` makes: as for NumPy's arrays, or refused.
    `run(call, x)` is how it is called. Whether it was computed."""
    call, _ = FUNCTIONS[name]
    want = call(W, np.array, {key: KEPT[key] for key in names if key in ("semiring", "return_predecessors")})
    how = {key: others(KEPT[key]) if isinstance(KEPT[key], np.ndarray) else KEPT[key] for key in names}
    if "out" in names:
        how["out"] = others(np.full(want.shape, np.nan))
    try:
        made = run(lambda x: call(x, others, how), made_of(W))
    except refused:
        return False
    assert "out" not in names or made is how["out"]
    for one, two in zip(*(x if isinstance(x, tuple) else (x,) for x in (made, want)), strict=True):
        one = one.compute(scheduler="sync") if hasattr(one, "dask") else one
        one = one.toarray() if hasattr(one, "toarray") else one
        np.testing.assert_allclose(np.asarray(one), two)
    return True
