"""This machine as the planner sees it: how wide its vectors are, and how many threads may work."""

from __future__ import annotations

from dataclasses import replace

from tilewise.engines.cpu.runtime.pool import num_threads
from tilewise.machine import Machine


def host_machine(machine: Machine) -> Machine:
    """`machine` with what a compiled kernel needs to know; as it is where llvmlite cannot be had."""
    try:
        from tilewise.engines.cpu.runtime.target import host_target

        target = host_target()
    except ImportError:
        return machine
    return replace(machine, units=num_threads(), vector_bytes=target.vector_bytes, registers=target.registers)
