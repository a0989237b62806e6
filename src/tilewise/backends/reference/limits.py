"""What this machine's NumPy can do, measured: the floor that a reference plan is held against."""

from __future__ import annotations

import os
import platform
from functools import lru_cache

import numpy as np

from tilewise.core.machine import Machine
from tilewise.system.timing import least_seconds

NOMINAL = Machine("cpu", "this CPU", 1, 1e10, {"": 1e9}, source="nominal")


@lru_cache(maxsize=1)
def measured_machine() -> Machine:
    """The peak by clock and vector width, and a core's copy bandwidth, measured in about 20 ms, times the cores."""
    cores, (lanes, clock) = available_cores(), vector_lanes_and_clock()
    big = np.random.default_rng(0).random(2_000_000)
    copy = np.empty_like(big)
    bandwidth = cores * 2 * big.nbytes / least_seconds(lambda: np.copyto(copy, big))
    rate = cores * clock * 2 * lanes  # two vector units a core, a step each
    rates = {"": rate, "float64": rate / 2, "int64": rate / 2, "complex64": rate / 4, "complex128": rate / 8}
    return Machine("cpu", cpu_name(), cores, bandwidth, rates, source="clock and vector width; bandwidth measured")


def vector_lanes_and_clock() -> tuple[int, float]:
    """float32 lanes of a vector and cycles a second, by /proc/cpuinfo; else 4 lanes at 3 GHz."""
    lanes, clock = 4, 3e9
    for line in _cpuinfo():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            lanes = 16 if "avx512f" in value else 8 if "avx2" in value else 4
        elif name.strip() == "cpu MHz":
            clock = max(clock, float(value) * 1e6)
    return lanes, clock


def _cpuinfo() -> list[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            return info.readlines()
    except OSError:
        return []


def cpu_name() -> str:
    for line in _cpuinfo():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
