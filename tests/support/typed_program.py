"""A user's program: every public function, with nothing left untyped. A comment is the type that a checker must see, as
mypy writes it without its modules' names; `test_typing` compares them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import tilewise as tw

M: NDArray[np.float64] = np.ones((3, 4))
N: NDArray[np.float64] = np.ones((4, 5))
W: NDArray[np.float64] = np.ones((4, 4))
x: NDArray[np.float32] = np.ones(4, np.float32)
H: NDArray[np.float32] = np.ones((4, 4), np.float32)
counts: NDArray[np.int64] = np.ones((4, 4), np.int64)
stack: NDArray[np.float32] = np.ones((2, 4, 3), np.float32)
ends: NDArray[np.int64] = np.array([2, 4])

P = tw.matmul(M, N)  # float64
rows, cols = P.shape
D, arg = tw.matmul(M, N, semiring="min_plus", return_arg=True)  # float64, int64
best: NDArray[np.float64] = tw.matmul(M, N, alpha=2.0, bias=np.ones(5), activation="relu")
short = tw.matmul(M, N, dtype=np.float32)  # float32
reached = tw.matmul(M, N, semiring="lor_land")  # bool
listed = tw.matmul([[1.0, 2.0]], [[1.0], [2.0]])  # Any
own = tw.Semiring("best", add=tw.maximum, mul=lambda x, y: x * y, zero=0)
chance = tw.matmul(M, N, semiring=own)  # float64
length, paths = tw.matmul((M, M), (N, N), semiring=tw.min_count)
summed = tw.einsum("ij,jk->ik", M, N)  # float64
by_numbers = tw.einsum(M, [0, 1], N, [1, 2])  # float64
wide = tw.einsum("ij,jk->ik", H, H, dtype=np.float64)  # float64
chained = tw.chain([M, N])  # float64
cubed = tw.power(H, 3)  # float32
vector = tw.matvec(H, x)  # float32
row = tw.vecmat(x, H)  # float32
dot = tw.vecdot(H, x, axis=0)  # float32
inner = tw.inner(H, x)  # float32
outer = tw.outer(counts, counts)  # int64
tensor = tw.tensordot(H, H, 1)  # float32
closed = tw.closure(counts)  # int64
lengths, before = tw.closure(H, return_predecessors=True)  # float32, int64
reach = tw.closure(W, semiring="lor_land")  # bool
nodes = tw.path(before, 0, 1)
groups = tw.grouped_matmul(H, stack, ends)  # float32
scattered = tw.scatter_rows(H[:2], ends, 5)  # float32
sparse = tw.block_sparse_matmul(W, N, [[True, False]])  # float64
products = tw.matmul_many([(M, N), (W, W)])  # float64
planned = tw.plan(M, N)
why: str = planned.why
threads = tw.get_num_threads()
seven = tw.modular(7)
several = tw.k_best(3)
names = tuple(tw.semirings)
checked = tw.check("tiled_edges", shape=(3, 3, 3), tile=2)
table = tw.trace("tiled_edges", shape=(3, 3, 3), tile=2)
page = tw.explore(table)
tw.set_num_threads(2)
print(P.sum(), D.sum(), arg.max(), best.sum(), closed[0, 0], lengths[0], nodes, threads, chance.sum(), length.sum())
print(summed.sum(), chained.sum(), cubed.sum(), vector.sum(), paths.sum(), why, rows, cols, products[0].sum())
