"""Structured values by the plain kernel with no card: structures as integers, behind the C++ compiler."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import put_on_the_host
from seeds import next_seed
from structured_values import NAMES, RINGS, algebra_of, assert_same, drawn, expected
from tilewise.algebra.dtypes import DTYPES
from tilewise.arrays.numpy_library import NUMPY
from tilewise.backends.cuda.compile import compile_source
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.shapes import product_shape
from tilewise.dispatch.structured import card
from tilewise.kernels.simt_gemm.tiled.structured import render, structured_plan
from tilewise.kernels.simt_gemm.tiled.tiles import TILES

pytestmark = pytest.mark.drawn(2)  # g++ compiles a kernel or two for each, 0.5 to 3 s; on a card all of them run

needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
FIRST = ("min_count-float32-int32", "4_best-float32-float32-float32-float32")


@pytest.fixture
def host(monkeypatch, tmp_path_factory):
    launcher = put_on_the_host(monkeypatch, tmp_path_factory.getbasetemp())

    @contextmanager
    def scratch(nbytes, library, device, stream):
        memory = np.full(nbytes + 1024, 0xFF, np.uint8)
        yield -(-memory.ctypes.data // 1024) * 1024

    monkeypatch.setattr(card, "recipe_launcher", lambda recipe, device: launcher(recipe, device))
    monkeypatch.setattr(card, "scratch", scratch)
    monkeypatch.setattr(card, "describe", lambda device: KNOWN_CARDS["h200"])


@pytest.mark.drawn(1)
@needs_compiler
@pytest.mark.parametrize(
    ("ring", "dtypes"),
    [
        pytest.param(*case, id=name, marks=() if name in FIRST else pytest.mark.slow)
        for case, name in zip(RINGS, NAMES, strict=True)
    ],
)
def test_products_are_right(host, ring, dtypes):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for m, k, n in ((1, 1, 1), (37, 21, 45)):
        M, N = drawn(rng, ring, dtypes, (m, k)), drawn(rng, ring, dtypes, (k, n))
        lying = [NUMPY.operand(np.asfortranarray(x), "M") for x in M], [NUMPY.operand(y[::-1], "N") for y in N]
        made = card.multiply_on_card(algebra_of(ring, dtypes), *lying, product_shape((m, k), (k, n)))
        assert_same(made, expected(ring, dtypes, M, tuple(y[::-1] for y in N)))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("arch", ["sm_90", pytest.param("sm_75", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("ring", "dtypes"), [RINGS[1], RINGS[3]], ids=FIRST)
def test_every_tile_compiles(ring, dtypes, arch, tmp_path):
    from tilewise.system.cache import DiskCache

    for tile in TILES[2 if len(dtypes) == 2 else 4]:
        made = compile_source(render(algebra_of(ring, dtypes), tile), arch, DiskCache("cubin", tmp_path))
        assert made[:4] == b"\x7fELF"


def test_a_value_too_large_for_a_card_is_refused():
    algebra = tw.k_best(4).over([DTYPES["float64"]] * 4)
    plan = structured_plan(algebra, KNOWN_CARDS["h200"], 8, 8, 8)
    with pytest.raises(tw.DtypeError, match=r"values of 32 bytes .* a card takes up to 16"):
        _ = plan.recipe
