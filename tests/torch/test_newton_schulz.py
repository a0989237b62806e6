"""Newton–Schulz iterations of lists of matrices, and Muon, beside a plain torch implementation."""

from __future__ import annotations

from importlib import import_module

import pytest

import tilewise as tw
from tilewise.errors import DtypeError, ShapeError, UsageError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.interop

QUINTIC = (3.4445, -4.7750, 2.0315)
RAGGED = [(3, 5), (64, 64), (70, 33), (1, 9), (9, 1), (33, 70), (1, 1), (64, 64), (63, 64)]


def plain(x, steps=5, coefficients=QUINTIC, eps=1e-7):
    """As `torch.optim.Muon` has it, in float64."""
    x = x.double()
    wide = x.mT if x.shape[0] > x.shape[1] else x
    wide = wide / wide.norm().clamp(min=eps)
    for step in range(steps):
        a, b, c = coefficients if isinstance(coefficients[0], float) else coefficients[step]
        gram = wide @ wide.mT
        wide = a * wide + (b * gram + c * gram @ gram) @ wide
    return wide.mT if x.shape[0] > x.shape[1] else wide


def drawn(shapes, dtype=torch.float32, seed=0):
    made = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=made).to(dtype) for shape in shapes]


def by_torch(x):
    """The iteration in bfloat16, to have an error to compare with."""
    wide = (x.mT if x.shape[0] > x.shape[1] else x).bfloat16()
    wide = wide / wide.norm().clamp(min=1e-7)
    for _ in range(5):
        a, b, c = QUINTIC
        gram = wide @ wide.mT
        wide = torch.addmm(wide, torch.addmm(gram, gram, gram, beta=b, alpha=c), wide, beta=a)
    return wide.mT if x.shape[0] > x.shape[1] else wide


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 2e-5), (torch.float64, 1e-12)])
def test_unequal_matrices(dtype, bound):
    given = drawn(RAGGED, dtype)
    for x, made in zip(given, tw.torch.newton_schulz(given), strict=True):
        assert (made.shape, made.dtype) == (x.shape, dtype)
        assert (made.double() - plain(x)).abs().max() <= bound


def test_bfloat16_is_as_near_as_torchs():
    given = drawn(RAGGED)
    made = tw.torch.newton_schulz(given, dtype=torch.bfloat16)
    assert {x.dtype for x in made} == {torch.bfloat16}
    ours, theirs = (
        sum((y.double() - plain(x)).square().sum() for x, y in zip(given, results, strict=True))
        for results in (made, [by_torch(x) for x in given])
    )
    assert ours <= 1.3 * theirs  # of squares


def test_matrices_padded_to_one_stack(monkeypatch):
    """As on a card, where sizes that differ a little share launches."""
    module = import_module("tilewise.torch.newton_schulz")  # the function of this name hides it
    monkeypatch.setattr(module, "_joins", lambda stack, rows, cols: cols <= stack.cols)
    given = drawn(RAGGED, torch.float64, 1)
    assert len(list(module._stacks(given, None))) == 2
    for x, made in zip(given, tw.torch.newton_schulz(given), strict=True):
        assert (made - plain(x)).abs().max() <= 1e-12


def test_stacks_on_a_card_waste_at_most_a_fourth():
    module = import_module("tilewise.torch.newton_schulz")
    given = [
        torch.empty(shape, device="meta") for shape in [*RAGGED, (768, 2304), (768, 768), (760, 2304), (3072, 768)]
    ]
    stacks = list(module._stacks(given, torch.bfloat16))
    assert sorted(number for stack in stacks for number in stack.numbers) == list(range(len(given)))
    assert len(stacks) < len(given)
    for stack in stacks:
        for number in stack.numbers:
            rows, cols = sorted(given[number].shape)
            assert (rows <= stack.rows) & (cols <= stack.cols)
            assert module._steps(stack.rows, stack.cols) <= module.PADDED * module._steps(rows, cols)


def test_strides_and_operands_stay():
    base = drawn([(40, 90)], torch.float64)[0]
    for x in (base[::2, ::3], base.T, base[:, 5:45], base[3:4]):
        held = x.clone()
        (made,) = tw.torch.newton_schulz([x])
        assert (made - plain(x)).abs().max() <= 1e-12
        assert torch.equal(x, held)


def test_coefficients_of_each_step():
    (x,) = drawn([(20, 31)], torch.float64)
    each = [(3.0, -3.2, 1.2), (1.5, 0.0, -0.4), (1.5, -0.5, 0.0), (2.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]
    (made,) = tw.torch.newton_schulz([x], len(each), each)
    assert (made - plain(x, len(each), each)).abs().max() <= 1e-12 * made.abs().max()
    (same,) = tw.torch.newton_schulz([x], 0)
    assert (same - x / x.norm()).abs().max() <= 1e-15


def test_nothing_empty_and_zero():
    assert tw.torch.newton_schulz([]) == []
    empty, zero = tw.torch.newton_schulz([torch.zeros(0, 4), torch.zeros(3, 4)])
    assert empty.shape == (0, 4)
    assert torch.equal(zero, torch.zeros(3, 4))


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (ShapeError, r"matrices\[1\] is of 1 dimensions", ([torch.ones(2, 2), torch.ones(3)],)),
        (DtypeError, r"matrices\[0\] has dtype torch.int64", ([torch.ones(2, 2, dtype=torch.int64)],)),
        (UsageError, "steps=-1 must be a whole number", ([torch.ones(2, 2)], -1)),
        (UsageError, r"coefficients=\(1.0, 2.0\) must be", ([torch.ones(2, 2)], 2, (1.0, 2.0))),
    ],
)
def test_refusals(error, message, arguments):
    with pytest.raises(error, match=message):
        tw.torch.newton_schulz(*arguments)


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon")
@pytest.mark.parametrize("how", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}, {"weight_decay": 0.0}])
def test_muon_takes_the_steps_of_torch(how):
    ours, theirs = ([torch.nn.Parameter(x.clone()) for x in drawn(RAGGED, seed=2)] for _ in range(2))
    one, other = tw.torch.Muon(ours, lr=0.02, **how), torch.optim.Muon(theirs, lr=0.02, **how)
    for step in range(3):
        for p, q, grad in zip(ours, theirs, drawn(RAGGED, seed=10 + step), strict=True):
            p.grad, q.grad = grad, grad.clone()
        one.step()
        other.step()
    for p, q, start in zip(ours, theirs, drawn(RAGGED, seed=2), strict=True):
        assert (p - q).norm() <= 0.06 * (q - start).norm()
    other.load_state_dict(one.state_dict())
    for p, q in zip(ours, theirs, strict=True):
        torch.testing.assert_close(other.state[q]["momentum_buffer"], one.state[p]["momentum_buffer"])


def test_muon_trains_and_skips_what_has_no_gradient():
    torch.manual_seed(0)
    layer, idle = torch.nn.Linear(12, 7, bias=False), torch.nn.Parameter(torch.ones(2, 3))
    optimizer = tw.torch.Muon([layer.weight, idle], lr=0.05, weight_decay=0.0)
    x, wanted = torch.randn(64, 12), torch.randn(7, 12)

    def closure():
        optimizer.zero_grad()
        loss = (layer(x) - x @ wanted.mT).square().mean()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(60)]
    assert losses[-1] < 0.3 * losses[0]
    assert torch.equal(idle, torch.ones(2, 3))


def test_muon_refuses():
    with pytest.raises(ShapeError, match=r"a parameter is \(3,\): Muon is for matrices"):
        tw.torch.Muon([torch.nn.Parameter(torch.ones(3))])
    with pytest.raises(UsageError, match="adjust_lr_fn='none' is not known"):
        tw.torch.Muon([torch.nn.Parameter(torch.ones(3, 3))], adjust_lr_fn="none")
    with pytest.raises(UsageError, match=r"lr=-1.0 must be 0 or more"):
        tw.torch.Muon([torch.nn.Parameter(torch.ones(3, 3))], lr=-1.0)
