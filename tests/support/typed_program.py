"""A user's program: every public call, with nothing left untyped."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import tilewise as tw

M: NDArray[np.float64] = np.ones((3, 4))
N: NDArray[np.float64] = np.ones((4, 5))
W: NDArray[np.float64] = np.ones((4, 4))
P = tw.matmul(M, N)
rows, cols = P.shape
D, arg = tw.matmul(M, N, semiring="min_plus", return_arg=True)
best: NDArray[np.float64] = tw.matmul(M, N, alpha=2.0, bias=np.ones(5), activation="relu")
closed = tw.closure(W)
lengths, before = tw.closure(W, return_predecessors=True)
nodes = tw.path(before, 0, 1)
threads = tw.get_num_threads()
own = tw.Semiring("best", add=tw.maximum, mul=lambda x, y: x * y, zero=0)
chance = tw.matmul(M, N, semiring=own)
many = tw.einsum("ij,jk->ik", M, N)
chained = tw.chain([M, N])
squared = tw.power(W, 3)
vector = tw.matvec(W, np.ones(4))
counts = np.ones((3, 4), np.int64), np.ones((4, 5), np.int64)
length, paths = tw.matmul((M, counts[0]), (N, counts[1]), semiring=tw.min_count)
planned = tw.plan(M, N)
why: str = planned.why
tw.set_num_threads(2)
print(P.sum(), D.sum(), arg.max(), best.sum(), closed[0, 0], lengths[0], nodes, threads, chance.sum(), length.sum())
print(many.sum(), chained.sum(), squared.sum(), vector.sum(), paths.sum(), why, rows, cols)
