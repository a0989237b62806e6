"""float32 in parts, tf32 and 8-bit integers on Hopper's tensor cores, complex products: for compute-sanitizer
(`make sanitize`).

Exits 1 when a product is wrong.
"""

from __future__ import annotations

import sys

import numpy as np

import tilewise as tw
import tilewise.planning.choose as planning
from tilewise.backends.cuda.device import describe
from tilewise.kernels.wgmma_gemm.bf16x6.model import SplitConfig, SplitTile
from tilewise.kernels.wgmma_gemm.family import BF16x6, KMajor
from tilewise.kernels.wgmma_gemm.k_major.model import ACROSS, ACROSS_TILES, BY_CLASSES, KMajorConfig, KMajorTile

wrong = 0
TRANSPOSED = ("transposed", "transposed")
FROM_REGISTERS = (
    KMajorConfig(ACROSS_TILES[-1], ("transposed", ACROSS)),
    KMajorConfig(ACROSS_TILES[0], (BY_CLASSES, ACROSS)),
)
for m, k, n in ((129, 65, 257), (64, 520, 64), (5, 33, 300)) if describe("cuda:0").arch.startswith("sm_90") else ():
    rng = np.random.default_rng(m)
    M, N = (rng.integers(-9, 9, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    exact = M.astype(np.int32) @ N.astype(np.int32)
    for kernel, dtype, options, configs in (
        (
            "bf16x6",
            np.float32,
            {},
            (SplitConfig(SplitTile(192)), SplitConfig(SplitTile(72)), SplitConfig(SplitTile(64), 2)),
        ),
        ("k_major", np.float32, {"precision": "tf32"}, (KMajorConfig(KMajorTile(256, 2), TRANSPOSED), *FROM_REGISTERS)),
        ("k_major", np.int8, {"dtype": "int32"}, (KMajorConfig(KMajorTile(128), TRANSPOSED),)),
    ):
        for config in configs:
            BF16x6.best = KMajor.best = lambda family, problem, machine, kernel=None, config=config: (1e-9, config)
            planning._plan.cache_clear()
            with (
                tw.to_device(M.astype(dtype)) as Md,
                tw.to_device(N.astype(dtype)) as Nd,
                tw.matmul(Md, Nd, kernel=kernel, **options) as Pd,
            ):
                wrong += not np.array_equal(Pd.numpy(), exact)  # small integers: nothing is rounded
for shape in ((3, 200, 150), (200, 150, 3), (70, 60, 50)):  # complex: N expanded, M split, of P or its transpose
    rng = np.random.default_rng(shape[0])
    m, k, n = shape
    M, N = (rng.integers(-9, 9, x) + 1j * rng.integers(-9, 9, x) for x in ((m, k), (k, n)))
    for lies_m, lies_n in ((M, N), (M.T.copy().T, N), (M, N.T.copy().T), (M.T.copy().T, N.T.copy().T)):
        with tw.to_device(lies_m) as Md, tw.to_device(lies_n) as Nd, tw.matmul(Md, Nd) as Pd:
            wrong += not np.array_equal(Pd.numpy(), M @ N)
print(f"{wrong} wrong products")
sys.exit(bool(wrong))
