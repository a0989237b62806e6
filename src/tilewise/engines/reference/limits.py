"""What this machine's NumPy can do, measured: the floor that a reference plan is held against."""

from __future__ import annotations

import os
import platform
import time
from functools import lru_cache

import numpy as np

from tilewise.machine import Machine

NOMINAL = Machine("cpu", "this CPU", 1, 1e10, {"": 1e9}, source="nominal")


@lru_cache(maxsize=1)
def measured_machine() -> Machine:
    """One core's copy bandwidth and its rate of in-cache multiply-and-add ufuncs; takes about 50 ms."""
    big = np.random.default_rng(0).random(4_000_000)
    copy = np.empty_like(big)
    bandwidth = 2 * big.nbytes / _best(lambda: np.copyto(copy, big), 5)
    rates = {}
    for dtype in ("float32", "float64", "int32"):
        x, y = (np.arange(32_768, dtype=dtype) for _ in range(2))
        product = np.empty_like(x)

        def step(x: np.ndarray = x, y: np.ndarray = y, product: np.ndarray = product) -> None:
            np.multiply(x, y, out=product)
            np.add(product, x, out=product)

        rates[dtype] = x.size / _best(step, 50)
    rates[""] = rates["float64"]
    return Machine("cpu", cpu_name(), available_cores(), bandwidth, rates, source="measured here")


def _best(action: object, repeats: int) -> float:
    assert callable(action)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return max(min(times), 1e-9)


def cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
