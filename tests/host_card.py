"""The card's launches on the host: kernels behind the C++ compiler, memory from NumPy."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager

import numpy as np

from behind_a_compiler import built
from tilewise.algebra.dtypes import dtype_of
from tilewise.engines.cuda import few, launch, placed, plain
from tilewise.planning import make_plan
from tilewise.problem import Layout, Problem


class HostBuffer:
    def __init__(self, nbytes):
        self.memory = np.full(nbytes + 64, 0xFF, np.uint8)
        self.handle = -(-self.memory.ctypes.data // 64) * 64

    def close(self, stream=None):
        self.memory = None


@contextmanager
def host_scratch(needs, device, stream):
    yield [HostBuffer(nbytes) for nbytes in needs.values()]


class HostLaunch:
    def __init__(self, function, grid, block, arguments, stream, shared_bytes=0, overlap=False):
        self.call = (function, grid, block, arguments)

    def __call__(self):
        function, grid, block, arguments = self.call
        function(grid, block, arguments)


class HostFill:
    def __init__(self, pointer, stream):
        self.word = ctypes.c_uint.from_address(pointer)

    def __call__(self):
        self.word.value = 0


def put_on_the_host(monkeypatch, folder, *more):
    """Everything that would reach for a card reaches for the host instead."""
    known = {}

    def kernel_function(source, name, device, shared_bytes=0):
        if (source, name) not in known:
            known[source, name] = built(source, name, folder)
        return known[source, name]

    for module in (few, plain, launch, *more):
        monkeypatch.setattr(module, "kernel_function", kernel_function)
        monkeypatch.setattr(module, "Launch", HostLaunch)
    monkeypatch.setattr(plain, "Fill", HostFill)
    monkeypatch.setattr(placed, "scratch", host_scratch)
    monkeypatch.setattr(launch, "open_card", lambda device: None)


class HostStream:
    handle = 0

    def sync(self):
        pass


class HostDeviceArray:
    """A DeviceArray whose card is the host."""

    def __init__(self, shape, dtype, device="cuda:0"):
        self.shape, self.device, self.array = shape, device, np.full(shape, 0x55, dtype.numpy)

    @property
    def pointer(self):
        return self.array.ctypes.data

    def numpy(self):
        return self.array.copy()

    def copy_from(self, host):
        self.array[...] = host

    def free(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def layout_of(a):
    strides = tuple(s // a.itemsize for s in a.strides)
    return Layout(strides[-2], strides[-1], strides[:-2], min(16, a.ctypes.data & -a.ctypes.data))


def multiplied(M, N, semiring, machine, P, *, kernel=None, where=None, accumulate=False, nonnegative=False):
    """P = M ⊗ N by the plan's kernels; returns the plan."""
    problem = Problem(
        M.shape[-2], M.shape[-1], N.shape[-1], P.shape[:-2], dtype_of(M.dtype), dtype_of(N.dtype), semiring,
        layout_of(M), layout_of(N), layout_of(P), accumulate, "ieee", where is not None, nonnegative,
    )  # fmt: skip
    plan = make_plan(problem, machine, kernel)
    pointers = (M.ctypes.data, N.ctypes.data, P.ctypes.data)
    launch.prepare(plan, *pointers, "cuda:0", None, 0 if where is None else where.ctypes.data)()
    return plan
