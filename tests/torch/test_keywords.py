"""Every keyword of matmul, alone and in pairs: tensors, tensors with gradients, and compiled."""

from __future__ import annotations

import pytest
import torch

import tilewise as tw
from keyword_pairs import PAIRS, check


@pytest.mark.drawn(50)
@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_of_tensors(names):
    check(names, lambda M, N, keywords: tw.matmul(M, N, **keywords), lambda x: torch.from_numpy(x.copy()))


@pytest.mark.drawn(50)
@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_with_gradients(names):
    def multiply(M, N, keywords):
        made = tw.matmul(M.requires_grad_(), N, **keywords)
        P = made[0] if isinstance(made, tuple) else made
        P.sum().backward()
        assert M.grad.shape == M.shape
        return tuple(x.detach() for x in made) if isinstance(made, tuple) else made.detach()

    check(names, multiply, lambda x: torch.from_numpy(x.copy()))


@pytest.mark.drawn(8)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_compiled(names):
    torch._dynamo.reset()
    run = torch.compile(lambda M, N, keywords: tw.matmul(M, N, **keywords), backend="eager")
    check(names, run, lambda x: torch.from_numpy(x.copy()), (tw.TilewiseError, torch._dynamo.exc.TorchDynamoException))
