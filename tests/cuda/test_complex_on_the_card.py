"""Complex products on a card: by real ones, in every layout, held against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed

torch = pytest.importorskip("torch")

DTYPES = [torch.complex64, torch.complex128]
SHAPES = [(1, 4096, 513), (513, 4096, 1), (2, 300, 70), (64, 1000, 1000), (333, 777, 555), (1024, 31, 1025)]


def drawn(rng, rows, cols, dtype, lies, stack=()):
    """A matrix in memory that has NaN around it."""
    shape = (*stack, cols + 1, rows + 3) if lies == "columns" else (*stack, rows + 3, cols + 1)
    around = torch.full(shape, complex("nan"), dtype=dtype, device="cuda")
    x = around[..., :cols, 1 : rows + 1].mT if lies == "columns" else around[..., 1 : rows + 1, :cols]
    values = rng.standard_normal((*stack, rows, cols)) + 1j * rng.standard_normal((*stack, rows, cols))
    x.copy_(torch.from_numpy(values).to(dtype))
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lies", [("rows", "rows"), ("columns", "rows"), ("rows", "columns"), ("columns", "columns")])
def test_errors_are_no_larger_than_pytorchs(dtype, lies):
    rng = np.random.default_rng(next_seed())
    for m, k, n in SHAPES:
        M, N = drawn(rng, m, k, dtype, lies[0]), drawn(rng, k, n, dtype, lies[1])
        true = M.cpu().numpy().astype(np.clongdouble) @ N.cpu().numpy().astype(np.clongdouble)
        ours, theirs = (x.cpu().numpy() - true for x in (tw.matmul(M, N), M @ N))
        rounding = torch.finfo(dtype).eps * np.sqrt(k)
        for part in ("real", "imag"):
            error, other = (np.sqrt(np.mean(getattr(x, part) ** 2)) for x in (ours, theirs))
            assert error <= max(1.3 * other, 0.5 * rounding), (m, k, n, part, tw.plan(M, N).notes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_stacks_accumulation_and_a_shared_operand(dtype):
    rng = np.random.default_rng(next_seed())
    near = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.complex64 else {"rtol": 1e-12, "atol": 1e-12}
    for stack, m, k, n in (((5,), 40, 50, 60), ((2, 3), 3, 200, 200), ((700,), 4, 5, 6)):
        M, N = drawn(rng, m, k, dtype, "rows", stack), drawn(rng, k, n, dtype, "columns", stack)
        torch.testing.assert_close(tw.matmul(M, N), M @ N, **near)
        out = drawn(rng, m, n, dtype, "rows", stack)
        expected = out + M @ N
        torch.testing.assert_close(tw.matmul(M, N, out=out, accumulate=True), expected, **near)
    shared = drawn(rng, 5, 60, dtype, "rows")
    torch.testing.assert_close(tw.matmul(M, shared), M @ shared, **near)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [complex("inf"), complex(0, float("inf")), complex("nan"), complex(1e38, 0)])
def test_special_values_are_those_of_four_real_products(dtype, value):
    """PyTorch multiplies sums by alpha = 1 + 0i, which makes NaN of every infinity."""
    rng = np.random.default_rng(next_seed())
    for m, k, n in ((300, 300, 300), (3, 500, 500), (500, 500, 3)):
        M, N = drawn(rng, m, k, dtype, "rows"), drawn(rng, k, n, dtype, "rows")
        M[1, 7] = value
        a, b = M.cpu().numpy(), N.cpu().numpy()
        ours = tw.matmul(M, N).cpu().numpy()
        with np.errstate(all="ignore"):
            expected = {"real": a.real @ b.real - a.imag @ b.imag, "imag": a.real @ b.imag + a.imag @ b.real}
        for part, at in expected.items():
            got = getattr(ours, part)
            assert np.array_equal(np.isnan(got), np.isnan(at)), (m, k, n, part)
            assert np.array_equal(np.isinf(got), np.isinf(at)), (m, k, n, part)
