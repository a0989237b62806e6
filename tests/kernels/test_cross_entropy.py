"""The kernel of linear_cross_entropy on the host: rows of odd length, words ignored, logits of every size."""

from __future__ import annotations

import ctypes
import shutil

import ml_dtypes
import numpy as np
import pytest

from host_card import run_recipe
from seeds import next_seed
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cuda.compile import compile_source
from tilewise.core.recipe import Address, Launch, Recipe
from tilewise.kernels.cross_entropy.text import THREADS, render_cross_entropy, render_scaled

pytestmark = pytest.mark.drawn(3)  # g++ or NVRTC compiles a kernel or two for each, 0.5 to 3 s

KINDS = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16}
IGNORED = -100


def launch(dtype, rows, stride, columns, gradient, kept):
    kind = DTYPES[dtype]
    given = (
        Address("M"), Address("N"), Address("P"), Address("scale_m"), ctypes.c_longlong(stride), ctypes.c_int(columns),
        ctypes.c_longlong(IGNORED), ctypes.c_int(gradient), ctypes.c_int(kept),
    )  # fmt: skip
    return Recipe(
        (Launch.of(render_cross_entropy(kind), "cross_entropy", (rows,), (THREADS,), given, 5000 * 4 * kept),)
    )


@pytest.mark.drawn(2)
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(("gradient", "kept"), [(True, True), (True, False), (False, False)])
def test_losses_and_gradients_of_rows(dtype, gradient, kept, tmp_path_factory):
    seed = next_seed() % 2**32
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
    scale = np.array([0.375], np.float32)
    at = {"M": room[start:].ctypes.data, "N": words.ctypes.data, "P": losses.ctypes.data, "scale_m": scale.ctypes.data}
    run_recipe(launch(dtype, len(words), stride, columns, gradient, kept), tmp_path_factory.mktemp("built"), **at)
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
    np.testing.assert_allclose(table.astype(np.float64), share * scale, rtol=1e-2, atol=1e-5)
    assert beyond.tobytes() == room[start + columns : start + stride].tobytes(), "nothing past a row is touched"


@pytest.mark.drawn(2)
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("each", [True, False])
def test_rows_that_start_anywhere_have_their_losses_and_a_gradient_on_lines(dtype, each, tmp_path_factory):
    seed = next_seed() % 2**32
    print("seed", seed)
    draw, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("built")
    columns, kind = int(draw.integers(4100, 5000)) | 1, KINDS[dtype]
    words = np.array([0, columns - 1, IGNORED, *draw.integers(columns, size=6)], np.int64)
    rows, lead = len(words), 5120
    room = draw.normal(0, 4, (rows, columns)).astype(kind)  # rows start on every remainder of 16 bytes
    counts = draw.normal(size=rows).astype(np.float32)
    losses, logsumexp = (np.full(rows, np.nan, np.float32) for _ in range(2))
    memory = np.full(rows * lead + 16, 7, kind)
    start = -(memory.ctypes.data // memory.itemsize) % (16 // memory.itemsize)
    made = memory[start : start + rows * lead].reshape(rows, lead)
    at = {"M": room.ctypes.data, "N": words.ctypes.data, "P": losses.ctypes.data, "bias": logsumexp.ctypes.data}
    text, tail = render_cross_entropy(DTYPES[dtype]), (ctypes.c_int(columns), ctypes.c_longlong(IGNORED))
    given = (*map(Address, at), ctypes.c_longlong(columns), *tail)
    run_recipe(Recipe((Launch.of(text, "cross_entropy_loss", (rows,), (THREADS,), given),)), folder, **at)
    at |= {"P": made.ctypes.data, "scale_m": counts.ctypes.data}
    given = (*map(Address, at), ctypes.c_longlong(columns), ctypes.c_longlong(lead), *tail, ctypes.c_int(each))
    run_recipe(Recipe((Launch.of(text, "cross_entropy_gradient", (rows,), (THREADS,), given),)), folder, **at)
    counts = counts if each else np.full_like(counts, counts[0])
    logits = room.astype(np.float64)
    lse = np.log(np.exp(logits).sum(1))
    np.testing.assert_allclose(logsumexp, lse, rtol=1e-5)
    exact = np.where(words == IGNORED, 0, lse - logits[np.arange(rows), words])
    np.testing.assert_allclose(losses, exact, rtol=1e-4, atol=1e-4)
    share = np.exp(logits - lse[:, None])
    share[np.arange(rows), words] -= 1
    share = np.where(words[:, None] == IGNORED, 0, share * counts[:, None])
    np.testing.assert_allclose(made[:, :columns].astype(np.float64), share, rtol=1e-2, atol=1e-5)
    assert (made[:, columns:].astype(np.float64) == 7).all(), "nothing past a row is touched"


@pytest.mark.drawn(1)
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("by", [1.0, 0.5])
def test_a_gradient_is_scaled_in_place_and_sums_are_rounded(dtype, by, tmp_path_factory):
    folder, count = tmp_path_factory.mktemp("built"), 8 * 1000 + 3
    memory = np.arange(count + 16).astype(KINDS[dtype])
    start = -(memory.ctypes.data // memory.itemsize) % (16 // memory.itemsize)
    x, before = memory[start : start + count], memory.astype(np.float64)
    factor, text = np.array([by], np.float32), render_scaled(DTYPES[dtype])
    at = {"M": x.ctypes.data, "scale_m": factor.ctypes.data}
    given = (*map(Address, at), ctypes.c_longlong(count))
    run_recipe(Recipe((Launch.of(text, "scaled", (3,), (THREADS,), given),)), folder, **at)
    before[start : start + count] *= by
    np.testing.assert_array_equal(memory.astype(np.float64), before)
    sums = np.random.default_rng(0).normal(size=count + 4).astype(np.float32)
    sums = sums[-(sums.ctypes.data // 4) % 4 :][:count]
    at = {"M": sums.ctypes.data, "P": x.ctypes.data}
    given = (*map(Address, at), ctypes.c_longlong(count))
    run_recipe(Recipe((Launch.of(text, "rounded", (3,), (THREADS,), given),)), folder, **at)
    np.testing.assert_array_equal(x, sums.astype(KINDS[dtype]))


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("dtype", "arch"), [("float32", "sm_90a"), ("float16", "sm_90a"), ("bfloat16", "sm_90a"), ("bfloat16", "sm_75")]
)
def test_every_dtype_compiles(dtype, arch):
    pytest.importorskip("cuda.core")
    assert compile_source(render_cross_entropy(DTYPES[dtype]), arch)
    assert compile_source(render_scaled(DTYPES[dtype]), arch)
