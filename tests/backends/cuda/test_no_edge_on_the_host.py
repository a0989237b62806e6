"""Integers' "no edge" on a card, with no card: every family that takes min_plus or max_plus, behind the compiler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import multiplied
from seeds import next_seed
from tilewise.algebra.dtypes import DTYPES
from tilewise.core.machine import KNOWN_CARDS
from tilewise.kernels.simt_gemm.tiled.configs import config_of
from weights import WEIGHED, by_hand, edges_of, weights

H200 = KNOWN_CARDS["h200"]
SMALL = replace(H200, units=2)  # so that small products fill it
pytestmark = [
    pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler"),
    pytest.mark.drawn(4),
]  # g++ compiles a kernel or two for each, 0.5 to 3 s; on a card all of them run


@pytest.fixture
def host(tmp_path_factory):
    """Where compiled kernels go."""
    return tmp_path_factory.getbasetemp()


def check(host, semiring, dtype, shape, kernel, machine=SMALL, *, arg=False, accumulate=False, transposed=False):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    m, k, n = shape
    edges, better = edges_of(semiring, dtype), min if semiring == "min_plus" else max
    M, N = weights(rng, (m, k), edges, 0.7, 0.05), weights(rng, (k, n), edges, 0.7, 0.05)
    M[0], N[:, -1] = edges.stored, edges.stored  # a row and a column that lead nowhere
    expected, won = by_hand(M, N, edges, better)
    P = rng.integers(edges.dtype.smallest(), edges.dtype.largest(), (m, n), dtype=M.dtype, endpoint=True)
    if accumulate:
        expected = (np.minimum if better is min else np.maximum)(P, expected)
    where = np.full((m, n), -7) if arg else None
    N = np.asfortranarray(N) if transposed else N
    plan = multiplied(M, N, tw.semirings[semiring], machine, P, host, kernel=kernel, where=where, accumulate=accumulate)
    np.testing.assert_array_equal(P, expected)
    if arg:
        np.testing.assert_array_equal(where, won)
    return plan


def first(cases, rest):
    """All of them, the rest only where there is time."""
    return [*cases, *(pytest.param(*case, marks=pytest.mark.slow) for case in rest)]


TILES = [("min_plus", "int32"), ("max_plus", "int16"), ("min_plus", "uint8")]


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("semiring", "dtype"), first(TILES, [case for case in WEIGHED if case not in TILES]))
def test_tiles_keep_it_apart(host, semiring, dtype):
    check(host, semiring, dtype, (40, 45, 33), "plain")


@pytest.mark.parametrize(
    ("kernel", "semiring", "dtype", "shape"),
    first(
        [
            ("cells", "min_plus", "int32", (9, 20, 13)),
            ("few_rows", "min_plus", "int32", (3, 90, 64)),
            ("tiled_edges", "max_plus", "int32", (9, 20, 13)),
        ],
        [
            *(("cells", *case, (9, 20, 13)) for case in WEIGHED),
            *(("few_rows", *case, (3, 90, 64)) for case in WEIGHED),
            *((rung, "min_plus", "int64", (32, 64, 32)) for rung in ("naive", "tiled", "coarsened", "register_tiled")),
        ],
    ),
)
def test_every_family_keeps_it_apart(host, kernel, semiring, dtype, shape):
    assert check(host, semiring, dtype, shape, kernel).kernel == kernel


@pytest.mark.parametrize(
    ("kernel", "dtype"), first([("plain", "int32")], [("plain", "uint16"), ("few_rows", "int32"), ("few_dots", "int8")])
)
def test_no_k_wins_where_no_path_is(host, kernel, dtype):
    shape = (40, 45, 33) if kernel == "plain" else (3, 600, 64)
    check(host, "min_plus", dtype, shape, kernel, arg=True, transposed=kernel == "few_dots")
    check(host, "min_plus", dtype, (6, 700, 64), None, H200, arg=True)  # k in pieces


@pytest.mark.parametrize("kernel", ["plain", pytest.param("cells", marks=pytest.mark.slow)])
def test_what_lay_in_p_stays_whatever_it_was(host, kernel):
    check(host, "min_plus", "int32", (40, 45, 33), kernel, accumulate=True)


def test_pieces_of_k_meet_with_it(host):
    assert "pieces" in check(host, "max_plus", "int32", (33, 900, 40), "plain", H200).why


@pytest.mark.parametrize(("semiring", "dtype"), WEIGHED)
def test_operands_are_packed_for_it_and_steps_stay_what_they_were(semiring, dtype):
    """A step reads a packed weight and adds it: "no edge" is looked for once a weight, never once a step."""
    from tilewise.kernels.simt_gemm.tiled.text import step_text

    algebra = tw.semirings[semiring].over(DTYPES[dtype])
    config, edges = config_of(algebra, H200), edges_of(semiring, dtype)
    assert config.packs
    step = next(line for line in step_text(algebra, config, False, False).splitlines() if " void step(" in line)
    assert "widen" not in step
    assert str(edges.internal) not in step
