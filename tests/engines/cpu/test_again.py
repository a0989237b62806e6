"""The call before, once more: array objects are compared natively, and whatever differs goes the usual way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tilewise as tw
from tilewise.engines.cpu.runtime.again import holds
from tilewise.prepared import LAST, PREPARED

pytestmark = pytest.mark.skipif(not holds(), reason="arrays are laid out another way here")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """A call is taken again natively where it is one task."""
    tw.set_num_threads(1)
    yield
    tw.set_num_threads(None)


def operands(
    m: int = 20, k: int = 30, n: int = 25, dtype: str = "float32"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.random((m, k)).astype(dtype), rng.random((k, n)).astype(dtype), np.full((m, n), np.nan, dtype)


def known() -> tuple[np.ndarray, ...]:
    M, N, P = operands()
    for _ in range(2):  # the first is planned, the second found by its signature
        tw.matmul(M, N, out=P)
    assert LAST[0] is not None
    return M, N, P


def test_a_known_call_is_made_without_its_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    M, N, P = known()
    PREPARED.clear()
    monkeypatch.setattr("tilewise.api.signature_for", None)  # asked for no more
    monkeypatch.setattr("tilewise.api.SIGNATURES", {})
    M, N, P = M[::-1].copy(), N + 1, np.full_like(P, np.nan)
    assert tw.matmul(M, N, out=P) is P
    np.testing.assert_allclose(P, M @ N, rtol=1e-5)


@pytest.mark.parametrize(
    "shape_and_dtype",
    [(21, 30, 25, "float32"), (20, 31, 25, "float32"), (20, 30, 26, "float32"), (20, 30, 25, "float64")],
)
def test_another_shape_or_dtype_is_not_taken_for_it(shape_and_dtype: tuple[int, int, int, str]) -> None:
    known()
    M, N, P = operands(*shape_and_dtype)
    tw.matmul(M, N, out=P)
    np.testing.assert_allclose(P, M @ N, rtol=1e-5)


def test_other_strides_are_not_taken_for_it() -> None:
    M, N, P = known()
    F = np.asfortranarray(M)
    P[...] = np.nan
    tw.matmul(F, N, out=P)
    np.testing.assert_allclose(P, M @ N, rtol=1e-5)
    wide = np.zeros((20, 60), np.float32)
    wide[:, ::2] = M
    tw.matmul(wide[:, ::2], N, out=P)
    np.testing.assert_allclose(P, M @ N, rtol=1e-5)


def test_an_array_whose_shape_was_changed_in_place_is_looked_at_again() -> None:
    M, N, P = known()
    M.resize((30, 20), refcheck=False)
    with pytest.raises(tw.ShapeError):
        tw.matmul(M, N, out=P)


def test_out_that_is_an_operand_or_shares_its_memory() -> None:
    M, N, P = operands(16, 16, 16)
    for _ in range(3):
        tw.matmul(M, N, out=P)
    expected = M @ N
    into = M.copy()
    tw.matmul(into, N, out=into)
    np.testing.assert_allclose(into, expected, rtol=1e-5)
    flat = np.concatenate([M.ravel(), np.zeros(16, np.float32)])
    view, shifted = flat[:256].reshape(16, 16), flat[16:].reshape(16, 16)
    tw.matmul(view, N, out=shifted)
    np.testing.assert_allclose(shifted, expected, rtol=1e-5)


def test_a_read_only_out_is_refused() -> None:
    M, N, P = known()
    P.flags.writeable = False
    with pytest.raises((tw.UsageError, ValueError)):
        tw.matmul(M, N, out=P)


def test_things_that_are_no_arrays_are_refused_as_ever() -> None:
    M, N, P = known()
    with pytest.raises((tw.UsageError, TypeError)):
        tw.matmul(M, N, out=[1])
    np.testing.assert_allclose(tw.matmul(M.tolist(), N, out=P), M @ N, rtol=1e-5)


def test_another_number_of_threads_forgets_it() -> None:
    known()
    tw.set_num_threads(2)
    assert LAST[0] is None
