"""The kernel of linear_cross_entropy on the host: rows of odd length, words ignored, logits of every size."""

from __future__ import annotations

import ctypes
import shutil

import ml_dtypes
import numpy as np
import pytest

from host_card import run_recipe
from tilewise.algebra.dtypes import DTYPES
from tilewise.engines.cuda.compile import compile_source
from tilewise.kernels.cross_entropy.text import THREADS, render_cross_entropy
from tilewise.recipe import Address, Launch, Recipe

KINDS = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16}
IGNORED = -100


def launch(dtype, rows, stride, columns, gradient):
    given = (
        Address("M"), Address("N"), Address("P"), ctypes.c_longlong(stride), ctypes.c_int(columns),
        ctypes.c_longlong(IGNORED), ctypes.c_int(gradient),
    )  # fmt: skip
    return Recipe((Launch.of(render_cross_entropy(DTYPES[dtype]), "cross_entropy", (rows,), (THREADS,), given),))


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("gradient", [True, False])
def test_losses_and_gradients_of_rows(dtype, gradient, tmp_path_factory):
    seed = np.random.SeedSequence().entropy % 2**32
    print("seed", seed)
    draw = np.random.default_rng(seed)
    columns, stride = int(draw.integers(4100, 5000)) | 1, 5120
    words = np.array([0, columns - 1, int(draw.integers(columns)), IGNORED], np.int64)
    memory = draw.normal(0, 4, len(words) * stride + 16)
    memory[2 * stride : 2 * stride + columns] = -np.inf  # a row that is decided: one word has everything
    memory[2 * stride + words[2]] = 3
    room = memory.astype(KINDS[dtype])
    start = -(room.ctypes.data // room.itemsize) % (16 // room.itemsize)
    table = np.lib.stride_tricks.as_strided(
        room[start:], (len(words), columns), (stride * room.itemsize, room.itemsize)
    )
    logits, beyond = table.astype(np.float64), room[start + columns : start + stride].copy()
    losses = np.full(len(words), np.nan, np.float32)
    at = {"M": room[start:].ctypes.data, "N": words.ctypes.data, "P": losses.ctypes.data}
    run_recipe(launch(dtype, len(words), stride, columns, gradient), tmp_path_factory.mktemp("built"), **at)
    top = logits.max(1, keepdims=True)
    lse = top + np.log(np.exp(logits - top).sum(1, keepdims=True))
    exact = np.where(words == IGNORED, 0, lse[:, 0] - logits[np.arange(len(words)), words])
    np.testing.assert_allclose(losses, exact, rtol=1e-4, atol=1e-4)
    if not gradient:
        np.testing.assert_array_equal(table.astype(np.float64), logits)
        return
    share = np.exp(logits - lse)
    share[np.arange(len(words)), words] -= 1
    share[words == IGNORED] = 0
    np.testing.assert_allclose(table.astype(np.float64), share, rtol=1e-2, atol=1e-5)
    assert beyond.tobytes() == room[start + columns : start + stride].tobytes(), "nothing past a row is touched"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_every_dtype_compiles(dtype):
    pytest.importorskip("cuda.core")
    assert compile_source(render_cross_entropy(DTYPES[dtype]), "sm_90a")
