"""Groups of rows in torch: gradients against a loop, rows by an index, torch.compile's fake tensors."""

from __future__ import annotations

from itertools import pairwise

import pytest

import tilewise as tw

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.interop


def by_a_loop(x, w, ends):
    made = [x[a:b] @ w[g] for g, (a, b) in enumerate(pairwise([0, *ends]))]
    return torch.cat([*made, x.new_zeros(len(x) - ends[-1], w.shape[2])])


def test_gradients_of_groups():
    torch.manual_seed(0)
    x, w = torch.randn(12, 5, dtype=torch.float64), torch.randn(3, 5, 4, dtype=torch.float64)
    ends = [4, 4, 10]
    offsets, given = torch.tensor(ends), [t.clone().requires_grad_() for t in (x, w)]
    other = [t.clone().requires_grad_() for t in (x, w)]
    flow = torch.randn(12, 4, dtype=torch.float64)
    tw.grouped_matmul(*given, offsets).backward(flow)
    by_a_loop(*other, ends).backward(flow)
    for ours, theirs in zip(given, other, strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_gradients_check_numerically():
    torch.manual_seed(1)
    x, y = (torch.randn(7, n, dtype=torch.float64, requires_grad=True) for n in (3, 2))
    offsets = torch.tensor([2, 7])
    assert torch.autograd.gradcheck(lambda x, y: tw.grouped_matmul(x, y, offsets, along="k"), (x, y))
    w = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    rows = torch.tensor([0, 3, 3, 6, 1])
    ends, weights = torch.tensor([2, 5]), torch.randn(5, dtype=torch.float64, requires_grad=True)

    def layer(x, w, weights):
        made = tw.grouped_matmul(x, w, ends, rows=rows)
        return tw.scatter_rows(made, rows, 7, weights=weights)

    assert torch.autograd.gradcheck(layer, (x, w, weights))
    assert torch.autograd.gradgradcheck(layer, (x, w, weights))


def test_semirings_have_no_gradient_in_groups():
    x, w = torch.randn(4, 3, requires_grad=True), torch.randn(2, 3, 2)
    made = tw.grouped_matmul(x, w, torch.tensor([1, 4]), semiring="min_plus")
    with pytest.raises(tw.UsageError, match="groups over min_plus have no gradient"):
        made.sum().backward()


def test_operators_agree_with_their_fakes():
    x, w, offsets = torch.randn(6, 3), torch.randn(2, 3, 4), torch.tensor([2, 6])
    rows = torch.tensor([0, 5, 5])
    ops = torch.ops.tilewise
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    for operator, arguments in (
        (ops.grouped_matmul, (x, w, offsets, "rows", "plus_times", "high")),
        (ops.grouped_matmul, (x, x, offsets, "k", "plus_times", "high")),
        (ops.take_rows, (x, rows)),
        (ops.scatter_rows, (x[:3].clone(), rows, 6, torch.randn(3))),
    ):
        assert torch.library.opcheck(operator, arguments, test_utils=tests) == dict.fromkeys(tests, "SUCCESS")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("along", ["rows", "k"])
def test_groups_on_the_host_are_prepared_by_their_sizes(monkeypatch, dtype, along):
    """No group is a call of matmul, which took a millisecond and a half for each group of tensors."""
    torch.manual_seed(2)
    ends = [3, 3, 10, 12]
    x = torch.randint(-4, 5, (14, 6)).to(dtype)
    w = torch.randint(-4, 5, (14, 5) if along == "k" else (4, 6, 5)).to(dtype)
    monkeypatch.setattr("tilewise.compose.groups.host.dispatch.matmul", None)
    found = tw.grouped_matmul(x, w, torch.tensor(ends), along=along)
    into = torch.full_like(found, 7)
    tw.grouped_matmul(x, w, torch.tensor(ends), along=along, out=into)
    if along == "k":
        wanted = torch.stack([x[a:b].double().T @ w[a:b].double() for a, b in pairwise([0, *ends])])
    else:
        wanted = by_a_loop(x.double(), w.double(), ends)
    assert torch.equal(found.double(), wanted)
    assert torch.equal(into, found)
