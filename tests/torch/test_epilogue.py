"""alpha, bias and activation on tensors: as torch's own operations, with gradients where they are wanted."""

from __future__ import annotations

import pytest

import tilewise as tw

torch = pytest.importorskip("torch")
F = torch.nn.functional

ACTIVATIONS = {
    None: lambda x: x,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}


def operands(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype) for shape in ((6, 5), (5, 7), (7,))]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_tensors_on_the_host(activation, dtype):
    M, N, bias = operands(dtype)
    made = tw.matmul(M, N, alpha=0.5, bias=bias, activation=activation)
    exact = ACTIVATIONS[activation](0.5 * (M.double() @ N.double()) + bias.double())
    assert made.dtype == dtype
    torch.testing.assert_close(
        made.double(),
        exact,
        rtol={torch.bfloat16: 1e-2}.get(dtype, 1e-5),
        atol=1e-2 if dtype == torch.bfloat16 else 1e-6,
    )


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_flow_to_all_three(activation):
    M, N, bias = (x.requires_grad_() for x in operands())
    tw.matmul(M, N, alpha=0.5, bias=bias, activation=activation).square().sum().backward()
    ours = [x.grad.clone() for x in (M, N, bias)]
    for x in (M, N, bias):
        x.grad = None
    ACTIVATIONS[activation](0.5 * (M @ N) + bias).square().sum().backward()
    for got, x in zip(ours, (M, N, bias), strict=True):
        torch.testing.assert_close(got, x.grad)


def test_a_bias_alone_may_want_a_gradient():
    M, N, bias = operands()
    bias.requires_grad_()
    tw.matmul(M, N, bias=bias).sum().backward()
    torch.testing.assert_close(bias.grad, torch.full((7,), 6.0, dtype=torch.float64))


def test_refusals_are_the_same_with_gradients():
    M, N, bias = (x.requires_grad_() for x in operands())
    with pytest.raises(tw.UsageError, match="need plus_times, and the semiring is min_plus"):
        tw.matmul(M, N, bias=bias, semiring="min_plus")
    with pytest.raises(tw.UsageError, match="activation='swish' is not known"):
        tw.matmul(M, N, activation="swish")


def test_a_bias_that_is_copied_first_is_not_remembered_by_its_address():
    """The copy is freed before the next call; a bias of another library is refused with a message."""
    M, N, bias = operands()
    wide = torch.randn(14, dtype=torch.float64)
    exact = M @ N + wide[::2]
    for _ in range(2):
        torch.testing.assert_close(tw.matmul(M, N, out=torch.empty(6, 7, dtype=torch.float64), bias=wide[::2]), exact)
    with pytest.raises(tw.UsageError, match="bias is of numpy"):
        tw.matmul(M, N, out=torch.empty(6, 7, dtype=torch.float64), bias=bias.numpy())


def test_the_winning_k_and_an_epilogue_exclude_each_other():
    M = torch.ones(3, 3, requires_grad=True)
    for semiring in ("plus_times", "min_plus"):
        with pytest.raises(tw.UsageError, match=r"return_arg"):
            tw.matmul(M, M, semiring=semiring, bias=torch.ones(3), return_arg=True)
