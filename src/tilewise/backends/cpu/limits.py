"""This machine for the planner: how wide its vectors are, and how many threads may work."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tilewise.backends.cpu.runtime.pool import num_threads
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.core.machine import Machine


def host_machine(machine: Machine) -> Machine:
    """`machine` with what a compiled kernel needs to know."""
    target = host_target()
    known = _with_vectors(machine, num_threads(), target.vector_bytes, target.registers, target.byte_dots)
    return known if machine.source == "nominal" else _by_its_ports(known, machine.units)


@lru_cache(maxsize=16)
def _with_vectors(machine: Machine, threads: int, vector_bytes: int, registers: int, byte_dots: bool) -> Machine:
    return replace(machine, units=threads, vector_bytes=vector_bytes, registers=registers, byte_dots=byte_dots)


def _by_its_ports(machine: Machine, cores: int) -> Machine:
    """With rates that were measured, where the clock of /proc/cpuinfo and two units a core would be a guess."""
    from tilewise.backends.cpu.peak import measured_rate

    ratio = cores * measured_rate() / machine.step_rates[""]
    rates = {name: rate * ratio for name, rate in machine.step_rates.items()}
    return replace(machine, step_rates=rates, source="multiply-adds and bandwidth measured")
