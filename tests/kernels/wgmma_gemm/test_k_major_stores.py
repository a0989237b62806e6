"""`k_major_stores.cuh` behind a C++ compiler: every sum of a tile arrives in P, nothing around P is touched."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from behind_a_compiler import COMPILER, built
from tilewise.kernels.shared.text import kernel_text

pytestmark = pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")

# The copy engine as a loop: boxes of 64 rows × 128 bytes, swizzled; it writes 16 bytes or none.
STUBS = """
struct Size { int m, k, n, splits; };
struct TensorMap { char* start; int rows, row_bytes; long long lead; };
static void barrier_sync(int, int) { __syncthreads(); }
static void fence_async_shared() {}
static void store_wait_read() {}
static void store_commit() {}
static void store_box(const TensorMap* map, const char* from, int x, int y) {
    for (int row = 0; row < 64 && y + row < map->rows; ++row)
        for (int piece = 0; piece < 8; ++piece) {
            int at = x * (int)sizeof(Result) + piece * 16;
            if (at < map->row_bytes)
                memcpy(map->start + (y + row) * map->lead + at, from + row * 128 + (piece ^ row % 8) * 16, 16);
        }
}
"""
KERNEL = """
extern "C" __global__ void stored(const Sum* given, Result* P, int m, int n, long long ldp, int top, int left, int onto)
{
    Sum sums[SUMS];
    for (int i = 0; i < SUMS; ++i) sums[i] = given[(int)threadIdx.x * SUMS + i];
    if (BOXED) {
        TensorMap map = {(char*)P, m, n * (int)sizeof(Result), ldp * (long long)sizeof(Result)};
        store_boxes(sums, (char*)memory, &map, 0, top, left);
    } else
        store_rows(sums, (Sum*)memory + threadIdx.x / 32 * 8 * HELD, P, ldp, Size{m, 1, n, 1}, top, left, onto);
}
"""
MIRRORED = """
extern "C" __global__ void mirrored(const Sum* given, Result* P, int m, long long ldp, int top, int left, int onto)
{
    Sum sums[SUMS];
    for (int i = 0; i < SUMS; ++i) sums[i] = given[(int)threadIdx.x * SUMS + i];
    store_columns(sums, P, ldp, m, top, left, onto);
}
"""
RESULTS = {  # P's C type, its NumPy type, what becomes of a sum: whole numbers up to 2¹¹ stay what they are in each
    4: ("float", np.float32, "return sum;", "return held;"),
    2: ("unsigned short", np.uint16, "return (Result)(int)sum;", "return (Sum)held;"),
    1: ("unsigned char", np.uint8, "return (Result)(int)sum;", "return (Sum)held;"),
}


def storer(folder, cols, size, boxed, pack, kernel=KERNEL, called="stored"):
    name, _, narrow, widen = RESULTS[size]
    defines = {"BLOCK_M": 64, "BLOCK_N": cols, "BOXED": int(boxed), "BOXES": 3 if cols <= 192 else 2, "PACK": pack}
    text = "\n".join(f"#define {key} {value}" for key, value in defines.items())
    text += f"\ntypedef float Sum;\ntypedef {name} Result;\n"
    text += f"static Result narrow(Sum sum) {{ {narrow} }}\nstatic Sum widen(Result held) {{ {widen} }}\n"
    return built(text + STUBS + kernel_text("wgmma_gemm/k_major/k_major_stores.cuh") + kernel, called, folder)


def given_to_threads(tile):
    """A tile of 64 rows as 128 threads hold it: two sums side by side, two eight rows below, eight columns on."""
    held = np.empty((128, tile.shape[1] // 2), np.float32)
    for thread in range(128):
        row, column = thread // 32 * 16 + thread % 32 // 4, thread % 4 * 2
        for i in range(held.shape[1]):
            held[thread, i] = tile[row + i // 2 % 2 * 8, column + i // 4 * 8 + i % 2]
    return held


def check(store, cols, size, m, n, extra, offset, onto=0):
    rng = np.random.default_rng(m * n)
    tile, kind = rng.integers(0, 100, (64, cols)).astype(np.float32), RESULTS[size][1]
    held = given_to_threads(tile)
    memory = np.full(64 * (n + extra + cols) + 256, 77, kind)
    start = offset + (-memory.ctypes.data % 256) // size
    for top, left in ((0, 0), (0, max(n - cols, 0) // 8 * 8)):
        P = memory[start : start + m * (n + extra)].reshape(m, n + extra)[:, :n]
        before = P.copy()
        arguments = (
            ctypes.c_void_p(held.ctypes.data),
            ctypes.c_void_p(P.ctypes.data),
            ctypes.c_int(m),
            ctypes.c_int(n),
        )
        store((1,), (128,), (*arguments, ctypes.c_longlong(n + extra), *map(ctypes.c_int, (top, left, onto))))
        high, wide = min(m, 64), min(cols, n - left)
        expected, part = before.copy(), np.s_[:high, left : left + wide]
        expected[part] = tile[:high, :wide].astype(kind) + onto * before[part]
        assert np.array_equal(P, expected)
        P[...] = 77
        assert (memory == 77).all(), "something was written outside P"


@pytest.mark.drawn(1)
@pytest.mark.parametrize("cols", [64, 208])
@pytest.mark.parametrize(("size", "pack"), [(4, 1), (2, 1), (2, 2), (1, 1)])
def test_rows_of_any_stride(tmp_path, size, pack, cols):
    store = storer(tmp_path, cols, size, False, pack)
    for m, n, extra, offset in ((64, cols, 0, 0), (64, 301, 0, 0), (7, 65, 2, 3), (1, 1, 0, 1), (33, 513, 1, 17)):
        if pack == 2:  # rows on 4 bytes
            extra, offset = extra + (n + extra) % 2, offset * 2
        check(store, cols, size, m, n, extra, offset)
    if pack == 1:
        check(store, cols, size, 33, 301, 3, 1, onto=1)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("cols", [176, 256])
@pytest.mark.parametrize("size", [4, 2])
def test_boxes_cover_a_tile_that_is_not_whole_boxes_wide(tmp_path, size, cols):
    store = storer(tmp_path, cols, size, True, 1)
    for m, n, extra in ((64, cols, 0), (64, 304, 0), (7, 64, 8), (1, 8, 0), (33, 512, 16)):
        check(store, cols, size, m, n, extra, 0)


@pytest.mark.parametrize("onto", [0, 1])
def test_a_tile_above_the_diagonal_is_stored_transposed(tmp_path, onto):
    """Its columns are rows of P, as far as they are inside; the rest of P stays."""
    store, rng = storer(tmp_path, 128, 4, False, 1, MIRRORED, "mirrored"), np.random.default_rng(0)
    tile = rng.integers(0, 100, (64, 128)).astype(np.float32)
    held = given_to_threads(tile)
    for m, top, left in ((256, 0, 128), (200, 64, 128), (301, 128, 256), (130, 0, 128)):
        P = rng.integers(0, 9, (m, m + 3)).astype(np.float32)
        wanted = P.copy()
        wide = min(128, m - left)
        part = np.s_[left : left + wide, top : top + 64]
        wanted[part] = tile[:, :wide].T + onto * wanted[part]
        places = ctypes.c_void_p(held.ctypes.data), ctypes.c_void_p(P.ctypes.data), ctypes.c_int(m)
        store((1,), (128,), (*places, ctypes.c_longlong(m + 3), *map(ctypes.c_int, (top, left, onto))))
        np.testing.assert_array_equal(P, wanted)
