"""Tensor cores by mma.sync: every card from Turing on, and float64 on Hopper."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from tilewise.algebra.dtypes import DType
from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.kernels.by_configs import Arithmetic, Table, Tabled
from tilewise.kernels.capabilities import HOPPER, TURING, Capabilities, elements_of, tensor_name
from tilewise.kernels.family import Searched, fused_notes, packed_operands, passes
from tilewise.kernels.mma_gemm.mma_sync import model as mma
from tilewise.kernels.mma_gemm.mma_sync.recipe import launches
from tilewise.kernels.mma_gemm.mma_sync.text import texts as every_mma_sync
from tilewise.kernels.shared.fragments import ATOMS
from tilewise.kernels.shared.triangle import symmetric_note


class MmaSync(Tabled):
    name = mma.KERNEL
    kernels: ClassVar = {name: mma.IDEA}
    launches = staticmethod(launches)
    can = Capabilities(
        TURING, tensor_cores=True, since=tuple((name, atom.since) for name, atom in ATOMS.items()),
        float32_as=("tf32",), plus_times=True, fuses=True,
    )  # fmt: skip
    beside_tile = tensor = True

    def best(self, problem: Problem, machine: Machine, kernel: str | None = None) -> tuple[float, mma.MmaConfig]:
        return mma.best_config(problem, machine, kernel is not None)

    def pinned(self, problem: Problem, machine: Machine, config: mma.MmaConfig) -> Plan:
        return self.planned(problem, machine, self.name, None, 0.0, config)

    def geometry(self, problem: Problem, machine: Machine, config: mma.MmaConfig) -> Geometry:
        return config.tile.geometry(machine.arch, mma.size_of(problem, machine))

    def notes(self, problem: Problem, config: mma.MmaConfig) -> list[str]:
        notes = config.notes() + fused_notes(problem)
        return [*notes, symmetric_note(problem.m, config.tile.rows, config.tile.cols)] if problem.symmetric else notes

    def elements(self, problem: Problem, machine: Machine) -> tuple[DType, DType]:
        return elements_of(problem, machine)

    def arithmetic(self, problem: Problem, machine: Machine) -> Arithmetic:
        rate = machine.tensor_rate(tensor_name(problem, machine))
        hopper = arch_number(machine.arch) == HOPPER
        return super().arithmetic(problem, machine) if hopper or not rate else Arithmetic(rate)

    def packs(self, problem: Problem, config: mma.MmaConfig) -> tuple[str, ...]:
        return packed_operands(config.routes)

    def passes(self, problem: Problem, machine: Machine, config: mma.MmaConfig) -> int:
        return passes(config.routes, config.parts)

    def tiles(self, problem: Problem, machine: Machine, config: mma.MmaConfig) -> str:
        chosen_by = "tuned" if config.tuned else "by the model"
        return f"{config.tile.rows}x{config.tile.cols}, {config.tile.resident} a multiprocessor ({chosen_by})"

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        return every_mma_sync(problem, machine)

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        return mma.searched(problem, machine)

    def tables(self, problem: Problem, machine: Machine) -> list[Table]:
        return mma.tables(problem, machine)

    def tuning_class(self, problem: Problem) -> str:
        return mma.tuning_class(problem)
