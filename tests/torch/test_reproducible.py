"""`reproducible=` in torch: layers, patched models, gradients, torch.compile."""

from __future__ import annotations

import pytest

import tilewise as tw
from tilewise.errors import UsageError

torch = pytest.importorskip("torch")


def numbers(*shape, dtype="float32", seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_sequence_has_the_same_bits_in_every_batch(dtype):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(600, 300), torch.nn.GELU(), torch.nn.Linear(300, 33))
    model = model.to(getattr(torch, dtype))
    x = numbers(8, 5, 600, dtype=dtype)
    report = tw.torch.patch(model, reproducible="batch", report=True)
    assert report.taken == ["0", "2"]
    whole = model(x)
    assert all(torch.equal(model(x[i : i + 1])[0], whole[i]) for i in range(8))
    assert torch.equal(torch.compile(model, fullgraph=True, backend="aot_eager")(x), whole)
    want = tw.matmul(x.flatten(0, 1), model[0].weight.detach().mT, reproducible="batch") + model[0].bias
    assert torch.equal(model[0](x).flatten(0, 1), want)
    tw.torch.unpatch(model)
    assert type(model[0]) is torch.nn.Linear
    assert "reproducible" not in model[0].__dict__


def test_gradients_are_such_products_too():
    M, N = numbers(7, 600).requires_grad_(), numbers(600, 9, seed=1).requires_grad_()
    dP = numbers(7, 9, seed=2)
    tw.matmul(M, N, reproducible="everywhere").backward(dP)
    how = {"reproducible": "everywhere"}
    assert torch.equal(M.grad, tw.matmul(dP, N.detach().mT, **how))
    assert torch.equal(N.grad, tw.matmul(M.detach().mT, dP, **how))


@pytest.mark.parametrize(("m", "n"), [((5,), (5, 3)), ((4, 5), (5,)), ((5,), (5,)), ((2, 4, 5), (5, 3))])
def test_vectors_and_stacks_have_gradients(m, n):
    M, N = numbers(*m).double().requires_grad_(), numbers(*n, seed=1).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y: tw.matmul(x, y, reproducible="batch"), (M, N))


def test_complex_gradients():
    M, N = (torch.complex(numbers(3, 4, seed=s), numbers(3, 4, seed=s + 1)).to(torch.complex128) for s in (0, 2))
    M, N = M.requires_grad_(), N.mT.contiguous().requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y: tw.matmul(x, y, reproducible="everywhere"), (M, N))


def linear(x, weight, bias):
    return tw.torch.linear(x, weight, bias, reproducible="batch")


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
def test_the_bias_has_derivatives():
    x, weight, bias = (numbers(*s, seed=i).double() for i, s in enumerate([(4, 3, 5), (2, 5), (2,)]))
    followed = [a.clone().requires_grad_() for a in (x, weight, bias)]
    assert torch.autograd.gradcheck(linear, followed)
    dP = numbers(4, 3, 2).double()
    linear(*followed).backward(dP)
    assert torch.allclose(followed[2].grad, dP.sum((0, 1)))
    compiled = torch.compile(linear, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(*followed), linear(x, weight, bias))
    made, tangent = torch.func.jvp(lambda b: linear(x, weight, b), (bias,), (bias,))
    assert torch.equal(made, linear(x, weight, bias))
    assert torch.equal(tangent, bias.expand(4, 3, 2))
    biases = torch.stack([bias, 2 * bias])
    for in_dims, given in (((None, None, 0), biases), ((0, None, None), bias)):
        want = torch.stack(
            [linear(x if in_dims[0] is None else x[i], weight, given if in_dims[2] is None else given[i])
             for i in range(2 if in_dims[2] == 0 else 4)]
        )  # fmt: skip
        assert torch.allclose(torch.vmap(linear, in_dims)(x, weight, given), want)


def test_layers():
    layer = tw.torch.Linear(40, 6, reproducible="everywhere")
    x = numbers(9, 40)
    assert torch.equal(layer(x[2]), layer(x)[2])
    assert torch.equal(tw.torch.linear(x, layer.weight, layer.bias, reproducible="everywhere"), layer(x))
    assert tw.torch.Linear.of(layer, reproducible="batch").reproducible == "batch"
    with pytest.raises(UsageError, match="on_lines"):
        tw.torch.Linear(4, 4, on_lines=True, reproducible="batch")
    with pytest.raises(UsageError, match="'batch', 'everywhere'"):
        tw.torch.patch(layer, reproducible="bits")


def test_what_has_no_gradient_is_refused():
    M, N = numbers(3, 4).requires_grad_(), numbers(4, 5)
    for keywords in ({"bias": numbers(5)}, {"alpha": 2.0}, {"semiring": "min_plus"}, {"activation": "relu"}):
        with pytest.raises(UsageError, match="reproducible="):
            tw.matmul(M, N, reproducible="batch", **keywords)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # torch's own forward mode
def test_transforms_of_torch_func_and_forward_mode():
    A, B = torch.randn(5, 60), torch.randn(60, 4)

    def loss(x):
        return tw.matmul(x, B, reproducible="everywhere").square().sum()

    x = A.clone().requires_grad_()
    loss(x).backward()
    assert torch.equal(torch.func.grad(loss)(A), x.grad)
    rows = torch.func.vmap(torch.func.grad(loss))(A[:, None])
    assert torch.equal(rows[:, 0], x.grad)
    product = lambda x: tw.matmul(x, B, reproducible="everywhere")  # noqa: E731
    P, tangent = torch.func.jvp(product, (A,), (2 * A,))
    assert torch.equal(tangent, 2 * P)
    assert torch.func.hessian(loss)(A[:1]).shape == (1, 60, 1, 60)
    small = [x[:3, :3].double().requires_grad_() for x in (A, B)]
    assert torch.autograd.gradcheck(
        lambda M, N: tw.matmul(M, N, reproducible="batch"), small, check_forward_ad=True, check_batched_grad=True
    )


def test_products_have_autocasts_dtype():
    A, B = torch.randn(5, 600), torch.randn(600, 4)
    want = tw.matmul(A.bfloat16(), B.bfloat16(), reproducible="everywhere")
    x = A.clone().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for left in (A, x):
            assert torch.equal(tw.matmul(left, B, reproducible="everywhere"), want)
    assert tw.matmul(A, B, reproducible="everywhere").dtype == torch.float32
