"""The tiled kernel of the course in Numba's CUDA simulator: prints the fastest of some runs, in seconds.

Run by test_speed.py in a process of its own, since the simulator is chosen when Numba is imported.
"""

from __future__ import annotations

import os
import sys
import time

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
from numba import cuda, float32

TILE = 16


@cuda.jit
def tiled_edges(M, N, P, width):
    Mds = cuda.shared.array((TILE, TILE), float32)
    Nds = cuda.shared.array((TILE, TILE), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    total = float32(0)
    for phase in range((width + TILE - 1) // TILE):
        at = phase * TILE
        Mds[ty, tx] = M[row, at + tx] if row < width and at + tx < width else 0
        Nds[ty, tx] = N[at + ty, col] if at + ty < width and col < width else 0
        cuda.syncthreads()
        for i in range(TILE):
            total += Mds[ty, i] * Nds[i, tx]
        cuda.syncthreads()
    if row < width and col < width:
        P[row, col] = total


def main(width, tries):
    rng = np.random.default_rng(0)
    M, N = (rng.integers(-9, 9, (width, width)).astype(np.float32) for _ in range(2))
    blocks, times = -(-width // TILE), []
    for _ in range(tries):
        P = np.zeros((width, width), np.float32)
        start = time.perf_counter()
        tiled_edges[(blocks, blocks), (TILE, TILE)](M, N, P, width)
        times.append(time.perf_counter() - start)
        assert np.array_equal(P, M @ N)
    print(min(times))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
