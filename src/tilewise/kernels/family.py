"""The interface of a kernel family on a card: capabilities, cost model, text and launches.

Only the registry imports the families.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from tilewise.algebra.dtypes import DType
from tilewise.core.machine import Machine
from tilewise.core.plan import DEFAULT_TILE, Geometry, Plan, assemble
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch
from tilewise.kernels.capabilities import Capabilities, why_not
from tilewise.kernels.shared.delegated import AnyStep
from tilewise.kernels.shared.placed import Operands
from tilewise.system.machine_code import Formula, Row, Rows


class Offer(NamedTuple):
    """The expected time of a family's best plan, without the plan."""

    problem: Problem
    machine: Machine
    kernel: str
    predicted: float
    floor: float
    passes: int = 0
    config: Any = None  # where it is known


class Searched(NamedTuple):
    """A table of a family for all problems of a kind: a formula, its rows, what the formula takes of kind and machine,
    and the configuration of a row's number for a problem."""

    formula: Formula
    rows: Rows
    figures: Row
    config: Callable[[int, Problem], Any]
    kernel: str = ""  # where the family has several


def numbered(configs: Sequence[Any]) -> Callable[[int, Problem], Any]:
    """The configurations of rows that do not depend on a problem."""
    return lambda number, problem: configs[number]


class Family(ABC):
    """A kernel, or a few with one cost model."""

    name: ClassVar[str]
    kernels: ClassVar[Mapping[str, str]]  # values of kernel=, each with a sentence that describes it
    can: ClassVar[Capabilities] = Capabilities()
    falls_back: ClassVar[bool] = False  # its recipes of stacks contain a `Fallback`
    beside_tile: ClassVar[bool] = False  # competes also where tile= is given
    teaches: ClassVar[bool] = False  # chosen only by kernel= or tile=, or where no other family takes the problem

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        """The reason why it does not take the problem, or None; `kernel`: requested by name."""
        return why_not(self.can, problem, machine, kernel or next(iter(self.kernels)))

    def suits(self, problem: Problem, machine: Machine) -> bool:
        """Whether it competes for problems of a kind that it supports, where no kernel is requested."""
        return True

    def takes(self, problem: Problem, machine: Machine) -> bool:
        """Whether it competes for a problem that it supports, where no kernel is requested."""
        return True

    @abstractmethod
    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        """Its best plan by its own model."""

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        """The expected time of `plan`; overridden where that is faster than planning."""
        plan = self.plan(problem, machine, None, tile)
        return Offer(problem, machine, plan.kernel, plan.predicted, plan.floor, plan.passes)

    def accepted(self, offer: Offer, tile: int | None) -> Plan:
        """The plan that was offered."""
        return self.plan(offer.problem, offer.machine, None, tile)

    def elements(self, problem: Problem, machine: Machine) -> tuple[DType, DType]:
        """The dtypes that M and N are packed to, if they are."""
        return problem.dtype, problem.dtype

    @abstractmethod
    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[AnyStep]:
        """The launches of one of its plans; the only place that renders its text."""

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        """Every kernel text that plans of the problem's dtype, precision and semiring may use, for any shape, layout,
        stride and offset: what `tilewise warm` builds. Other epilogues, and stacks with accumulate, are compiled on
        request."""
        return ()

    # For `tilewise tune`; a family with nothing to tune does not override these.

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        """Its configurations for the problem."""
        return ()

    def seconds(self, config: Any, problem: Problem, machine: Machine) -> float:
        """The expected seconds of a configuration."""
        raise TypeError(f"{self.name} has no configurations to choose from")

    def tuning_class(self, problem: Problem) -> str | None:
        """The key of a measured choice in a tuned table; None where none is looked up."""
        return None

    def pinned(self, problem: Problem, machine: Machine, config: Any) -> Plan:
        """The plan of this configuration."""
        raise TypeError(f"{self.name} has no configurations to choose from")


def own_tiles(
    family: Family,
    problem: Problem,
    machine: Machine,
    kernel: str,
    tile: int | None,
    geometry: Geometry,
    predicted: float,
    limits: tuple[float, str],
    notes: Iterable[str],
    **fields: Any,
) -> Plan:
    """The plan of a kernel that ignores TILE_WIDTH; `limits`: the floor, and what sets it."""
    floor, bound = limits
    idea, width = family.kernels[kernel], DEFAULT_TILE if tile is None else tile
    plan = assemble(problem, machine, "cuda", kernel, idea, width, geometry)
    if tile is not None:
        notes = (*notes, f"tile={tile} is TILE_WIDTH of the course's kernels; this one has tiles of its own")
    return plan.but(
        predicted=max(predicted, floor),
        floor=floor,
        bound=bound,
        notes=tuple(notes),
        family=family.name,
        cut=f"a block makes {geometry.rows}x{geometry.cols} of P",
        **fields,
    )


def fused_notes(problem: Problem) -> list[str]:
    return [f"P is {problem.epilogue.formula()}, made before it is stored"] if problem.epilogue else []


def passes(routes: tuple[str, str], parts: int) -> int:
    """Launches besides the product's own: one to move operands, one to add up the parts of k."""
    return (not IN_PLACE.issuperset(routes)) + (parts > 1)


IN_PLACE = frozenset(("as it is", "by classes", "from registers"))


def of_other_dtypes(problem: Problem) -> tuple[str, ...]:
    """The operands that are not of the product's dtype."""
    dtypes = ("M", problem.dtype_m), ("N", problem.dtype_n)
    return tuple(name for name, dtype in dtypes if dtype != problem.dtype)


def packed_operands(routes: tuple[str, str]) -> tuple[str, ...]:
    """The operands that are packed first."""
    return tuple(name for name, how in zip("MN", routes, strict=True) if how == "packed")
