"""`reproducible="everywhere"` on the CPU beside the default, as ratios of speed: for same-bits.md.

`python docs/how/same_bits_speed.py [THREADS] [SEED]`: fixed shapes, then twenty random ones with k up to 32 times the
larger side. `--error`: the error of chains of 512 and of one chain, for numbers from 0 to 1.
"""

import math
import random
import sys
import time

import numpy as np

import tilewise as tw

KNOWN = ((64, 64, 64), (128, 128, 128), (512, 512, 512), (1500, 1500, 1500), (2000, 64, 2000), (256, 8192, 256))


def error(chain):
    x, y = np.random.default_rng(1).random((2, 200, 16384)).astype(np.float32)
    want, total = (x.astype(np.float64) * y).sum(1), np.zeros(200, np.float32)
    for begin in range(0, 16384, chain):
        part = np.zeros(200, np.float32)
        for k in range(begin, min(begin + chain, 16384)):
            part = (part + x[:, k].astype(np.float64) * y[:, k]).astype(np.float32)
        total += part
    return float(np.sqrt(((total - want) ** 2).mean() / (want**2).mean()))


def drawn(rng):
    while True:
        m, n = (int(math.exp(rng.uniform(math.log(64), math.log(3000)))) for _ in "mn")
        k = int(math.exp(rng.uniform(math.log(8), math.log(32 * max(m, n)))))
        if 1e5 <= m * n * k <= 1e9:
            return m, k, n


def ratio(m, k, n, dtype, chance):
    """Least seconds of either call, taken in turn, over half a second."""
    M, N = (chance.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
    P, took, end = np.empty((m, n), dtype), ([], []), time.perf_counter() + 0.5
    calls = ({"out": P, "precision": "high"}, {"out": P, "reproducible": "everywhere"})
    for how in calls:
        tw.matmul(M, N, **how)
    while len(took[1]) < 5 or time.perf_counter() < end:
        for times, how in zip(took, calls, strict=True):
            start = time.perf_counter()
            tw.matmul(M, N, **how)
            times.append(time.perf_counter() - start)
    return min(took[0]) / min(took[1])


if "--error" in sys.argv:
    print(f"chains of 512: {error(512):.1e}, one chain: {error(16384):.1e}")
    sys.exit()
threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
tw.set_num_threads(threads)
rng, chance = random.Random(seed), np.random.default_rng(seed)
print(f"seed {seed}, {threads} threads: speed beside the default")
for dtype in (np.float32, np.float64):
    found = []
    for shape in (*KNOWN, *(drawn(rng) for _ in range(20))):
        found.append(ratio(*shape, dtype, chance))
        print(f"{dtype.__name__} {'x'.join(map(str, shape))}: {found[-1]:.2f}", flush=True)
    mean = math.exp(sum(map(math.log, found)) / len(found))
    print(f"{dtype.__name__}: mean {mean:.2f}, lowest {min(found):.2f}, below 0.9: {sum(x < 0.9 for x in found)}")
