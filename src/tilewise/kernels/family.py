"""What every kernel on a card is to the rest: one interface over its cost model, its text and its launches.

Nothing outside names one of them but the registry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from tilewise.algebra.dtypes import DType
from tilewise.core.machine import Machine
from tilewise.core.plan import DEFAULT_TILE, Geometry, Plan, assemble
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch
from tilewise.kernels.capabilities import Capabilities, why_not
from tilewise.kernels.shared.delegated import AnyStep
from tilewise.kernels.shared.placed import Operands


class Offer(NamedTuple):
    """What a family's best plan would take: the least that choosing among families needs."""

    problem: Problem
    machine: Machine
    kernel: str
    predicted: float
    floor: float
    passes: int = 0


class Family(ABC):
    """One kernel, or a few that share a cost model."""

    name: ClassVar[str]  # of its folder
    kernels: ClassVar[Mapping[str, str]]  # what kernel= may name, each with its idea in a sentence
    can: ClassVar[Capabilities] = Capabilities()  # what it takes
    falls_back: ClassVar[bool] = False  # a `Fallback` is queued behind its stacks
    beside_tile: ClassVar[bool] = False  # is offered where tile= is given, too
    teaches: ClassVar[bool] = (
        False  # is chosen only where kernel= or tile= asks for it, or nothing else takes a problem
    )

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        """Why it does not take the problem, or None when it does; `kernel`: requested by name."""
        return why_not(self.can, problem, machine, kernel or next(iter(self.kernels)))

    def takes(self, problem: Problem, machine: Machine) -> bool:
        """Whether it competes for a problem that it can take, where no kernel is named."""
        return True

    @abstractmethod
    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        """Its best plan by its own model."""

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        """What `plan` would say of the time, with nothing else made; a family with much to say overrides it."""
        plan = self.plan(problem, machine, None, tile)
        return Offer(problem, machine, plan.kernel, plan.predicted, plan.floor, plan.passes)

    def elements(self, problem: Problem, machine: Machine) -> tuple[DType, DType]:
        """What operands are packed as, where they are."""
        return problem.dtype, problem.dtype

    @abstractmethod
    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[AnyStep]:
        """The launches of a plan of its own; the only place that renders its text."""

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        """Every kernel text that plans of the problem's dtype, precision and semiring may name, whatever their shape,
        layout, stride and offset: what `tilewise warm` builds. Epilogues, and stacks that are added onto, are left out
        and compiled when they are requested."""
        return ()

    # What `tilewise tune` measures; a family with nothing to tune leaves these alone.

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        """The ways it could take the problem."""
        return ()

    def seconds(self, config: Any, problem: Problem, machine: Machine) -> float:
        """What the model expects of one of them."""
        raise TypeError(f"{self.name} has no configurations to choose from")

    def tuning_class(self, problem: Problem) -> str:
        """Under what a measured choice is kept."""
        raise TypeError(f"{self.name} has no configurations to choose from")

    def pinned(self, problem: Problem, machine: Machine, config: Any) -> Plan:
        """The plan that takes this very way, whatever the model thinks of it."""
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
    """The plan of a kernel whose tiles are not TILE_WIDTH's: no faster than `limits` say, with the reason."""
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


def limits_of(compute: float, problem: Problem, machine: Machine) -> tuple[float, str]:
    """The floor of a product that takes so long on its cores, and what sets it."""
    memory = problem.least_bytes / machine.bandwidth
    return max(compute, memory), "arithmetic" if compute >= memory else "memory"


def fused_notes(problem: Problem) -> list[str]:
    return [f"P is {problem.epilogue.formula()}, made before it is stored"] if problem.epilogue else []


def passes(routes: tuple[str, str], parts: int) -> int:
    """Launches beside the product's own: one for operands that do not go as they are, one to add up parts of k."""
    return (not IN_PLACE.issuperset(routes)) + (parts > 1)


IN_PLACE = frozenset(("as it is", "by classes", "from registers"))


def packed_operands(routes: tuple[str, str]) -> tuple[str, ...]:
    """The operands that are packed first."""
    return tuple(name for name, how in zip("MN", routes, strict=True) if how == "packed")
