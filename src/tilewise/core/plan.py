"""A plan: the kernel, tile and grid that will run, the bytes it moves, its expected time, the floor, and the reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewise.core.problem import Problem
from tilewise.system.quantities import extent, seconds, size

if TYPE_CHECKING:  # a kernel of the ladder traced alone needs neither
    from tilewise.core.blocking import Blocking
    from tilewise.core.machine import Machine

JSON_VERSION = 1
DEFAULT_TILE = 16
GRID_Y_LIMIT = 65535  # CUDA's; a taller grid is launched in bands
LAUNCH_SECONDS = 3e-6  # of an empty kernel
QUAD = 4  # elements of one vector load


@dataclass(frozen=True)
class Geometry:
    """What one block computes: `block` threads (x, y), a `rows`×`cols` tile of P, phases of `depth`."""

    block: tuple[int, int]
    rows: int
    cols: int
    depth: int
    shared_bytes: int


@dataclass(frozen=True)
class Plan:
    """The frozen description of what will run.

    >>> made = tw.plan(np.ones((1000, 500)), np.ones((500, 700)))
    >>> made.engine, made.kernel, made.problem.dtype.name
    ('cpu', ..., 'float64')
    """

    problem: Problem
    machine: Machine
    engine: str
    kernel: str
    tile: int
    grid: tuple[int, int]  # blocks (y, x) over P
    geometry: Geometry
    index: str  # the C type that reaches every cell
    aligned: bool  # rows of M and N start on vector boundaries
    packs: tuple[str, ...]  # operands that are packed first, because they are not row-major
    predicted: float  # seconds, by the cost model
    floor: float  # seconds, by the roofline
    bound: str  # which limit sets the floor
    why: str
    notes: tuple[str, ...] = ()
    blocking: Blocking | None = None  # how the cpu engine cuts it
    family: str = ""  # the folder under kernels/ whose text runs on a card
    config: Any = None  # the family's choice of parameters
    passes: int = 0  # further launches: realigning, packing, the reduction of split-K
    shares: bool = True  # threads of a block share what they load
    planes: float = 0.0  # bytes of workspace per byte of an operand, beside packing
    idea: str = ""  # the kernel's, one sentence
    cut: str = ""  # how P is cut into tiles, as text of the kernel's family
    real: Plan | None = None  # of a complex product computed as a real one: the plan of the real product

    @classmethod
    def made(cls, **fields: Any) -> Plan:
        """A plan with these fields and defaults for the others; the constructor takes four times as long."""
        plan = object.__new__(cls)
        plan.__dict__.update(fields)
        return plan

    def __hash__(self) -> int:
        return hash((self.problem, self.kernel, self.grid, self.predicted))

    def but(self, **fields: Any) -> Plan:
        """The same plan with some fields changed; `dataclasses.replace` takes ten times as long."""
        made = object.__new__(Plan)
        made.__dict__.update(self.__dict__)
        made.__dict__.update(fields)
        return made

    @property
    def multiplied(self) -> Problem:
        """What the kernel multiplies: the problem, or the real product it is computed as."""
        return self.real.problem if self.real else self.problem

    @property
    def phases(self) -> int:
        return math.ceil(self.multiplied.k / self.geometry.depth)

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.problem.members

    @property
    def threads(self) -> int:
        return self.geometry.block[0] * self.geometry.block[1]

    @property
    def loads_without_tiles(self) -> int:
        """Elements read from global memory when every thread fetches its own operands."""
        return 2 * self.multiplied.steps

    @property
    def loads_with_tiles(self) -> int:
        """Elements read when a block shares them: M once for each column of blocks, N once for each row of blocks."""
        p = self.multiplied
        if not self.shares:
            return self.loads_without_tiles
        return (p.m * p.k * self.grid[1] + p.k * p.n * self.grid[0]) * p.members

    @property
    def reuse(self) -> float:
        """The factor by which tiles reduce the traffic; TILE_WIDTH for square tiles that divide the sizes."""
        return self.loads_without_tiles / self.loads_with_tiles if self.loads_with_tiles else 1.0

    @property
    def grid_text(self) -> str:
        return extent((self.grid[1], self.grid[0], self.problem.members))

    def __repr__(self) -> str:
        return (
            f"Plan({self.problem.shape} {self.problem.dtype} {self.problem.semiring} -> {self.engine}:{self.kernel} "
            f"tile {self.tile}, grid {self.grid_text}, {self.phases} phases, floor {seconds(self.floor)})"
        )

    def __str__(self) -> str:
        return "\n".join(f"{name:<16} {value}" for name, value in self.rows())

    def _repr_html_(self) -> str:
        """In a notebook: the same rows as a table."""
        from html import escape

        rows = "".join(f"<tr><th>{name}</th><td>{escape(value)}</td></tr>" for name, value in self.rows())
        return f'<table style="text-align:left">{rows}</table>'

    def rows(self) -> list[tuple[str, str]]:
        """The plan as a table of (name, text)."""
        p, g = self.problem, self.geometry
        byte = self.multiplied.dtype.itemsize
        operands = str(p.dtype_m) if p.dtype_m == p.dtype_n else f"{p.dtype_m} by {p.dtype_n}"
        rows = [
            ("problem", f"{p.shape} {operands} {p.semiring} -> {p.result}"),
            ("device", f"{self.machine.name} ({self.machine.units} units, {self.machine.source})"),
            ("engine", self.engine),
            ("kernel", f"{self.kernel}: {self.idea}"),
            ("tile", self.cut),
            ("grid", self.grid_text),
            ("block", f"{extent((*g.block[:2], 1))} threads"),
            ("phases", f"{self.phases} of {g.depth}"),
            ("packed panels" if self.blocking else "shared memory", f"{g.shared_bytes:,} bytes a block"),
            (
                "loads",
                f"{self.loads_without_tiles:,} without tiles, {self.loads_with_tiles:,} with: ÷ {self.reuse:.4g}",
            ),
            (
                "traffic",
                f"{size(self.loads_without_tiles * byte)} without tiles, {size(self.loads_with_tiles * byte)} with",
            ),
            ("operations", f"{2 * p.steps:,}"),
            ("floor", f"{seconds(self.floor)}, set by {self.bound}"),
            ("model", f"{seconds(self.predicted)} expected"),
            ("why", self.why),
        ]
        return rows + [("note", note) for note in self.notes]

    def to_json(self) -> dict[str, Any]:
        g = self.geometry
        return {
            "version": JSON_VERSION,
            "problem": self.problem.to_json(),
            "device": {"kind": self.machine.kind, "name": self.machine.name, "arch": self.machine.arch},
            "engine": self.engine,
            "kernel": self.kernel,
            "family": self.family,
            "tile": self.tile,
            "grid": list(self.grid),
            "block": [g.block[1], g.block[0]],
            "tile_of_P": [g.rows, g.cols],
            "phases": self.phases,
            "depth": g.depth,
            "shared_bytes": g.shared_bytes,
            "loads_without_tiles": self.loads_without_tiles,
            "loads_with_tiles": self.loads_with_tiles,
            "flops": 2 * self.problem.steps,
            "least_bytes": self.problem.least_bytes,
            "floor_seconds": self.floor,
            "bound": self.bound,
            "predicted_seconds": self.predicted,
            "index": self.index,
            "aligned": self.aligned,
            "packs": list(self.packs),
            "why": self.why,
            "notes": list(self.notes),
            "blocking": self.blocking.to_json() if self.blocking else None,
        }


def packed_lead(cols: int) -> int:
    """The leading dimension of a packed operand: rows start on a vector's boundary, and on 16 bytes for halves."""
    return -(-cols // (2 * QUAD)) * 2 * QUAD


def assemble(
    problem: Problem, machine: Machine, engine: str, kernel: str, idea: str, tile: int, geometry: Geometry
) -> Plan:
    """The fields common to all plans; times and reason are filled in later."""
    grid = (math.ceil(problem.m / geometry.rows), math.ceil(problem.n / geometry.cols))
    packs, leads, aligned = [], [], True
    for name, layout, rows, cols, dtype in (
        ("M", problem.layout_m, problem.m, problem.k, problem.dtype_m),
        ("N", problem.layout_n, problem.k, problem.n, problem.dtype_n),
    ):
        lead = layout.leading_dimension(rows, cols)
        if lead is None or dtype != problem.dtype:
            packs.append(name)
            lead = packed_lead(cols)
        else:
            enough = layout.alignment >= min(16, QUAD * dtype.itemsize)
            aligned &= enough and all(stride % QUAD == 0 for stride in (lead, *layout.stack))
        leads.append(lead)
    ldp = problem.layout_p.leading_dimension(problem.m, problem.n) or problem.n
    # edge threads compute addresses past the matrix before their bounds check
    tall, deep = problem.m + geometry.rows, problem.k + geometry.depth
    reach = max(tall * leads[0] + deep, deep * leads[1] + problem.n, tall * ldp + problem.n) + geometry.cols
    return Plan.made(
        problem=problem,
        machine=machine,
        engine=engine,
        kernel=kernel,
        tile=tile,
        grid=grid,
        geometry=geometry,
        index="int" if reach < 2**31 else "long long",
        aligned=aligned,
        packs=tuple(packs),
        predicted=0.0,
        floor=0.0,
        bound="",
        why="",
        idea=idea,
        cut=f"TILE_WIDTH {tile}; a block makes {geometry.rows}x{geometry.cols} of P",
    )


def after_epilogue(seconds: float, problem: Problem, machine: Machine) -> float:
    """The time of a product whose epilogue is a separate pass."""
    if not problem.epilogue:
        return seconds
    moved = problem.members * problem.m * problem.n * (problem.algebra.partial.itemsize + problem.result.itemsize)
    return seconds + LAUNCH_SECONDS + moved / machine.bandwidth


def epilogue_after(plan: Plan, problem: Problem) -> Plan:
    """The plan of the bare product with the epilogue as a separate pass."""
    if not problem.epilogue:
        return plan
    note = f"P is {problem.epilogue.formula()}, in a pass over the product"
    predicted = after_epilogue(plan.predicted, problem, plan.machine)
    return plan.but(problem=problem, predicted=predicted, notes=(*plan.notes, note))
