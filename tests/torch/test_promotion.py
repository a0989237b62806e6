"""Operands of two dtypes: P has the dtype that torch promotes them to, by every function, eager, differentiated and
compiled."""

from __future__ import annotations

import random
from functools import partial
from itertools import product

import pytest
import torch

import tilewise as tw
from seeds import next_seed, sample_size

KINDS = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64,
]  # fmt: skip
ENDS = torch.tensor([2, 4])
FUNCTIONS = {
    "matmul": tw.matmul,
    "the winning k": lambda M, N: tw.matmul(M, N, semiring="min_plus", return_arg=True)[0],
    "einsum": lambda M, N: tw.einsum("ij,jk->ik", M, N),
    "einsum without a sum": lambda M, N: tw.einsum("ij,ij->ij", M, N, semiring="max_plus"),
    "chain": lambda M, N: tw.chain([M, N, M]),
    "matvec": lambda M, N: tw.matvec(M, N[0]),
    "matmul_many": lambda M, N: tw.matmul_many([(M, N)])[0],
    "grouped_matmul": lambda M, N: tw.grouped_matmul(M, torch.stack([N, N]), ENDS),
    "block_sparse_matmul": lambda M, N: tw.block_sparse_matmul(M, N, torch.eye(2)),
    "fields": lambda M, N: tw.matmul((M, M), (N, N), semiring="min_count")[0],
}
PAIRS = [
    (torch.float32, torch.int32), (torch.int64, torch.float32), (torch.bfloat16, torch.int32),
    (torch.float16, torch.bfloat16), (torch.uint8, torch.int8), (torch.bool, torch.float16),
]  # fmt: skip


def small(kind, seed=0):
    return torch.randint(0, 3, (4, 4), generator=torch.Generator().manual_seed(seed)).to(kind)


def test_every_pair_is_promoted_as_torch_does():
    """121 pairs, each with a kernel of its own: 27 s for all of them."""
    pairs, wrong = list(product(KINDS, repeat=2)), []
    for m, n in random.Random(next_seed()).sample(pairs, sample_size(len(pairs))):
        M, N, kind = small(m), small(n, 1), torch.result_type(small(m), small(n))
        want = torch.matmul(M.to(kind), N.to(kind)) if kind is not torch.bool else None
        for _ in range(2):  # the second time by what is prepared, where it is
            P = tw.matmul(M, N)
            if P.dtype != kind or (want is not None and not torch.equal(P, want)):
                wrong.append((m, n, P.dtype))
    assert not wrong


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_by_every_function(name, pair):
    M, N = small(pair[0]), small(pair[1], 1)
    kind = torch.result_type(M, N)
    if name == "fields" and kind in (torch.bfloat16, torch.float16, torch.int16):
        pytest.skip("no values with fields of that dtype")
    found = [FUNCTIONS[name](M, N)]
    if name != "fields" and kind.is_floating_point:
        leaves = [x.clone().requires_grad_() if x.is_floating_point() else x for x in (M, N)]
        found.append(FUNCTIONS[name](*leaves))
        found[-1].sum().backward()
        assert all(x.grad.dtype == x.dtype for x in leaves if x.requires_grad)
    for P in found:
        assert P.dtype == kind
        torch.testing.assert_close(P.detach(), FUNCTIONS[name](M.to(kind), N.to(kind)))


@pytest.mark.parametrize("pair", PAIRS[:4], ids=str)
def test_compiled(pair):
    M, N = small(pair[0]), small(pair[1], 1)
    for semiring in ("plus_times", "min_plus"):
        multiply = partial(tw.matmul, semiring=semiring)
        made = torch.compile(lambda M, N, f=multiply: f(M, N) + 1, backend="aot_eager")(M, N)
        torch.testing.assert_close(made, tw.matmul(M, N, semiring=semiring) + 1)
        assert made.dtype == torch.result_type(M, N)
