"""This machine for the planner: vector width, threads, and measured rates."""

from __future__ import annotations

import platform
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tilewise.backends.cpu.runtime.pool import available_cores, num_threads
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.core.machine import Machine
from tilewise.system.timing import least_seconds

NOMINAL = Machine("cpu", "this CPU", 1, 1e10, {"": 1e9}, source="nominal")


def host_machine(measured: bool = False) -> Machine:
    """The vector registers and threads; `measured`: with the rates and bandwidth of this machine."""
    target = host_target()
    vectors = target.vector_bytes, target.registers, target.byte_dots
    return _with_vectors(_measured() if measured else NOMINAL, num_threads(), *vectors)


@lru_cache(maxsize=16)
def _with_vectors(machine: Machine, threads: int, vector_bytes: int, registers: int, byte_dots: bool) -> Machine:
    return replace(machine, units=threads, vector_bytes=vector_bytes, registers=registers, byte_dots=byte_dots)


@lru_cache(maxsize=1)
def _measured() -> Machine:
    """A core's multiply-adds and copy bandwidth, measured in about 30 ms, times the cores."""
    from tilewise.backends.cpu.peak import measured_rate

    cores = available_cores()
    big = np.random.default_rng(0).random(2_000_000)
    copy = np.empty_like(big)
    bandwidth = cores * 2 * big.nbytes / least_seconds(lambda: np.copyto(copy, big))
    rate = cores * measured_rate()
    rates = {"": rate, "float64": rate / 2, "int64": rate / 2, "complex64": rate / 4, "complex128": rate / 8}
    return Machine("cpu", _cpu_name(), cores, bandwidth, rates, source="multiply-adds and bandwidth measured")


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
