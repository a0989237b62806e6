"""Arrays whose memory another object owns take prepared calls, as NumPy's own do: from torch, bytes, pickles, files."""

from __future__ import annotations

import mmap
import pickle

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import tilewise as tw
from tilewise import api

VALUES = np.arange(48.0).reshape(6, 8)


def from_file(tmp_path, mode):
    np.save(tmp_path / "M.npy", VALUES)
    return np.load(tmp_path / "M.npy", mmap_mode=mode)


def shared(_tmp_path):
    memory = mmap.mmap(-1, VALUES.nbytes)
    memory[:] = VALUES.tobytes()
    return np.frombuffer(memory).reshape(VALUES.shape)


KINDS = {
    "bytes": lambda _: np.frombuffer(bytearray(VALUES.tobytes())).reshape(6, 8),
    "pickle": lambda _: pickle.loads(pickle.dumps(VALUES, protocol=5)),
    "shared memory": shared,
    "mapped file": lambda path: from_file(path, "c"),
    "view of a mapped file": lambda path: np.asarray(from_file(path, "c"))[::-1],
    "windows": lambda _: sliding_window_view(VALUES.ravel(), 8)[::8],
    "DLPack": lambda _: np.from_dlpack(VALUES.copy()),
}  # fmt: skip


@pytest.fixture
def only_prepared(monkeypatch):
    """What fails a call that is not prepared, from when it is called."""

    def refuse(*_):
        raise AssertionError("not a prepared call")

    return lambda: monkeypatch.setattr(api, "first_call", refuse)


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_call_is_prepared(kind, tmp_path, only_prepared):
    M, own = KINDS[kind](tmp_path), np.arange(24.0).reshape(8, 3)
    before = [tw.matmul(M, own), tw.matmul(own.T, M.T), tw.matmul(M, own, semiring="min_plus")]
    only_prepared()
    after = [tw.matmul(M, own), tw.matmul(own.T, M.T), tw.matmul(M, own, semiring="min_plus")]
    for x, y in zip(before, after, strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(after[0], np.array(M) @ own)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_not_seen_before(kind, tmp_path):
    M = KINDS[kind](tmp_path)
    for rows in range(1, 6):
        N = np.arange(8.0 * rows).reshape(8, rows)
        for x in (M[:rows], M[rows - 1 :: 2]):
            np.testing.assert_array_equal(tw.matmul(x, N), np.array(x) @ N)
            np.testing.assert_array_equal(tw.matmul(x, N[:, 0]), np.array(x) @ N[:, 0])
            out = np.zeros((len(x), rows))
            np.testing.assert_array_equal(tw.matmul(x, N, out=out), np.array(x) @ N)


@pytest.mark.parametrize("kind", ["bytes", "shared memory", "mapped file"])
def test_out_is_written_by_a_prepared_call(kind, tmp_path, only_prepared):
    out, M = KINDS[kind](tmp_path), np.ones((6, 5))
    N = np.arange(40.0).reshape(5, 8)
    tw.matmul(M, N, out=out)
    out[:] = -1
    only_prepared()
    assert tw.matmul(M, N, out=out) is out
    np.testing.assert_array_equal(out, M @ N)


def test_an_operand_that_out_overlaps_is_no_prepared_call():
    memory = bytearray(3 * 8 * 8)
    M, out = (np.frombuffer(memory, np.float64, 16, offset).reshape(4, 4) for offset in (0, 64))
    M[:] = np.arange(16.0).reshape(4, 4)
    N = np.eye(4)[::-1].copy()
    for _ in range(3):
        M[:] = np.arange(16.0).reshape(4, 4)
        expected = M @ N
        tw.matmul(M, N, out=out)
        np.testing.assert_array_equal(out, expected)
