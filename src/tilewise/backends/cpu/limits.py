"""This machine for the planner: vector width, threads, and measured rates."""

from __future__ import annotations

import platform
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tilewise.backends.cpu.runtime.pool import available_cores, num_threads
from tilewise.backends.cpu.runtime.systems import system_of
from tilewise.backends.cpu.runtime.target import Target, host_target
from tilewise.core.machine import Machine
from tilewise.system.timing import least_seconds

# steps per step of float32 on the vector units; of float32 as three bfloat16 there are six products
AMX_RATES = {"bfloat16": 16, "float32 as bfloat16": 16 / 6, "int8": 32, "uint8": 32}
NOMINAL = Machine("cpu", "this CPU", 1, 1e10, {"": 1e9}, source="nominal")


def host_machine(measured: bool = False) -> Machine:
    """The vector registers and threads; `measured`: with the rates and bandwidth of this machine."""
    return with_instructions(_measured() if measured else NOMINAL, num_threads(), host_target())


@lru_cache(maxsize=16)
def with_instructions(machine: Machine, threads: int, target: Target) -> Machine:
    """The machine with so many threads and a target's instructions; with AMX only if the system permits it."""
    amx = target.amx and system_of().permits_amx()
    rates = {dtype: times * machine.step_rate("float32") for dtype, times in AMX_RATES.items()} if amx else {}
    refused = "AMX is not used: the system does not permit it to this process" if target.amx and not amx else ""
    return replace(
        machine, units=threads, vector_bytes=target.vector_bytes, registers=target.registers,
        byte_dots=target.byte_dots, matrix_tiles=amx, refused=refused, tensor_rates=rates,
    )  # fmt: skip


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
