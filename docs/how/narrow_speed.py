"""int8 and half precision on the CPU beside our float32 and beside torch, GFLOP/s: for benchmarks.md.

`python docs/how/narrow_speed.py [THREADS] [SEED]`: default one thread; fixed shapes, then six random ones.
"""

import math
import random
import sys
import time

import ml_dtypes
import numpy as np

import tilewise as tw

threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
tw.set_num_threads(threads)
KNOWN = ((512, 512, 512), (1000, 100, 1000), (100, 2000, 100), (16, 1024, 1024), (2000, 500, 8), (64, 64, 64))
KINDS = {"float32": np.float32, "int8": np.int8, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def drawn(rng):
    while True:
        shape = tuple(int(math.exp(rng.uniform(0, math.log(3000)))) for _ in range(3))
        if 1e6 <= math.prod(shape) <= 1e9:
            return shape


def best(work):
    """Least seconds of a call, over a quarter of a second."""
    work()
    took, end = [], time.perf_counter() + 0.25
    while len(took) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return min(took)


def torchs(M, N, name):
    try:
        import torch
    except ImportError:
        return math.nan
    torch.set_num_threads(threads)
    a, b = (torch.from_numpy(x.astype(np.float32)).to(getattr(torch, name)) for x in (M, N))
    if name == "int8":
        return best(lambda: torch._int_mm(a, b)) if M.shape[0] > 16 and N.shape[1] % 8 == 0 else math.nan
    return best(lambda: torch.mm(a, b))


rng, chance = random.Random(seed), np.random.default_rng(seed)
print(f"seed {seed}, {threads} threads: ours / torch's, GFLOP/s")
for m, k, n in (*KNOWN, *(drawn(rng) for _ in range(6))):
    row = []
    for name, dtype in KINDS.items():
        M, N = (chance.integers(-9, 9, shape).astype(dtype) for shape in ((m, k), (k, n)))
        given = {"dtype": "int32"} if name == "int8" else {}
        seconds = best(lambda M=M, N=N, given=given: tw.matmul(M, N, **given))
        row.append(f"{name} {2e-9 * m * k * n / seconds:.0f} / {2e-9 * m * k * n / torchs(M, N, name):.0f}")
    print(f"{m}x{k}x{n}: " + ", ".join(row), flush=True)
