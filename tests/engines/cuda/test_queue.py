"""What is launched stays loaded: the driver knows a function by its address alone."""

from __future__ import annotations

import ctypes
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from tilewise.engines.cuda import queue


class Kernel:
    handle = 5


@pytest.fixture
def loaded(monkeypatch):
    """Weak references to the kernels that were loaded, by a driver that only nods."""
    made = []

    def load(source, name, device):
        kernel = Kernel()
        made.append(weakref.ref(kernel))
        return kernel

    driver = SimpleNamespace(cuKernelGetFunction=lambda handle: (0, 7), cuLaunchKernel=lambda *_: (0,))
    monkeypatch.setattr(queue, "load_kernel", load)
    monkeypatch.setattr(queue, "_driver", lambda: driver)
    queue._function.cache_clear()
    yield made
    queue._function.cache_clear()


def test_a_launch_keeps_its_kernel_however_many_come_after_it(loaded):
    stream = SimpleNamespace(handle=0)
    launch = queue.Launch(queue.kernel_function("0", "k", "cuda:0"), (1,), (32,), (ctypes.c_int(1),), stream)
    for number in range(1, 1100):
        queue.kernel_function(str(number), "k", "cuda:0")
    gc.collect()
    assert loaded[0]() is not None
    assert loaded[1]() is None  # nobody holds that one any more
    launch()
    del launch
    gc.collect()
    assert loaded[0]() is None


def test_threads_that_ask_at_once_share_a_kernel(loaded):
    with ThreadPoolExecutor(8) as pool:
        functions = list(pool.map(lambda _: queue.kernel_function("same", "k", "cuda:0"), range(64)))
    assert len({id(function) for function in functions}) == len(loaded) == 1
