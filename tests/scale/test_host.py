"""Streaming through the host's memory: the same product, any dtype, algebra and order, within the budget."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import tilewise as tw
from operands import values
from oracle import assert_product
from tilewise.core.problem import problem_of_shape
from tilewise.scale import files, host
from tilewise.scale.schedule import make_schedule

DTYPES = ["float32", "float64", "float16", "bfloat16", "int32", "uint8", "bool", "complex64", "longdouble"]


@pytest.mark.drawn(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transposed", [False, True])
def test_any_dtype_and_order(dtype, transposed):
    M, N = values((233, 317), dtype, 1), values((317, 211), dtype, 2)
    M, N = (np.asfortranarray(x) if transposed else x for x in (M, N))
    assert_product(tw.matmul(M, N, memory=400_000), M, N, "plus_times")


@pytest.mark.parametrize("semiring", ["min_plus", "max_times", "lor_land", "logaddexp_plus"])
def test_any_algebra(semiring):
    M, N = values((300, 100), "float32", 3), values((100, 333), "float32", 4)
    assert_product(tw.matmul(M, N, semiring=semiring, memory=150_000), M, N, semiring)


def test_an_algebra_of_ones_own_and_a_tall_k():
    chance = tw.Semiring("best_chance", add=tw.maximum, mul=lambda x, y: x * y, zero=0)
    rng = np.random.default_rng(0)
    M, N = rng.random((30, 4000)), rng.random((4000, 40))
    P = tw.matmul(M, N, semiring=chance, memory=200_000)
    np.testing.assert_array_equal(P, (M[:, :, None] * N[None]).max(1))


@pytest.mark.parametrize("shape", [(0, 5, 7), (5, 0, 7), (5, 7, 0), (1, 1, 1)])
def test_nothing_to_do(shape):
    m, k, n = shape
    np.testing.assert_array_equal(tw.matmul(np.ones((m, k)), np.ones((k, n)), memory="10MB"), np.full((m, n), float(k)))
    assert (
        tw.matmul(np.ones((m, k)), np.ones((k, n)), memory="10MB", semiring="min_plus") == (2 if k else np.inf)
    ).all()


def test_out_and_strides():
    M, N = values((200, 300), "float64", 5)[::-1, ::2], values((300, 200), "float64", 6)[::2]
    out = np.empty((400, 200))[::2]
    assert tw.matmul(M, N, out=out, memory=200_000) is out
    assert_product(out, M, N, "plus_times")


def test_the_budget_is_kept():
    M, N = np.ones((2000, 1500), np.float32), np.ones((1500, 1800), np.float32)
    out = np.empty((2000, 1800), np.float32)
    tw.matmul(M, N, out=out, memory=3_000_000)  # compiles
    tracemalloc.start()
    tw.matmul(M, N, out=out, memory=3_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # the rate is measured on a product of 512³ first: its operands are let go before the tiles come
    assert peak < 3_000_000 + 6_000_000


def test_halves_are_rounded_once():
    M, N = np.full((64, 4096), 1, np.float16), np.full((4096, 64), 1e-4, np.float16)
    P = tw.matmul(M, N, memory=60_000)
    np.testing.assert_allclose(P.astype(np.float64), 4096 * float(np.float16(1e-4)), rtol=2**-11)


def test_memmaps_stream(tmp_path):
    A = values((300, 200), "float32", 7)
    np.save(tmp_path / "A.npy", A)
    mapped = np.load(tmp_path / "A.npy", mmap_mode="r")
    out = np.lib.format.open_memmap(tmp_path / "P.npy", "w+", np.float32, (300, 300))
    tw.matmul(mapped, mapped.T, out=out, memory=100_000)
    assert_product(np.load(tmp_path / "P.npy"), A, A.T, "plus_times")


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"memory": 100}, tw.OutOfMemoryError, "the least that works is"),
        ({"memory": "plenty"}, tw.UsageError, "no amount of memory"),
        ({"memory": "1MB", "return_arg": True, "semiring": "min_plus"}, tw.UsageError, "lie in memory whole"),
        ({"memory": "1MB", "kernel": "tiled"}, tw.UsageError, "lie in memory whole"),
        ({"memory": "1MB", "device": "simt"}, tw.UsageError, "device="),
        ({"memory": "1MB", "out": np.empty((3, 3))}, tw.ShapeError, "out is 3×3"),
    ],
)
def test_invalid_arguments_raise_one_sentence(how, error, message):
    with pytest.raises(error, match=message) as caught:
        tw.matmul(np.ones((400, 300)), np.ones((300, 200)), **how)
    assert "\n" not in str(caught.value)


def test_operands_that_do_not_meet_and_stacks_are_refused():
    with pytest.raises(tw.ShapeError, match="M is 4×3 and N is 4×3"):
        tw.matmul(np.ones((4, 3)), np.ones((4, 3)), memory="1MB")
    with pytest.raises(tw.ShapeError, match="M has 3 axes"):
        tw.matmul(np.ones((2, 4, 3)), np.ones((3, 4)), memory="1MB")


def test_an_out_that_is_an_operand_is_refused():
    W = np.ones((50, 50))
    with pytest.raises(tw.UsageError, match="overlaps"):
        tw.matmul(W, W, out=W, memory="1MB")


class TestZarr:
    zarr = pytest.importorskip("zarr")

    def made(self, array, chunks, **how):
        store = self.zarr.storage.MemoryStore()
        made = self.zarr.create_array(store, shape=array.shape, dtype=array.dtype, chunks=chunks)
        made[:] = array
        return self.zarr.open_array(store, **how) if how else made

    def test_operands_and_out(self):
        A, B = values((300, 200), "float32", 8), values((200, 150), "float32", 9)
        P = self.zarr.create_array(self.zarr.storage.MemoryStore(), shape=(300, 150), dtype="float32", chunks=(64, 40))
        assert tw.matmul(self.made(A, (100, 64)), self.made(B, (70, 70)), out=P, memory=300_000) is P
        assert_product(P[:], A, B, "plus_times")
        assert_product(tw.matmul(self.made(A, (100, 64)), B), A, B, "plus_times")

    def test_a_store_opened_read_only(self):
        A = values((30, 30), "float32", 10)
        with pytest.raises(tw.FileError, match="read-only: open it with mode='r\\+'"):
            tw.matmul(A, A, out=self.made(A, (10, 10), mode="r"))

    def test_an_out_that_does_not_fit(self):
        A = values((30, 30), "float32", 10)
        with pytest.raises(tw.ShapeError, match="out is 30×30, but the product is 30×20"):
            tw.matmul(A, A[:, :20], out=self.made(A, (10, 10)))
        with pytest.raises(tw.ShapeError, match="out has dtype float32, but the product has float64"):
            tw.matmul(A.astype("f8"), A.astype("f8"), out=self.made(A, (10, 10)))


@pytest.mark.parametrize("memory", [150_000_000, 400_000_000])
def test_tiles_do_not_follow_the_rate_of_the_moment(memory):
    """If they did, the order of sums and so the bits could differ between two runs."""
    problem = problem_of_shape(5000, 5000, 5000, "float32")
    levels = [replace(host.DISK, steps=steps) for steps in (1e9, 6e10, 9e10, 1e12)]
    assert len({make_schedule(problem, level, memory).tiles for level in levels}) > 1  # they would
    made = [host.host_schedule(problem, level, memory) for level in levels]
    assert len({(s.rows, s.cols, s.depth) for s in made}) == 1
    assert made[0].predicted > made[-1].predicted


def test_tiles_do_not_follow_what_was_compiled(monkeypatch):
    """Kernels found on disk, kernels compiled first, and a process that is large for another reason."""
    taken = []
    for pages in (26_000, 34_000, 90_000):
        monkeypatch.setattr(files, "memory_now", lambda pages=pages: pages * 4096)
        taken.append(files.resident())
    assert taken[0] == taken[1] < taken[2]
