"""The first product: two matrices in, their product out, and what ran."""

import numpy as np

import tilewise as tw

rng = np.random.default_rng(0)
M = rng.standard_normal((100, 50), np.float32)
N = rng.standard_normal((50, 70), np.float32)

P = tw.matmul(M, N)

assert np.allclose(P, M @ N, atol=1e-4)
print(f"P is {P.shape[0]}×{P.shape[1]} {P.dtype}")
print(tw.plan(M, N))
