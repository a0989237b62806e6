"""`k_across_columns.cuh` behind a C++ compiler: every thread gets the elements of N that wgmma wants of it, from lines
that start anywhere, and its sums arrive in P."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest

from behind_a_compiler import COMPILER, built
from tilewise.algebra.dtypes import DTYPES
from tilewise.core.problem import Layout
from tilewise.core.recipe import Address
from tilewise.kernels.shared.placed import Placed
from tilewise.kernels.shared.text import kernel_text
from tilewise.kernels.wgmma_gemm.k_major.model import ACROSS, TRANSPOSED, AcrossTile, KMajorConfig
from tilewise.kernels.wgmma_gemm.k_major.recipe import maps_of_n
from tilewise.kernels.wgmma_gemm.k_major.text import SPARE

pytestmark = pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")

# The copy engine as a loop: boxes of any width, 0 outside; all blocks of a cluster are this one.
STUBS = """
typedef unsigned long long Barrier;
struct TensorMap { const char* start; long long lines, length, lead, box, box_lines; };
static int rank_now;
static int cluster_rank() { return rank_now; }
static void barrier_sync(int, int) { __syncthreads(); }
static void fence_async_shared() {}
template <int pending> static void store_wait_read() {}
static void store_commit() {}
static void copy_box(char* to, const TensorMap* map, Barrier*, int x, int y) {
    for (int line = 0; line < map->box_lines; ++line)
        for (int i = 0; i < map->box; ++i) {
            bool inside = y + line >= 0 && y + line < map->lines && x + i >= 0 && x + i < map->length;
            const float* from = (const float*)(map->start + (y + line) * map->lead) + x + i;
            ((float*)to)[line * map->box + i] = inside ? *from : 0.0f;
        }
}
static void copy_box_multicast(char* to, const TensorMap* map, Barrier* full, int x, int y, unsigned short) {
    copy_box(to, map, full, x, y);
}
"""
STUBS += """
static void store_box(const TensorMap* map, const void* from, int x, int y) {
    for (int line = 0; line < map->box_lines && y + line < map->lines; ++line)
        for (int i = 0; i < 32 && x + i < map->length; ++i)
            ((float*)(map->start + (y + line) * map->lead))[x + i] =
                ((const float*)from)[line * 32 + (i ^ line % 8 * 4)];
}
"""
KERNELS = """
extern "C" __global__ void loaded(
    const MapsOfN* maps, const int* misalignments, unsigned* given, int k, int early, int left)
{
    char* stage = (char*)memory;
    if (threadIdx.x == 0)
        for (rank_now = 0; rank_now < (BESIDE ? 1 : CLUSTER); ++rank_now) load_n(stage, *maps, 0, k, early, left);
    __syncthreads();
    if (threadIdx.x < 128) return;
    unsigned words[16];
    load_words(words, first_word(stage, misalignments, early));
    for (int i = 0; i < 16; ++i) given[((int)threadIdx.x - 128) * 16 + i] = words[i];
}
extern "C" __global__ void stored(const float* given, float* P, long long ldp, int rows, int columns)
{
    if (threadIdx.x < 128) return;
    float sums[SUMS];
    int filled = 0;
    for (int i = 0; i < SUMS; ++i) sums[i] = given[((int)threadIdx.x - 128) * SUMS + i];
    TensorMap map = {(const char*)P, rows, columns, ldp * 4, 32, STAGED_ROWS};
    for (int twice = 0; twice < 2; ++twice)
        if (BOXED)
            store_boxes(sums, (float*)memory, filled, &map, 0, 0, rows);
        else
            store_transposed(sums, (float*)memory, filled, P, ldp, rows, columns);
}
"""


def text_of(tile, apart, onto=False, boxed=False):
    defines = {"BLOCK_M": tile.rows, "BLOCK_N": tile.cols, "CLUSTER": tile.cluster, "BESIDE": int(tile.beside)}
    defines |= {"APART": int(apart), "ONTO": int(onto), "BOXED": int(boxed), "ALONG": 0, "FIRST_GROUP": 1}
    defines |= {"PITCH": 4 * (tile.cols + SPARE[apart]), "BOX_BYTES": 32 * (tile.cols + SPARE[apart])}
    text = "\n".join(f"#define {name} {value}" for name, value in defines.items())
    files = "wgmma_gemm/register_lines.cuh", "wgmma_gemm/k_major/k_across_columns.cuh"
    return text + STUBS + "".join(map(kernel_text, files)) + KERNELS


def of_thread(thread):
    """(line of 64, k of 8) of each of four registers that a thread gives wgmma on its left, as PTX has it for tf32."""
    row, k = thread // 32 * 16 + thread % 32 // 4, thread % 4
    return [(row + i % 2 * 8, k + i // 2 * 4) for i in range(4)]


def columns_of(apart, column_in_64):
    """Which column of N line `column_in_64` of wgmma's left operand stands for."""
    warp, row = divmod(column_in_64, 16)
    return row // 8 * 32 + row % 8 * 4 + warp if apart else column_in_64


@pytest.mark.drawn(2)
@pytest.mark.parametrize("leads", [(149, 150, 151), (152,)], ids=["rows apart", "rows alike"])
@pytest.mark.parametrize("tile", [AcrossTile(rows=64), AcrossTile(rows=64, cluster=2)], ids=["alone", "in clusters"])
def test_every_thread_gets_its_own_elements_of_N(tmp_path, leads, tile):
    k, n, apart = 45, 149, len(leads) > 1
    rng, load = np.random.default_rng(0), built(text_of(tile, apart), "loaded", tmp_path)
    wanted = [of_thread(thread % 128)[i % 4] for thread in range(256) for i in range(16)]
    rows, columns = np.empty((256, 16), int), np.empty((256, 16), int)
    rows.flat = [i % 16 // 4 * 8 + of_k for i, (_, of_k) in enumerate(wanted)]
    columns.flat = [i // 2048 * 64 + columns_of(apart, line) for i, (line, _) in enumerate(wanted)]
    for lead, offset, early, (first, left) in itertools.product(leads, range(4), (0, 1, 3), ((0, 0), (32, 128))):
        memory = np.full(k * lead + 64, np.nan, np.float32)
        start = (-memory.ctypes.data % 16) // 4 + offset
        N = memory[start : start + k * lead].reshape(k, lead)[:, :n]
        N[...] = rng.standard_normal((k, n), np.float32)
        placed = Placed(
            Address("N", N.ctypes.data - N.ctypes.data % 16, N.ctypes.data % 16),
            DTYPES["float32"],
            k,
            n,
            Layout(lead, 1),
        )
        made, misalignments = maps_of_n(placed, KMajorConfig(tile, (TRANSPOSED, ACROSS)), ())
        assert all(x.address % 16 == x.lead % 16 == x.box * 4 % 16 == 0 for x in made)
        maps = [
            (x.address.offset + x.address.misalignment, x.lines, x.length, x.lead, x.box, x.box_lines) for x in made
        ]
        described, distances, given = (
            np.array(maps, np.int64),
            np.array(misalignments, np.int32),
            np.zeros((256, 16), np.float32),
        )
        pointers = (ctypes.c_void_p(x.ctypes.data) for x in (described, distances, given))
        load((1,), (384,), (*pointers, *map(ctypes.c_int, (first, early, left))))
        padded = np.zeros((64 + k + 64, n + 256), np.float32)  # the copy engine fills with 0
        padded[64 : 64 + k, :n] = N
        assert np.array_equal(given, padded[64 + first - early + rows, left + columns])


PLACES = ((64, 128, 131, 1), (7, 200, 203, 0), (70, 5, 8, 3), (17, 128, 128, 0))  # rows and columns of P, lead, offset


@pytest.mark.drawn(1)
@pytest.mark.parametrize("high", [48, 64])
@pytest.mark.parametrize("apart", [True, False])
def test_sums_arrive_in_P_and_nothing_around_it_is_touched(tmp_path, apart, high):
    rng = np.random.default_rng(7)
    tile = rng.integers(0, 1000, (high, 128)).astype(np.float32)  # of P
    held = np.empty((256, high // 2), np.float32)
    for thread, i in itertools.product(range(256), range(high // 2)):
        line = thread % 128 // 32 * 16 + thread % 32 // 4 + i // 2 % 2 * 8
        held[thread, i] = tile[i // 4 * 8 + thread % 4 * 2 + i % 2, thread // 128 * 64 + columns_of(apart, line)]
    for onto, boxed in ((False, False), (True, False), (False, True)):
        store = built(text_of(AcrossTile(rows=high), apart, onto, boxed), "stored", tmp_path)
        for rows, columns, lead, offset in PLACES:
            memory = np.full(80 * lead + 256, 77, np.float32)
            P = memory[offset : offset + rows * lead].reshape(rows, lead)
            arguments = (ctypes.c_void_p(held.ctypes.data), ctypes.c_void_p(P.ctypes.data), ctypes.c_longlong(lead))
            store((1,), (384,), (*arguments, ctypes.c_int(rows), ctypes.c_int(columns)))
            inside = np.s_[: min(rows, high), : min(columns, 128)]
            expected = tile[inside] * (2 if onto else 1) + (77 if onto else 0)  # stored twice, one after the other
            assert np.array_equal(P[inside], expected)
            P[inside] = 77
            assert (memory == 77).all(), "something was written outside P"
