"""Base classes of families with many configurations: the plan is the one with the least time by the cost model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.tuning import class_of, preferred
from tilewise.kernels.capabilities import Limits, arithmetic_of
from tilewise.kernels.family import Family, Offer, Searched, own_tiles
from tilewise.kernels.shared.layouts import along_columns
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows


class Arithmetic(NamedTuple):
    """The cores' rate, in steps a second; the products of theirs that make one step; whether a symmetric P takes half
    the steps."""

    rate: float
    products: int = 1
    halved: bool = True


class ByConfigs(Family):
    """A family defines configurations with their expected seconds, the tiling of P, and notes for people."""

    tensor: ClassVar[bool] = False  # tiles of P are made by tensor cores

    def searched(self, problem: Problem, machine: Machine) -> Sequence[Searched]:
        """Its tables for a search among all families, which depend on the kind of a problem, not on its size; of none
        it is asked for an offer."""
        return ()

    @abstractmethod
    def best(self, problem: Problem, machine: Machine, kernel: str | None = None) -> tuple[float, Any]:
        """The least expected seconds, and their configuration; `kernel`: requested by name."""

    def geometry(self, problem: Problem, machine: Machine, config: Any) -> Geometry:
        """The work of one block."""
        made: Geometry = config.geometry
        return made

    def tiles(self, problem: Problem, machine: Machine, config: Any) -> str:
        """The tiling of P, as text."""
        block = self.geometry(problem, machine, config)
        return f"{block.rows}x{block.cols}"

    def notes(self, problem: Problem, config: Any) -> list[str]:
        """Notes of the plan on the configuration."""
        return cluster_note(config)

    def passes(self, problem: Problem, machine: Machine, config: Any) -> int:
        """Launches besides the product's own."""
        return 0

    def packs(self, problem: Problem, config: Any) -> tuple[str, ...]:
        """Operands that are packed first."""
        return ()

    def arithmetic(self, problem: Problem, machine: Machine) -> Arithmetic:
        """What bounds its arithmetic, for problems of a kind."""
        return Arithmetic(machine.peak_rate(problem.dtype.name))

    def limits(self, problem: Problem, machine: Machine) -> tuple[float, str]:
        """The floor in seconds, and whether arithmetic or memory sets it."""
        limits = self.demands(problem, machine)
        compute, memory = arithmetic_of(problem, limits), problem.least_bytes / machine.bandwidth
        return max(compute, memory), "arithmetic" if compute >= memory else "memory"

    def demands(self, problem: Problem, machine: Machine) -> Limits:
        """Its limits for problems of a kind, as a search has them."""
        return self.can.limits(*self.arithmetic(problem, machine), machine.bandwidth)

    def reason(self, plan: Plan, kernel: str | None, tiles: str) -> Plan:
        """The plan with the reason for its choice; `kernel`: requested by name."""
        least = f"{plan.kernel} has the least expected time"
        if self.tensor:
            least = "tensor cores have the least expected time"
            tiles = f"{plan.grid[0]}x{plan.grid[1]} tiles of {tiles}"
        return plan.but(why=f"{'the kernel was requested' if kernel else least}; {tiles}")

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        return self.planned(problem, machine, kernel, tile, *self.best(problem, machine, kernel))

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        seconds, config = self.best(problem, machine)
        floor, passes = self.limits(problem, machine)[0], self.passes(problem, machine, config)
        return Offer(problem, machine, self.kernel_of(config), max(seconds, floor), floor, passes, config)

    def accepted(self, offer: Offer, tile: int | None) -> Plan:
        if offer.config is None:
            return super().accepted(offer, tile)
        return self.planned(offer.problem, offer.machine, None, tile, offer.predicted, offer.config)

    def kernel_of(self, config: Any) -> str:
        return self.name

    def pinned(self, problem: Problem, machine: Machine, config: Any) -> Plan:
        return self.planned(problem, machine, None, None, self.seconds(config, problem, machine), config)

    def planned(
        self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None, seconds: float, config: Any
    ) -> Plan:
        """The plan of one configuration."""
        plan = own_tiles(
            self, problem, machine, self.kernel_of(config), tile, self.geometry(problem, machine, config), seconds,
            self.limits(problem, machine), self.notes(problem, config), packs=self.packs(problem, config),
            config=config, passes=self.passes(problem, machine, config), **self.more(problem, config),
        )  # fmt: skip
        return self.reason(plan, kernel, self.tiles(problem, machine, config))

    def more(self, problem: Problem, config: Any) -> dict[str, Any]:
        """Other fields of the plan."""
        return {}


class Table(NamedTuple):
    """A formula of expected seconds (infinite where a row does not apply), its rows, the numbers that all rows share,
    and the configuration of a row's number."""

    formula: Formula
    rows: Rows
    given: Row
    config: Callable[[int], Any]


def fastest(tables: Iterable[Table], largest: int) -> tuple[float, Any]:
    """The least expected seconds, and their configuration."""
    best: tuple[float, int, Table | None] = INFINITE, 0, None
    for table in tables:
        number, seconds = table.formula.least(table.rows, table.given, largest)
        if seconds < INFINITE:
            seconds = table.formula.final(table.rows.rows[number], table.given, seconds)
        if best[2] is None or seconds < best[0]:
            best = seconds, number, table
    assert best[2] is not None
    return best[0], best[2].config(best[1])


def chosen(tables: Sequence[Table], problem: Problem, parts: int = 1) -> tuple[float, Any]:
    """The same; where a problem's sums have an order, of those that cut k into so many parts, each a chain. (An empty P
    may have none of them.)"""
    able: list[tuple[float, Any]] = []
    if problem.ordered:
        every = timed(tables, problem.largest)
        able = [(time, config) for config, time in every if config.in_order and config.splits == parts]
    return min(able, key=itemgetter(0)) if able else fastest(tables, problem.largest)


def timed(tables: Iterable[Table], largest: int = 0) -> Iterator[tuple[Any, float]]:
    """Every configuration with its expected seconds; `largest`: as of `Formula.least`."""
    for table in tables:
        for number, seconds in enumerate(table.formula.each(table.rows, table.given, largest)):
            if seconds < INFINITE:
                yield table.config(number), seconds


def tuned_class(kernel: str, p: Problem, aligned: bool) -> str:
    """The key of the product's class in tuned tables; `aligned`: both operands are taken as they are."""
    columns = along_columns(p.layout_m, p.m, p.k), along_columns(p.layout_n, p.k, p.n)
    layouts = "".join("NT"[transposed] for transposed in columns)
    return class_of(kernel, p.dtype.name, (p.m, p.k, p.n), layouts, aligned)


def preferring_measured(
    kernel: str,
    class_of_problem: Callable[[Problem], str],
    p: Problem,
    machine: Machine,
    tables: Callable[[], Iterable[Table]],
) -> tuple[float, Any] | None:
    """The least expected seconds and their configuration, where a tuned table has the product's class: it decides
    between configurations that are expected to be close."""
    table = machine.tuned
    if table is None or not table.measured(f"{kernel} {p.dtype.name}", (p.m, p.k, p.n)):
        return None
    key = class_of_problem(p)
    if key not in table.entries:
        return None
    every = [(seconds, number, config) for number, (config, seconds) in enumerate(timed(tables(), p.largest))]
    seconds, best, chosen = preferred(every, key, table)
    return seconds, replace(best, tuned=chosen)


def tables_for(every: Sequence[Searched], problem: Problem) -> list[Table]:
    """Those of a kind's tables that a problem has."""
    made = list[Table]()
    for formula, rows, figures, config, _ in every:
        assert formula.given is not None
        if formula.takes(problem, figures):
            made.append(Table(formula, rows, formula.given(problem, figures), partial(_config, config, problem)))
    return made


def _config(config: Callable[[int, Problem], Any], problem: Problem, number: int) -> Any:
    return config(number, problem)


class Tabled(ByConfigs):
    """A family whose cost model is a set of tables."""

    def tables(self, problem: Problem, machine: Machine) -> Sequence[Table]:
        return tables_for(self.searched(problem, machine), problem)

    def best(self, problem: Problem, machine: Machine, kernel: str | None = None) -> tuple[float, Any]:
        return chosen(self.tables(problem, machine), problem)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return tuple(dict.fromkeys(config for config, _ in timed(self.tables(problem, machine), problem.largest)))

    def seconds(self, config: Any, problem: Problem, machine: Machine) -> float:
        """Infinite for a configuration that is not in the tables."""
        every = timed(self.tables(problem, machine), problem.largest)
        return next((seconds for one, seconds in every if one == config), INFINITE)


def cluster_note(config: Any) -> list[str]:
    blocks = getattr(config, "cluster", 1)
    return [f"k is cut over the {blocks} blocks of a cluster, which add up in order"] if blocks > 1 else []
