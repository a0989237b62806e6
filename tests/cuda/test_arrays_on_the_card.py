"""Arrays that live on the card: CuPy, PyTorch, JAX, DeviceArray; any strides, stacks, out, accumulate, streams."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import tilewise as tw
from operands import CARD_DTYPES, values
from oracle import assert_product
from strategies import cases
from tilewise.algebra.dtypes import dtype_named
from tilewise.kernels.ladder.model import LADDER

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")


@settings(max_examples=2000)
@given(cases(dtypes=[d for d in CARD_DTYPES if d != "bfloat16"], tiles=(None, 16)))
def test_any_shape_stride_dtype_and_semiring_gives_the_right_product(case):
    M, N = (v.of(cupy.asarray(a), cupy) for v, a in ((case.view_m, case.memory_m), (case.view_n, case.memory_n)))
    P = tw.matmul(M, N, semiring=case.semiring, tile=case.tile)
    assert isinstance(P, cupy.ndarray)
    host_m, host_n = case.view_m.of(case.memory_m), case.view_n.of(case.memory_n)
    assert_product(P.get(), host_m, host_n, case.semiring)


@pytest.mark.parametrize("kernel", [k for k in LADDER if not LADDER[k].whole_tiles_only])
def test_the_pitch_may_differ_from_the_width(kernel):
    memory_m, memory_n, memory_p = (cupy.asarray(values((40, 50 + extra), "float32", extra)) for extra in (0, 3, 6))
    for col in (0, 1, 4):
        M, N, P = memory_m[:33, col : col + 21], memory_n[:21, col : col + 30], memory_p[:33, col : col + 30]
        before = memory_p.get()
        tw.matmul(M, N, out=P, kernel=kernel)
        assert_product(P.get(), M.get(), N.get(), "plus_times")
        after = memory_p.get()
        after[:33, col : col + 30] = before[:33, col : col + 30]
        np.testing.assert_array_equal(after, before)


def test_stacks_broadcast():
    M, N = cupy.asarray(values((5, 1, 7, 9), "float32", 1)), cupy.asarray(values((3, 9, 4), "float32", 2))
    P = tw.matmul(M, N)
    assert P.shape == (5, 3, 7, 4)
    assert_product(P.get(), M.get(), N.get(), "plus_times")
    transposed = cupy.asarray(values((5, 1, 9, 7), "float32", 3)).swapaxes(-1, -2)
    assert_product(tw.matmul(transposed, N).get(), transposed.get(), N.get(), "plus_times")


def test_vectors():
    v, A = cupy.asarray(values((9,), "float64", 1)), cupy.asarray(values((9, 9), "float64", 2))
    for x, y in ((v, A), (A, v), (v, v)):
        np.testing.assert_allclose(tw.matmul(x, y).get(), np.matmul(x.get(), y.get()), rtol=1e-12)


def test_out_may_be_strided_or_an_operand_and_may_be_added_onto():
    A = cupy.asarray(values((33, 33), "float64", 1))
    host = A.get()
    P = cupy.empty((66, 99), "float64")[::-2, 1::3]
    tw.matmul(A, A, out=P)
    np.testing.assert_allclose(P.get(), host @ host, rtol=1e-12)
    tw.matmul(A, A, out=P, accumulate=True)
    np.testing.assert_allclose(P.get(), 2 * (host @ host), rtol=1e-12)
    tw.matmul(A, A, out=A, accumulate=True)
    np.testing.assert_allclose(A.get(), host + host @ host, rtol=1e-12)
    with pytest.raises(tw.DtypeError):
        tw.matmul(A, A, out=cupy.empty((33, 33), "float32"))


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32", "int32", "bool"])
def test_torch_tensors_in_and_out(name):
    dtype = getattr(torch, name)
    M = torch.randn(37, 65, device="cuda").mul(3).to(dtype)
    N = torch.randn(41, 65, device="cuda").mul(3).to(dtype).T
    P = tw.matmul(M, N)
    assert (P.dtype, P.device.type, tuple(P.shape)) == (dtype, "cuda", (37, 41))
    exact = M.double() @ N.double()
    if name == "bool":
        assert torch.equal(P, exact > 0)
    else:
        bound = {"bfloat16": 1e-2, "float16": 2e-3, "float32": 1e-6, "int32": 0}[name]
        assert (P.double() - exact).norm() <= bound * exact.norm()


def test_the_callers_stream_is_used():
    stream = torch.cuda.Stream()
    M = torch.randn(2048, 2048, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        N = M * 2  # still running on this stream when the product is queued
        P = tw.matmul(M, N)
        Q = P + 0
    stream.synchronize()
    torch.testing.assert_close(Q, M @ (M * 2), rtol=1e-3, atol=1e-2)


def test_jax_arrays_in_and_out():
    jax = pytest.importorskip("jax")
    M = jax.numpy.asarray(values((17, 5), "float32", 1))
    P = tw.matmul(M, M.T)
    assert isinstance(P, jax.Array)
    assert P.devices() == M.devices()
    np.testing.assert_allclose(np.asarray(P), np.asarray(M) @ np.asarray(M).T, rtol=1e-5, atol=1e-5)


class TestDeviceArray:
    def test_goes_there_and_back(self):
        for dtype in CARD_DTYPES:
            host = values((5, 7), dtype, 1)
            with tw.to_device(host) as there:
                assert there.numpy().tobytes() == host.tobytes()

    def test_multiplies(self):
        M, N = values((17, 33), "float32", 1), values((33, 9), "float32", 2)
        with tw.to_device(M) as Md, tw.to_device(N) as Nd, tw.matmul(Md, Nd) as Pd:
            assert isinstance(Pd, tw.DeviceArray)
            assert_product(Pd.numpy(), M, N, "plus_times")

    def test_goes_out_by_dlpack_and_the_array_interface(self):
        there = tw.to_device(values((5, 7), "float32", 1))
        for taken in (torch.from_dlpack(there), torch.as_tensor(there, device="cuda"), cupy.from_dlpack(there)):
            np.testing.assert_array_equal(
                np.asarray(taken.get() if hasattr(taken, "get") else taken.cpu()), there.numpy()
            )

    def test_freed_is_freed(self):
        there = tw.to_device(np.ones(3))
        there.free()
        there.free()
        with pytest.raises(tw.DeviceError, match="freed"):
            there.numpy()


def test_mixed_libraries_and_devices_are_refused():
    host, card = np.ones((3, 3), np.float32), cupy.ones((3, 3), "float32")
    with pytest.raises(tw.UsageError, match="M is of numpy and N is of cupy"):
        tw.matmul(host, card)
    with pytest.raises(tw.DeviceError, match="on cpu"):
        tw.matmul(torch.ones(3, 3, device="cuda"), torch.ones(3, 3))
    with pytest.raises(tw.DeviceError, match="device='cpu' was requested"):
        tw.matmul(card, card, device="cpu")


def test_a_card_that_is_not_there():
    with pytest.raises(tw.DeviceError, match="there are"):
        tw.matmul(np.ones((2, 2)), np.ones((2, 2)), device="cuda:99")


def test_what_does_not_fit_says_so_and_leaves_nothing_behind():
    from tilewise.arrays.card import memory

    free, _ = memory("cuda:0")
    with pytest.raises(tw.OutOfMemoryError, match="do not fit"):
        tw.DeviceArray((10**12,), dtype_named("int8"))
    assert memory("cuda:0")[0] >= free - 2**28


def test_same_inputs_same_bits():
    M, N = cupy.asarray(values((333, 777), "float32", 1)), cupy.asarray(values((777, 555), "float32", 2))
    first = tw.matmul(M, N).get()
    for _ in range(5):
        np.testing.assert_array_equal(tw.matmul(M, N).get(), first)
