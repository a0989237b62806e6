"""Every keyword of `tw.matmul` alone and with every other, on arrays of a framework: honoured as for NumPy's arrays, or
refused by name."""

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
