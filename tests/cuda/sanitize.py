"""Every rung and every way of the tensor cores at small odd sizes, for compute-sanitizer: `make sanitize`.

Exits 1 when a product is wrong.
"""

from __future__ import annotations

import sys

import numpy as np

import tilewise as tw
import tilewise.planning as planning
import tilewise.tensor_tiles as tensor_tiles
from tilewise.engines.cuda.device import describe
from tilewise.problem import problem_of_shape
from tilewise.rungs import LADDER

wrong = 0
for kernel, rung in LADDER.items():
    for m, k, n in ((32, 32, 32), (1, 1, 1), (17, 33, 5), (3, 2, 31), (130, 19, 129)):
        if rung.whole_tiles_only and (m % 16 or k % 16 or n % 16):
            continue
        for semiring in ("plus_times", "min_plus"):
            rng = np.random.default_rng(m)
            M, N = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
            with (
                tw.to_device(M) as Md,
                tw.to_device(N) as Nd,
                tw.matmul(Md, Nd, kernel=kernel, tile=16, semiring=semiring) as Pd,
            ):
                wrong += not np.allclose(Pd.numpy(), tw.matmul(M, N, semiring=semiring), rtol=1e-4, atol=1e-4)
halves = ((129, 65, 257), (64, 520, 64), (513, 72, 120), (260, 40, 264))
for m, k, n in halves if describe("cuda:0").arch.startswith("sm_90") else ():
    rng = np.random.default_rng(m)
    M, N = (rng.standard_normal(shape, np.float32).astype(np.float16) for shape in ((m, k), (k, n)))
    exact = M.astype(np.float32) @ N.astype(np.float32)
    kinds = {}
    for way in tensor_tiles._ways(problem_of_shape(m, k, n, "float16"), describe("cuda:0")):
        key = (way.routes, way.tile.rows, way.tile.cluster, way.splits > 1, way.classes, way.edge_rows, way.edge_cols)
        kinds.setdefault(key, way)
    for way in kinds.values():
        planning.best_way = lambda problem, machine, way=way: (way, 1e-9)
        planning._plan.cache_clear()
        with tw.to_device(M) as Md, tw.to_device(N) as Nd, tw.matmul(Md, Nd, kernel="tensor_cores") as Pd:
            wrong += not np.allclose(Pd.numpy(), exact, rtol=1e-2, atol=0.3)
print(f"{wrong} wrong products")
sys.exit(bool(wrong))
