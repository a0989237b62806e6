"""A value of the wrong kind is refused with an error of ours that names the argument, by every function that has it."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw

A, RAGGED, TABLE = np.eye(3), [[1], [2, 3]], np.ones((3, 3))
STACK, ENDS = np.ones((2, 3, 3)), np.array([1, 3])
KERNEL = "__global__ void k(float *P) { P[threadIdx.x] = 1; }"
CALLS = {
    "accumulate": lambda: tw.matmul(A, A, accumulate="yes", out=np.eye(3)),
    "return_arg": lambda: tw.matmul(A, A, semiring="min_plus", return_arg=[]),
    "nonnegative": lambda: tw.plan(A, A, nonnegative=TABLE),
    "precision": lambda: tw.matmul(A, A, precision=TABLE),
    "order": lambda: tw.matmul(A, A, order=TABLE),
    "casting": lambda: tw.einsum("ij,jk->ik", A, A, casting=TABLE),
    "activation": lambda: tw.matmul(A, A, activation=TABLE),
    "alpha": lambda: tw.matmul(A, A, alpha=np.array(None)),
    "return_predecessors": lambda: tw.closure(A, return_predecessors=None),
    "progress": lambda: tw.closure(A, progress="bar"),
    "device": lambda: tw.closure(A, device=None),
    "sources": lambda: tw.closure(A, sources=RAGGED),
    "predecessors": lambda: tw.path(RAGGED, 0, 1),
    "chain": lambda: tw.chain(None),
    "A cannot be read": lambda: tw.power(RAGGED, 2),
    "operand 1 cannot be read": lambda: tw.einsum("ij,jk->ik", RAGGED, A),
    "optimize": lambda: tw.einsum("ij,jk->ik", A, A, optimize={}),
    "out must be an array": lambda: tw.matvec(A, A[0], out="x"),
    "count": lambda: tw.scatter_rows(A, np.arange(3), None),
    "along": lambda: tw.grouped_matmul(A, STACK, ENDS, along=TABLE),
    "semiring": lambda: tw.grouped_matmul(A, STACK, ENDS, semiring=[]),
    "M, N and the mask": lambda: tw.block_sparse_matmul(None, A, [[True]]),
    "mask cannot be read": lambda: tw.block_sparse_matmul(A, A, RAGGED),
    "pairs": lambda: tw.matmul_many(None),
    "a kernel is": lambda: tw.check(None),
    "a shape is": lambda: tw.check(KERNEL, shape="3x3"),
    "positive whole numbers": lambda: tw.trace("tiled_edges", shape=3),
    "tile": lambda: tw.check(KERNEL, tile="2"),
    "blocks": lambda: tw.trace("tiled_edges", shape=(3, 3, 3), blocks=None),
}


@pytest.mark.parametrize("named", CALLS)
def test_a_value_of_the_wrong_kind_is_refused_by_name(named):
    with pytest.raises(tw.TilewiseError) as caught:
        CALLS[named]()
    assert named in str(caught.value)


def test_truth_values_of_every_kind_are_taken():
    for true in (True, np.True_, 1):
        P, arg = tw.matmul(A, A, semiring="min_plus", return_arg=true)
        assert P.shape == arg.shape
