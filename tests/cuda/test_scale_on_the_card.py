"""Streaming through a real card: products of any dtype, algebra and order, within budgets far below the operands."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from operands import values
from oracle import assert_product

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize(
    ("dtype", "semiring", "shape"),
    [
        ("float32", "plus_times", (1001, 2003, 777)),
        ("bfloat16", "plus_times", (1001, 2003, 777)),
        ("float16", "plus_times", (3000, 1500, 2100)),
        ("float64", "plus_times", (501, 903, 402)),
        ("float32", "min_plus", (700, 900, 801)),
        ("bfloat16", "min_plus", (501, 700, 402)),
        ("int64", "plus_times", (501, 300, 402)),
        ("bool", "lor_land", (600, 700, 500)),
        ("complex64", "plus_times", (301, 500, 402)),
    ],
)
@pytest.mark.parametrize("transposed", [False, True])
def test_products_stream(dtype, semiring, shape, transposed):
    m, k, n = shape
    M, N = values((m, k), dtype, 1), values((k, n), dtype, 2)
    M, N = (np.asfortranarray(x) if transposed else x for x in (M, N))
    P = tw.matmul(M, N, semiring=semiring, device="cuda", memory=max(1_000_000, (M.nbytes + N.nbytes) // 3))
    assert_product(P[:, :50], M, N[:, :50], semiring)
    assert_product(P[-40:], M[-40:], N, semiring)


def test_halves_are_rounded_once():
    M, N = np.full((256, 8192), 1, np.float16), np.full((8192, 256), 1e-4, np.float16)
    P = tw.matmul(M, N, device="cuda", memory=1_000_000)
    np.testing.assert_allclose(P.astype(np.float64), 8192 * float(np.float16(1e-4)), rtol=2**-11)


def test_files_by_way_of_the_card(tmp_path):
    from tilewise.cli.main import run

    A = values((900, 700), "float32", 3)
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "B.npy", A.T)
    files = [str(tmp_path / f) for f in ("A.npy", "B.npy")]
    assert run(["multiply", *files, "-o", str(tmp_path / "C.npy"), "--memory", "2MB", "--device", "cuda"]) == 0
    assert_product(np.load(tmp_path / "C.npy")[:, :60], A, A.T[:, :60], "plus_times")


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_pinned_pages_and_large_tiles(dtype, monkeypatch):
    from tilewise.scale import card, pinning

    monkeypatch.setattr(pinning, "WORTH", 1)
    monkeypatch.setattr(pinning.Pages.__init__, "__defaults__", (1.0, 2**20))
    monkeypatch.setattr(card, "SLOT_RATE", 0.0)
    M, N = values((9000, 16000), dtype, 5), values((16000, 9100), dtype, 6)
    P = tw.matmul(M, N, device="cuda", memory=220_000_000)
    assert_product(P[:, ::900], M, N[:, ::900], "plus_times")
    assert_product(P[::900], M[::900], N, "plus_times")
