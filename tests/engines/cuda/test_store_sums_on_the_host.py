"""`store_sums.cuh` behind a C++ compiler: every sum of a tile arrives in P, or is added there, nothing beside it."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from behind_a_compiler import COMPILER, built
from tilewise.kernels.render import kernel_text

pytestmark = pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")

# The copy engine as a loop: boxes of 64 rows × 128 bytes, swizzled. It reads a box as late as it may.
STUBS = """
#include <deque>
struct TensorMap { float* start; int rows, cols; long long lead; };
struct Box { const TensorMap* map; const char* from; int x, y, add; };
static std::deque<Box> waiting;
static void meet(int, int) { __syncthreads(); }
static void publish_shared() {}
static void store_commit() {}
static void store_box(const TensorMap* map, const char* from, int x, int y) { waiting.push_back({map, from, x, y, 0}); }
static void add_box(const TensorMap* map, const char* from, int x, int y) { waiting.push_back({map, from, x, y, 1}); }
template <int LATER> static void store_read_before() {
    for (; (int)waiting.size() > LATER; waiting.pop_front()) {
        Box box = waiting.front();
        for (int row = 0; row < 64 && box.y + row < box.map->rows; ++row)
            for (int col = 0; col < 32 && box.x + col < box.map->cols; ++col) {
                float* to = box.map->start + (box.y + row) * box.map->lead + box.x + col;
                const char* from = box.from + row * 128 + (col / 4 ^ row % 8) * 16 + col % 4 * 4;
                *to = (box.add ? *to : 0) + *(const float*)from;
            }
    }
}
"""
KERNEL = """
extern "C" __global__ void stored(const float* given, float* P, int m, int n, long long ldp, int top, int left)
{
    float sums[SUMS];
    for (int i = 0; i < SUMS; ++i) sums[i] = given[(int)threadIdx.x * SUMS + i];
    TensorMap map = {P, m, n, ldp};
    store_sums(sums, (char*)memory, &map, 0, top, left);
    if (threadIdx.x == 0) store_read_before<0>();
    __syncthreads();
}
"""


def storer(folder, cols, accumulate):
    defines = {"BLOCK_N": cols, "SUMS": cols // 2, "BOXES": 1 if cols < 128 else 2, "ACCUMULATE": int(accumulate)}
    defines |= {"ROW_BYTES": 128, "BOX_BYTES": 8192}
    text = "\n".join(f"#define {key} {value}" for key, value in defines.items())
    return built(text + STUBS + kernel_text("hopper/store_sums.cuh") + KERNEL, "stored", folder)


def given_to_threads(tile):
    """A tile of 64 rows as 128 threads hold it: two sums side by side, two eight rows below, eight columns on."""
    held = np.empty((128, tile.shape[1] // 2), np.float32)
    for thread in range(128):
        row, column = thread // 32 * 16 + thread % 32 // 4, thread % 4 * 2
        for i in range(held.shape[1]):
            held[thread, i] = tile[row + i // 2 % 2 * 8, column + i // 4 * 8 + i % 2]
    return held


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("cols", [64, 192])
def test_every_sum_arrives(tmp_path, cols, accumulate):
    store, rng = storer(tmp_path, cols, accumulate), np.random.default_rng(cols)
    tile = rng.integers(0, 100, (64, cols)).astype(np.float32)
    held = given_to_threads(tile)
    for m, n, extra in ((64, cols, 0), (64, 304, 16), (7, 40, 8), (100, 512, 0)):
        P = rng.integers(0, 100, (m, n + extra)).astype(np.float32)
        for top, left in ((0, 0), (m // 64 * 64, n // cols * cols)):
            expected, part = P.copy(), np.s_[top : min(top + 64, m), left : min(left + cols, n)]
            high, wide = expected[part].shape
            expected[part] = tile[:high, :wide] + accumulate * expected[part]
            addresses = (ctypes.c_void_p(held.ctypes.data), ctypes.c_void_p(P.ctypes.data), m, n)
            store((1,), (128,), (*addresses, ctypes.c_longlong(n + extra), top, left))
            assert np.array_equal(P, expected)
