"""The skeleton of a family with many configurations: the fastest one by its cost model is its plan."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple, Protocol

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch
from tilewise.kernels.family import Family, Offer, own_tiles
from tilewise.kernels.shared.delegated import AnyStep
from tilewise.kernels.shared.placed import Operands
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

Recipe = Callable[[Plan, Operands, Scratch], Sequence[AnyStep]]


class ByConfigs(Family):
    """A family of these has configurations and their expected seconds; it says how P is cut, and how people read it."""

    tensor: ClassVar[bool] = False  # tiles of P are made by tensor cores
    make: ClassVar[Recipe]  # its launches

    def best(self, problem: Problem, machine: Machine, kernel: str | None = None) -> tuple[float, Any]:
        """The least expected seconds, and their configuration; `kernel`: requested by name."""
        return _searched(self, problem, machine)

    def search(self, problem: Problem, machine: Machine) -> tuple[float, Any]:
        """The same, not from the cache."""
        timed = ((self.seconds(config, problem, machine), config) for config in self.configurations(problem, machine))
        return min(timed, key=itemgetter(0))

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

    def passes(self, problem: Problem, machine: Machine, config: Any) -> int:
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
        least = f"{plan.kernel} has the least expected time"
        if self.tensor:
            least = "tensor cores have the least expected time"
            tiles = f"{plan.grid[0]}x{plan.grid[1]} tiles of {tiles}"
        return plan.but(why=f"{'the kernel was requested' if kernel else least}; {tiles}")

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        return self.planned(problem, machine, kernel, tile, *self.best(problem, machine, kernel))

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        seconds, config = self.best(problem, machine)
        return self.offering(problem, machine, seconds, self.kernel_of(config), self.passes(problem, machine, config))

    def offering(self, problem: Problem, machine: Machine, seconds: float, kernel: str, passes: int) -> Offer:
        floor = self.limits(problem, machine)[0]
        return Offer(problem, machine, kernel, seconds if seconds > floor else floor, floor, passes)

    def kernel_of(self, config: Any) -> str:
        return self.name

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[AnyStep]:
        return type(self).make(plan, given, scratch)

    def pinned(self, problem: Problem, machine: Machine, config: Any) -> Plan:
        return self.planned(problem, machine, None, None, self.seconds(config, problem, machine), config)

    def planned(
        self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None, seconds: float, config: Any
    ) -> Plan:
        """The plan of one configuration, expected to take so long."""
        plan = own_tiles(
            self, problem, machine, self.kernel_of(config), tile, self.geometry(problem, machine, config), seconds,
            self.limits(problem, machine), self.notes(problem, config), packs=self.packs(problem, config),
            config=config, passes=self.passes(problem, machine, config), **self.more(problem, config),
        )  # fmt: skip
        return self.reason(plan, kernel, self.tiles(problem, machine, config))

    def more(self, problem: Problem, config: Any) -> dict[str, Any]:
        """Other fields of the plan."""
        return {}


@lru_cache(maxsize=256)  # what is offered first is planned then
def _searched(family: ByConfigs, problem: Problem, machine: Machine) -> tuple[float, Any]:
    return family.search(problem, machine)


class Table(NamedTuple):
    """A formula of expected seconds, infinite where a row does not apply; configurations as its rows; what all rows
    share; and which configuration a row stands for."""

    formula: Formula
    rows: Rows
    given: Row
    config: Callable[[int], Any]


def soonest(tables: Iterable[Table], largest: int) -> tuple[float, Any]:
    """Seconds, and the configuration that takes no longer than any other."""
    found = [(*table.formula.least(table.rows, table.given, largest), table) for table in tables]
    number, seconds, table = min(found, key=itemgetter(1))
    return seconds, table.config(number)


def timed(tables: Iterable[Table]) -> Iterator[tuple[Any, float]]:
    """Every configuration with its expected seconds."""
    for table in tables:
        for number, row in enumerate(table.rows.rows):
            if (seconds := table.formula(row, table.given)) < INFINITE:
                yield table.config(number), seconds


class CostModel(Protocol):
    """What a module of a cost model has."""

    def tables(self, problem: Problem, machine: Machine, /) -> Iterable[Table]:
        """Every configuration that could take the problem: a table for each orientation."""


class Tabled(ByConfigs):
    """A family whose cost model is tables."""

    model: ClassVar[CostModel]

    def tables(self, problem: Problem, machine: Machine) -> Iterable[Table]:
        return self.model.tables(problem, machine)

    def search(self, problem: Problem, machine: Machine) -> tuple[float, Any]:
        return soonest(self.tables(problem, machine), problem.largest)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return tuple(dict.fromkeys(config for config, _ in timed(self.tables(problem, machine))))

    def seconds(self, config: Any, problem: Problem, machine: Machine) -> float:
        """Infinite where the model would not choose from it."""
        every = timed(self.tables(problem, machine))
        return next((seconds for one, seconds in every if one == config), INFINITE)


class Single(ByConfigs):
    """A family with nothing to choose from."""

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return ()


def cut_over_a_cluster(config: Any) -> list[str]:
    blocks = getattr(config, "cluster", 1)
    return [f"k is cut over the {blocks} blocks of a cluster, which add up in order"] if blocks > 1 else []
