"""Structured values on the CPU: steps a second of whole products, beside those of the step on registers alone.

`python docs/how/structured_speed.py [THREADS …]`: for structured.md; default one thread and two.
"""

import sys
import time

import numpy as np

import tilewise as tw
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cpu.kernels.structured.run import limit

rng = np.random.default_rng(0)
KINDS = ((tw.min_count, ("float32", "int32")), (tw.k_best(4), ("float32",) * 4))

for threads in map(int, sys.argv[1:] or ("1", "2")):
    tw.set_num_threads(threads)
    size = 512 if threads == 1 else 1024
    for ring, dtypes in KINDS:
        fields = np.sort(rng.integers(0, 9, (len(dtypes), size, size)), 0)
        M = tuple(x.astype(dtype) for x, dtype in zip(fields, dtypes, strict=True))
        algebra, took, most = ring.over([DTYPES[name] for name in dtypes]), float("inf"), 0.0
        for _ in range(6):
            start = time.perf_counter()
            tw.matmul(M, M, semiring=ring)
            took = min(took, time.perf_counter() - start)
            most = max(most, limit(algebra))
        rate = size**3 / took
        print(f"{ring}, {size}³, {threads} threads: {rate / 1e9:.2f} G steps/s, {rate / most:.2f} of {most / 1e9:.2f}")
