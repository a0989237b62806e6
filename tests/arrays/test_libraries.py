"""Any array in, the same kind out; kinds do not mix."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from operands import values
from tilewise.arrays import find_library
from tilewise.arrays.numpy_library import NUMPY


class Foreign:
    """An array of an unknown library, with DLPack and nothing else."""

    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **how):
        return self.data.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


class Namespaced(Foreign):
    """One with a namespace, as the array API standard requires."""

    def __array_namespace__(self):
        return type("namespace", (), {"from_dlpack": staticmethod(lambda x: Namespaced(np.from_dlpack(x)))})


def test_dlpack_comes_in():
    M, N = Foreign(values((3, 4), "float32", 1)), Foreign(values((4, 5), "float32", 2))
    P = tw.matmul(M, N)
    np.testing.assert_allclose(P, M.data @ N.data, rtol=1e-5)


def test_what_names_its_namespace_gets_its_own_kind_back():
    M = Namespaced(values((3, 3), "float64", 1))
    P = tw.matmul(M, M)
    assert isinstance(P, Namespaced)
    np.testing.assert_allclose(P.data, M.data @ M.data)


def test_kinds_do_not_mix():
    with pytest.raises(tw.UsageError, match="M is of numpy and N is of "):
        tw.matmul(np.ones((2, 2)), Foreign(np.ones((2, 2))))


def test_lists_count_as_numpy():
    assert find_library([[1]]) is NUMPY


class TestTorch:
    @pytest.fixture(autouse=True)
    def torch(self):
        return pytest.importorskip("torch")

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int64", "bool", "complex64"])
    def test_in_and_out(self, torch, dtype):
        M = torch.randn(7, 5).mul(3).to(getattr(torch, dtype))
        N = torch.randn(3, 5).mul(3).to(getattr(torch, dtype)).T
        P = tw.matmul(M, N)
        assert P.dtype == M.dtype
        exact = M.to(torch.complex128) @ N.to(torch.complex128)
        if dtype == "bool":
            assert torch.equal(P, exact.real > 0)
        else:
            assert (P.to(torch.complex128) - exact).norm() <= 1e-2 * exact.norm()

    def test_out_is_written_in_place(self, torch):
        M, P = torch.randn(4, 4), torch.empty(4, 4)
        assert tw.matmul(M, M, out=P) is P
        torch.testing.assert_close(P, M @ M)

    def test_a_gradient_is_never_dropped_silently(self, torch):
        M = torch.randn(3, 3, requires_grad=True)
        assert tw.matmul(M, M).requires_grad
        with torch.no_grad():
            assert not tw.matmul(M, M).requires_grad
        assert tw.closure(M.abs()).requires_grad
        with pytest.raises(tw.UsageError, match="out= has no gradient"):
            tw.matmul(M, M, out=torch.empty(3, 3))

    def test_a_conjugate_view_is_resolved(self, torch):
        M = torch.randn(3, 3, dtype=torch.complex64)
        torch.testing.assert_close(tw.matmul(M.conj(), M), M.conj() @ M)


def test_jax_in_and_out():
    jax = pytest.importorskip("jax")
    with jax.default_device(jax.devices("cpu")[0]):
        M = jax.numpy.asarray(values((3, 4), "float32", 1))
        P = tw.matmul(M, M.T)
        assert isinstance(P, jax.Array)
        np.testing.assert_allclose(np.asarray(P), np.asarray(M) @ np.asarray(M).T, rtol=1e-5)
        with pytest.raises(tw.UsageError, match="immutable"):
            tw.matmul(M, M.T, out=P)
        W = jax.numpy.abs(P)
        np.testing.assert_array_equal(jax.jit(tw.closure)(W), tw.closure(W))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_eight_bit_floats_are_widened_in_every_call_and_written_to_out(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng, dtype = np.random.default_rng(3), np.dtype(getattr(ml_dtypes, name))
    M, N = rng.normal(size=(9, 5)).astype(dtype), rng.normal(size=(5, 7)).astype(dtype)
    expected = M.astype(float) @ N.astype(float)
    for _ in range(3):  # the second is served by a prepared call
        np.testing.assert_allclose(tw.matmul(M, N), expected, rtol=1e-5, atol=1e-6)
        part = M[1:, :3].astype(float) @ N[:3].astype(float)
        np.testing.assert_allclose(tw.matmul(M[1:, :3], N[:3]), part, rtol=1e-5, atol=1e-6)
        out = np.zeros(expected.shape, dtype)
        assert tw.matmul(M, N, out=out) is out
        np.testing.assert_array_equal(out, expected.astype(np.float32).astype(dtype))
    out.flags.writeable = False
    with pytest.raises(tw.ShapeError, match="read-only"):
        tw.matmul(M, N, out=out)
