"""The kernels' text, executed by the emulator: every rung agrees with the reference and has no fault."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise import emulator as simt
from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.reference.phases import multiply
from tilewise.errors import DtypeError
from tilewise.kernels.ladder.model import LADDER
from tilewise.kernels.ladder.text import render_rung

SAMPLE = ("bool", "int8", "uint32", "int64", "float16", "float32", "complex64")
ALL = tuple(name for name in DTYPES if "long" not in name)


def numpy_dtype(name):
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def matrix(rng, shape, dtype, kind):
    values = rng.integers(0 if kind in "bu" else -9, 2 if kind == "b" else 9, shape)
    return (values + 1j * rng.integers(-5, 5, shape)).astype(dtype) if kind == "c" else values.astype(dtype)


def bits(array):
    """Half precision travels as bits."""
    return array.view(np.uint16) if array.dtype.itemsize == 2 and array.dtype.kind in "fV" else array


def run(kernel, algebra, aligned):
    rung = LADDER[kernel]
    tile = 2
    geometry = rung.geometry(tile, algebra)
    m, k, n = (4, 6, 8) if rung.whole_tiles_only else (7, 12, 8) if aligned else (5, 7, 9)
    rng = np.random.default_rng(3)
    element, result = numpy_dtype(algebra.element.name), numpy_dtype(algebra.result.name)
    M, N = matrix(rng, (m, k), element, algebra.element.kind), matrix(rng, (k, n), element, algebra.element.kind)
    P, expected = np.zeros((m, n), result), np.zeros((m, n), result)
    with np.errstate(all="ignore"):
        multiply(M, N, expected, algebra, tile, False)
    text = render_rung(kernel, algebra, tile, aligned=aligned)
    grid = (-(-n // geometry.cols), -(-m // geometry.rows))
    report = simt.launch(text, kernel, grid, geometry.block, [bits(M), bits(N), bits(P), m, k, n, k, n, n], checks=True)
    assert not report.findings, [str(f) for f in report.findings]
    if algebra.result.kind in "fc":
        wide = np.complex128 if algebra.result.kind == "c" else np.float64
        np.testing.assert_allclose(P.astype(wide), expected.astype(wide), rtol=1e-5)
    else:
        np.testing.assert_array_equal(P, expected)


def cases(dtypes, kernels):
    for kernel in kernels:
        for semiring in SEMIRINGS.values():
            for dtype in dtypes:
                try:
                    algebra = semiring.over(DTYPES[dtype])
                except DtypeError:
                    continue
                for aligned in (False, True) if kernel == "register_tiled" else (False,):
                    yield pytest.param(kernel, algebra, aligned, id=f"{kernel}-{semiring}-{dtype}-{aligned}")


@pytest.mark.drawn(10)
@pytest.mark.parametrize(
    ("kernel", "algebra", "aligned"),
    [
        *cases(SAMPLE, ("tiled_edges",)),
        *cases(("float32", "int8"), ("naive", "tiled", "coarsened")),
        *cases(("float32",), ("register_tiled",)),
    ],
)
def test_a_rung_in_an_algebra(kernel, algebra, aligned):
    run(kernel, algebra, aligned)


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "algebra", "aligned"), list(cases(ALL, LADDER)))
def test_every_rung_in_every_algebra(kernel, algebra, aligned):
    run(kernel, algebra, aligned)
