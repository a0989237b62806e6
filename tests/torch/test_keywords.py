"""Every keyword of every function, alone and in pairs: tensors, tensors with gradients, and compiled."""

from __future__ import annotations

import pytest
import torch

import tilewise as tw
from keyword_pairs import CALLS, PAIRS, check, check_function


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


@pytest.mark.drawn(4)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_compiled(names):
    torch._dynamo.reset()
    run = torch.compile(lambda M, N, keywords: tw.matmul(M, N, **keywords), backend="eager")
    check(names, run, lambda x: torch.from_numpy(x.copy()), (tw.TilewiseError, torch._dynamo.exc.TorchDynamoException))


def tensor(x):
    return torch.from_numpy(x.copy())


def of_tensors(call, x):
    return call(x)


def of_gradients(call, x):
    return detached(call(x.requires_grad_()))


def detached(made):
    if isinstance(made, (tuple, list)):
        return type(made)(map(detached, made))
    return made.detach() if made._is_view() else made.detach_()  # out= stays the same object


def of_a_graph(call, x):
    torch._dynamo.reset()
    return torch.compile(call, backend="eager")(x)


ROUTES = [
    *((run, *call) for run in (of_tensors, of_gradients, of_a_graph) for call in CALLS if call[0] != "path"),
    *((of_tensors, *call) for call in CALLS if call[0] == "path"),
]


@pytest.mark.drawn(30)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(("run", "name", "names"), ROUTES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_of_every_function(run, name, names):
    refused = (tw.TilewiseError, torch._dynamo.exc.TorchDynamoException)
    computed = check_function(name, names, tensor, tensor, run, refused)
    assert computed or names or run is of_a_graph
