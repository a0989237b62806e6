"""Families that multiply in one of many ways, mostly in one launch: the soonest by their own formula is their plan."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.kernels.family import Family, Offer, own_tiles


class ByConfigs(Family):
    """A family of these says which way is the soonest, what a block of it does, and how people read it."""

    @abstractmethod
    def best(self, problem: Problem, machine: Machine) -> tuple[float, Any]:
        """Seconds, and the way that takes no longer than any other."""

    @abstractmethod
    def geometry(self, problem: Problem, config: Any) -> Geometry:
        """What one block of the way does."""

    @abstractmethod
    def tiles(self, problem: Problem, config: Any) -> str:
        """How P is cut, in words."""

    def kernel_for(self, problem: Problem) -> str:
        """Its kernel, where it has more than one."""
        return next(iter(self.kernels))

    def notes(self, problem: Problem, config: Any) -> list[str]:
        """What else people should know of the way."""
        return cut_over_a_cluster(config)

    def passes(self, problem: Problem, config: Any) -> int:
        """Launches beside the product's own."""
        return 0

    def packs(self, problem: Problem, config: Any) -> tuple[str, ...]:
        """Operands that are packed first."""
        return ()

    def limits(self, problem: Problem, machine: Machine) -> tuple[float, str]:
        """The least seconds that the machine allows, and what sets them."""
        return machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)

    def reason(self, plan: Plan, kernel: str | None, tiles: str) -> Plan:
        """The plan with why it is this one; `kernel`: asked for by name."""
        asked = "the kernel was asked for" if kernel else f"{plan.kernel} has the least expected time"
        return plan.but(why=f"{asked}; {tiles}")

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        return self._planned(problem, machine, kernel, tile, *self.best(problem, machine))

    def least(self, problem: Problem, machine: Machine) -> float:
        """The seconds of `best`; a family that takes long to say which way it is overrides this."""
        return self.best(problem, machine)[0]

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        seconds = self.least(problem, machine)
        floor, _ = self.limits(problem, machine)
        return Offer(problem, machine, self.kernel_for(problem), max(seconds, floor), floor)

    def pinned(self, problem: Problem, machine: Machine, config: Any) -> Plan:
        return self._planned(problem, machine, None, None, self.seconds(config, problem, machine), config)

    def _planned(
        self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None, seconds: float, config: Any
    ) -> Plan:
        limits = self.limits(problem, machine)
        name, geometry, notes = self.kernel_for(problem), self.geometry(problem, config), self.notes(problem, config)
        plan = own_tiles(
            self,
            problem,
            machine,
            name,
            tile,
            geometry,
            seconds,
            limits,
            notes,
            packs=self.packs(problem, config),
            config=config,
            passes=self.passes(problem, config),
        )
        return self.reason(plan, kernel, self.tiles(problem, config))


def cut_over_a_cluster(config: Any) -> list[str]:
    blocks = getattr(config, "cluster", 1)
    return [f"k is cut over the {blocks} blocks of a cluster, which add up in order"] if blocks > 1 else []
