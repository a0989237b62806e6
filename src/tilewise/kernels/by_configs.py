"""The skeleton of a family with many configurations: its cost model is a module, the fastest one is its plan."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Protocol

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.kernels.bounds import Bound
from tilewise.kernels.family import Family, Offer, own_tiles


class CostModel(Protocol):
    """What a module of a cost model has."""

    def best_config(self, problem: Problem, machine: Machine, /) -> tuple[float, Any]:
        """Seconds, and the configuration that takes no longer than any other."""

    def configs(self, problem: Problem, machine: Machine, /) -> Iterable[Any]:
        """Every configuration that could take the problem."""

    def seconds(self, config: Any, problem: Problem, machine: Machine, /) -> float:
        """The expected time of one."""

    def bounds(self, some: Problem, machine: Machine, /) -> tuple[Bound, ...]:
        """Lower bounds of `seconds`."""


class ByConfigs(Family):
    """A family of these has a `model`, or overrides what that is for; it says how P is cut, and how people read it."""

    model: ClassVar[CostModel]

    def best(self, problem: Problem, machine: Machine) -> tuple[float, Any]:
        return self.model.best_config(problem, machine)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return tuple(self.model.configs(problem, machine))

    def seconds(self, config: Any, problem: Problem, machine: Machine) -> float:
        return self.model.seconds(config, problem, machine)

    def bounds(self, some: Problem, machine: Machine) -> tuple[Bound, ...]:
        return self.model.bounds(some, machine)

    def geometry(self, problem: Problem, machine: Machine, config: Any) -> Geometry:
        """What one block of the configuration does."""
        made: Geometry = config.geometry
        return made

    @abstractmethod
    def tiles(self, problem: Problem, machine: Machine, config: Any) -> str:
        """How P is cut, as text."""

    def notes(self, problem: Problem, config: Any) -> list[str]:
        """What else people should know of the configuration."""
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
        """The plan with why it is this one; `kernel`: requested by name."""
        asked = "the kernel was asked for" if kernel else f"{plan.kernel} has the least expected time"
        return plan.but(why=f"{asked}; {tiles}")

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        return self.planned(problem, machine, kernel, tile, *self.best(problem, machine))

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        seconds, config = self.best(problem, machine)
        return self.offering(problem, machine, seconds, self.passes(problem, config))

    def offering(self, problem: Problem, machine: Machine, seconds: float, passes: int) -> Offer:
        floor = self.limits(problem, machine)[0]
        return Offer(problem, machine, self.name, seconds if seconds > floor else floor, floor, passes)

    def pinned(self, problem: Problem, machine: Machine, config: Any) -> Plan:
        return self.planned(problem, machine, None, None, self.seconds(config, problem, machine), config)

    def planned(
        self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None, seconds: float, config: Any
    ) -> Plan:
        """The plan of one configuration, expected to take so long."""
        plan = own_tiles(
            self, problem, machine, next(iter(self.kernels)), tile, self.geometry(problem, machine, config), seconds,
            self.limits(problem, machine), self.notes(problem, config), packs=self.packs(problem, config),
            config=config, passes=self.passes(problem, config), **self.more(problem, config),
        )  # fmt: skip
        return self.reason(plan, kernel, self.tiles(problem, machine, config))

    def more(self, problem: Problem, config: Any) -> dict[str, Any]:
        """Other fields of the plan."""
        return {}


class Single(ByConfigs):
    """A family with nothing to choose from."""

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return ()

    def bounds(self, some: Problem, machine: Machine) -> tuple[Bound, ...]:
        return (Bound(),)


def cut_over_a_cluster(config: Any) -> list[str]:
    blocks = getattr(config, "cluster", 1)
    return [f"k is cut over the {blocks} blocks of a cluster, which add up in order"] if blocks > 1 else []
