"""Problem → Plan: which kernel, tile and grid will run, what it moves, the floor it is held against, and why.

Pure functions over plain values: a plan can be made for a card that is not there. The choice is an analytic model,
the blocks of the busiest multiprocessor over its rate; tilewise.rungs holds what each rung reaches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tilewise.blocking import KERNELS as CPU_KERNELS
from tilewise.blocking import Blocking, choose, has_kernel
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError
from tilewise.few_tiles import long_lines
from tilewise.k_major_tiles import IDEA as K_MAJOR_IDEA
from tilewise.k_major_tiles import KERNEL as K_MAJOR
from tilewise.k_major_tiles import KMajorWay, kind_of
from tilewise.k_major_tiles import best_way as best_k_major
from tilewise.k_major_tiles import refusal as k_major_refusal
from tilewise.machine import Machine
from tilewise.mma_tiles import IDEA as MMA_IDEA
from tilewise.mma_tiles import KERNEL as MMA
from tilewise.mma_tiles import MmaWay, worthwhile
from tilewise.mma_tiles import best_way as best_mma_way
from tilewise.mma_tiles import refusal as mma_refusal
from tilewise.plain_tiles import IDEAS as PLAIN_KERNELS
from tilewise.plain_tiles import Choice
from tilewise.plain_tiles import choose as choose_plain
from tilewise.plain_ways import step_slots
from tilewise.problem import Problem
from tilewise.rungs import LADDER, Geometry, check_tile, find_rung
from tilewise.split_tiles import IDEA as SPLIT_IDEA
from tilewise.split_tiles import KERNEL as SPLIT_KERNEL
from tilewise.split_tiles import PRODUCTS, SplitWay
from tilewise.split_tiles import best_way as best_split
from tilewise.split_tiles import refusal as split_refusal
from tilewise.tensor_tiles import IDEA, KERNEL, TensorWay, best_way, refusal

JSON_VERSION = 1
DEFAULT_TILE = 16
GRID_Y_LIMIT = 65535  # CUDA's; a taller grid is launched in bands
LAUNCH_SECONDS = 3e-6  # what the emptiest kernel takes
QUAD = 4  # elements of one vector load


@dataclass(frozen=True)
class Plan:
    """The frozen description of what will run."""

    problem: Problem
    machine: Machine
    engine: str
    kernel: str
    tile: int
    grid: tuple[int, int]  # blocks (y, x) over P
    geometry: Geometry
    index: str  # the C type that reaches every cell
    aligned: bool  # rows of M and N start on vector boundaries
    packs: tuple[str, ...]  # operands that are packed first, because their columns do not lie side by side
    predicted: float  # seconds, by the model
    floor: float  # seconds, by physics
    bound: str  # which limit sets the floor
    why: str
    notes: tuple[str, ...] = ()
    blocking: Blocking | None = None  # how the cpu engine cuts it
    tensor: TensorWay | None = None  # how Hopper's tensor cores take it
    split: SplitWay | None = None  # how they take float32
    k_major: KMajorWay | None = None  # how they take tf32 and 8-bit elements
    mma: MmaWay | None = None  # how tensor cores take it by mma.sync

    @property
    def phases(self) -> int:
        return math.ceil(self.problem.k / self.geometry.depth)

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.problem.members

    @property
    def threads(self) -> int:
        return self.geometry.block[0] * self.geometry.block[1]

    @property
    def loads_without_tiles(self) -> int:
        """Elements read from global memory when every thread fetches its own operands."""
        return 2 * self.problem.steps

    @property
    def loads_with_tiles(self) -> int:
        """Elements read when a block shares them: M once for each column of blocks, N once for each row of blocks."""
        p = self.problem
        if self.kernel == "naive":
            return self.loads_without_tiles
        return (p.m * p.k * self.grid[1] + p.k * p.n * self.grid[0]) * p.members

    @property
    def reuse(self) -> float:
        """By how much tiles cut the traffic; TILE_WIDTH for square tiles and whole sizes."""
        return self.loads_without_tiles / self.loads_with_tiles if self.loads_with_tiles else 1.0

    def __repr__(self) -> str:
        return (
            f"Plan({self.problem.shape} {self.problem.dtype} {self.problem.semiring} -> {self.engine}:{self.kernel} "
            f"tile {self.tile}, grid {self.grid[0]}x{self.grid[1]}, {self.phases} phases, floor {seconds(self.floor)})"
        )

    def __str__(self) -> str:
        return "\n".join(f"{name:<16} {value}" for name, value in self.rows())

    def _repr_html_(self) -> str:
        """In a notebook: the same rows as a table."""
        from html import escape

        rows = "".join(f"<tr><th>{name}</th><td>{escape(value)}</td></tr>" for name, value in self.rows())
        return f'<table style="text-align:left">{rows}</table>'

    def rows(self) -> list[tuple[str, str]]:
        """The plan as people read it, one fact a row."""
        p, g = self.problem, self.geometry
        byte = p.dtype.itemsize
        rows = [
            ("problem", f"{p.shape} {p.dtype} {p.semiring} -> {p.result}"),
            ("device", f"{self.machine.name} ({self.machine.units} units, {self.machine.source})"),
            ("engine", self.engine),
            ("kernel", f"{self.kernel}: {kernel_idea(self.kernel)}"),
            ("tile", self.tile_words()),
            ("grid", f"{self.grid[0]} x {self.grid[1]} blocks (y, x)" + (f" x {p.members}" if p.stack else "")),
            ("block", f"{g.block[1]} x {g.block[0]} threads (y, x)"),
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

    def tile_words(self) -> str:
        """How P is cut, in the words of the kernel that cuts it."""
        cut, g = self.blocking, self.geometry
        if self.kernel in (KERNEL, SPLIT_KERNEL, K_MAJOR, MMA) or self.kernel in PLAIN_KERNELS:
            return f"a block makes {g.rows}x{g.cols} of P"
        if cut is None:
            return f"TILE_WIDTH {self.tile}; a block makes {g.rows}x{g.cols} of P"
        return f"MR {cut.MR} x NR {cut.NR} in registers; strips of KC {cut.KC}, MC {cut.MC}, NC {cut.NC}"

    def to_json(self) -> dict[str, Any]:
        g = self.geometry
        return {
            "version": JSON_VERSION,
            "problem": self.problem.to_json(),
            "device": {"kind": self.machine.kind, "name": self.machine.name, "arch": self.machine.arch},
            "engine": self.engine,
            "kernel": self.kernel,
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


def kernel_idea(kernel: str) -> str:
    ideas = {KERNEL: IDEA, SPLIT_KERNEL: SPLIT_IDEA, K_MAJOR: K_MAJOR_IDEA, MMA: MMA_IDEA}
    if kernel in ideas:
        return ideas[kernel]
    if kernel in PLAIN_KERNELS:
        return PLAIN_KERNELS[kernel]
    if kernel in CPU_KERNELS:
        return CPU_KERNELS[kernel]
    return LADDER[kernel].idea if kernel in LADDER else "the notes' algorithm in NumPy, phase by phase"


def make_plan(problem: Problem, machine: Machine, kernel: str | None = None, tile: object = None) -> Plan:
    """The plan for a problem on a machine; `kernel` and `tile` pin what the model would choose."""
    width = None if tile is None else check_tile(tile, LADDER.get(kernel) if kernel else None)
    if kernel is not None and not isinstance(kernel, str):
        raise UsageError(f"kernel={kernel!r} must be a name: reference, {', '.join(LADDER)}")
    return _plan(problem, machine, kernel, width)


@lru_cache(maxsize=4096)
def _plan(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    problem.algebra  # noqa: B018  refuses a dtype the semiring does not take, before anything else is decided
    place = {"cpu": _on_cpu, "simt": _in_the_interpreter}.get(machine.kind, _on_card)
    return place(problem, machine, kernel, tile)


def _epilogue_after(plan: Plan, problem: Problem) -> Plan:
    """The plan of the bare product, and the epilogue in a pass of its own."""
    if not problem.epilogue:
        return plan
    moved = problem.members * problem.m * problem.n * (problem.algebra.partial.itemsize + problem.result.itemsize)
    note = f"P is {problem.epilogue.words()}, in a pass over the product"
    predicted = plan.predicted + LAUNCH_SECONDS + moved / plan.machine.bandwidth
    return replace(plan, problem=problem, predicted=predicted, notes=(*plan.notes, note))


def _fused(problem: Problem) -> list[str]:
    return [f"P is {problem.epilogue.words()}, made before it is stored"] if problem.epilogue else []


def _on_cpu(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    if problem.epilogue:
        return _epilogue_after(_plan(problem.bare, machine, kernel, tile), problem)
    if kernel is not None and kernel not in ("reference", *CPU_KERNELS):
        find_rung(kernel)
        raise DeviceError(f"kernel={kernel!r} runs on a card: pass device='cuda', or leave kernel= out on the CPU")
    floor, bound = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
    compiled = machine.vector_bytes > 0 and has_kernel(problem) and (problem.k > 0 or problem.return_arg)
    notes: tuple[str, ...] = ()
    if kernel == "reference" or not compiled:
        if problem.return_arg:
            raise DtypeError(
                f"return_arg=True needs a compiled kernel, and the cpu engine has none for {problem.dtype} here: "
                "convert the operands to float64, and leave kernel='reference' out"
            )
        geometry = LADDER["tiled_edges"].geometry(tile or DEFAULT_TILE, problem.algebra)
        plan = _assemble(problem, machine, "reference", "reference", tile or DEFAULT_TILE, geometry)
        why = "it was asked for" if kernel else "the cpu engine has no kernel for this, and the reference engine has"
        return replace(plan, floor=floor, bound=bound, predicted=floor, why=why, notes=notes)
    cut = choose(problem, machine.vector_bytes, machine.registers, kernel)
    packed_bytes = (cut.MC + cut.NC) * cut.KC * problem.algebra.partial.itemsize
    geometry = Geometry((1, 1), cut.MC, cut.NC, cut.KC, packed_bytes)
    plan = _assemble(problem, machine, "cpu", cut.kernel, cut.NR, geometry)
    if tile is not None:
        notes = (*notes, f"tile={tile} is ignored: the cpu engine fits its own tiles to registers and caches")
    return replace(plan, floor=floor, bound=bound, predicted=floor, why=cut.why, notes=notes, blocking=cut)


def _in_the_interpreter(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    if problem.epilogue:
        return _epilogue_after(_plan(problem.bare, machine, kernel, tile), problem)
    rung = find_rung(kernel or "tiled_edges")
    width = tile or DEFAULT_TILE
    plan = _assemble(problem, machine, "simt", rung.name, width, rung.geometry(width, problem.algebra))
    if rung.whole_tiles_only:
        _check_whole_tiles(problem, rung.name, width)
    floor, bound = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
    why = "device='simt' was asked for: the card's kernel text is interpreted, thread by thread, with no card"
    return replace(plan, floor=floor, bound=bound, predicted=floor, why=why)


def _on_card(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    """The tensor cores, the plain kernels and the ladder: whichever takes the problem in the least expected time."""
    for name, refuses in (
        (KERNEL, refusal),
        (SPLIT_KERNEL, split_refusal),
        (K_MAJOR, k_major_refusal),
        (MMA, mma_refusal),
    ):
        if kernel == name and (why_not := refuses(problem, machine)):
            raise UsageError(why_not)
    if problem.scaled:
        if why_not := k_major_refusal(problem, machine):
            raise UsageError(f"scales= has one kernel on a card: {why_not}")
        return _with_k_side_by_side(problem, machine, kernel, tile)
    bare = problem.bare if problem.epilogue else problem  # for kernels that apply no epilogue
    if kernel in PLAIN_KERNELS or problem.return_arg:
        return _epilogue_after(_on_plain_cores(bare, machine, kernel, tile), problem)
    plans = []
    if kernel in (None, KERNEL) and refusal(problem, machine) is None:
        plans.append(_on_tensor_cores(problem, machine, kernel, tile))
    if (kernel == K_MAJOR or (kernel is None and tile is None)) and k_major_refusal(bare, machine) is None:
        plans.append(_epilogue_after(_with_k_side_by_side(bare, machine, kernel, tile), problem))
    if (kernel == SPLIT_KERNEL or (kernel is None and tile is None)) and split_refusal(bare, machine) is None:
        plans.append(_epilogue_after(_in_planes(bare, machine, kernel, tile), problem))
    if kernel == MMA or (  # where Hopper's own kernels do not take it
        kernel is None and not plans and mma_refusal(problem, machine) is None and worthwhile(problem, machine)
    ):
        plans.append(_by_mma_sync(problem, machine, kernel, tile))
    if kernel is None and tile is None:
        plans.append(_epilogue_after(_on_plain_cores(bare, machine, kernel, tile), problem))
    if kernel not in (KERNEL, SPLIT_KERNEL, K_MAJOR, MMA):
        plans.append(_epilogue_after(_on_the_ladder(bare, machine, kernel, tile), problem))
    return min(plans, key=lambda plan: plan.predicted)


def _on_plain_cores(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    if kernel not in (None, *PLAIN_KERNELS):
        raise UsageError(f"kernel={kernel!r} does not tell which k won: leave kernel= out, or return_arg=True")
    chosen = choose_plain(problem, machine, kernel)
    plan = _assemble(problem, machine, "cuda", chosen.kernel, DEFAULT_TILE if tile is None else tile, chosen.geometry)
    converted = tuple(x for x, d in (("M", problem.dtype_m), ("N", problem.dtype_n)) if d != problem.dtype)
    notes = [f"{' and '.join(converted)} converted to {problem.dtype} first"] if converted else []
    if tile is not None:
        notes.append(f"tile={tile} is TILE_WIDTH of the ladder's kernels; this one has tiles of its own")
    floor, bound = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
    return replace(
        plan,
        packs=converted,
        predicted=max(chosen.predicted, floor),
        floor=floor,
        bound=bound,
        why=_plain_reason(chosen, plan, kernel),
        notes=(*notes, *_precision_notes(problem, machine)),
    )


def _plain_reason(chosen: Choice, plan: Plan, kernel: str | None) -> str:
    asked = "the kernel was asked for" if kernel else f"{chosen.kernel} has the least expected time"
    pieces = f", k in {chosen.pieces} pieces" if chosen.pieces > 1 else ""
    return f"{asked}; steps: {chosen.way.idea}; {plan.grid[0]}x{plan.grid[1]} tiles{pieces}"


def pinned(problem: Problem, machine: Machine, way: TensorWay | MmaWay) -> Plan:
    """The plan that takes this very way, whatever the model thinks of it."""
    if isinstance(way, TensorWay):
        return _on_tensor_cores(problem, machine, KERNEL, None, (way, 0.0))
    return _by_mma_sync(problem, machine, MMA, None, (way, 0.0))


def _on_tensor_cores(
    problem: Problem, machine: Machine, kernel: str | None, tile: int | None, pin: tuple[TensorWay, float] | None = None
) -> Plan:
    way, predicted = pin or best_way(problem, machine)
    chosen = way.tile
    plan = _assemble(problem, machine, "cuda", KERNEL, DEFAULT_TILE if tile is None else tile, chosen.geometry)
    notes = way.words() + _fused(problem)
    if tile is not None:
        notes.append(f"tile={tile} is TILE_WIDTH of the ladder's kernels; this one has tiles of its own")
    floor, bound = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
    plan = replace(
        plan,
        packs=tuple(name for name, how in zip("MN", way.routes, strict=True) if how == "packed"),
        predicted=max(predicted, floor),
        floor=floor,
        bound=bound,
        notes=tuple(notes),
        tensor=way,
    )
    blocks = f"{plan.grid[0]}x{plan.grid[1]} tiles of {chosen.rows}x{chosen.cols}"
    waves = way.waves(problem.m, problem.n, machine.units)
    asked = "the kernel was asked for" if kernel else "tensor cores have the least expected time"
    chosen_by = "tuned" if way.tuned else "by the model"
    return replace(plan, why=f"{asked}; {blocks} are {waves} waves on {machine.units} multiprocessors ({chosen_by})")


def _by_mma_sync(
    problem: Problem, machine: Machine, kernel: str | None, tile: int | None, pin: tuple[MmaWay, float] | None = None
) -> Plan:
    way, predicted = pin or best_mma_way(problem, machine)
    geometry = way.tile.geometry(machine.arch, problem.dtype.itemsize)
    plan = _assemble(problem, machine, "cuda", MMA, DEFAULT_TILE if tile is None else tile, geometry)
    notes = way.words() + _fused(problem)
    if tile is not None:
        notes.append(f"tile={tile} is TILE_WIDTH of the ladder's kernels; this one has tiles of its own")
    floor, bound = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
    asked = "the kernel was asked for" if kernel else "tensor cores have the least expected time"
    return replace(
        plan,
        packs=tuple(name for name, how in zip("MN", way.routes, strict=True) if how == "packed"),
        predicted=max(predicted, floor),
        floor=floor,
        bound=bound,
        notes=tuple(notes),
        mma=way,
        why=f"{asked}; {plan.grid[0]}x{plan.grid[1]} tiles of {way.tile.rows}x{way.tile.cols}, "
        f"{way.tile.resident} a multiprocessor ({'tuned' if way.tuned else 'by the model'})",
    )


def _in_planes(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    """float32 on tensor cores."""
    way, predicted = best_split(problem, machine)
    plan = _assemble(problem, machine, "cuda", SPLIT_KERNEL, DEFAULT_TILE if tile is None else tile, way.tile.geometry)
    operands = (
        ("M", problem.layout_m, problem.m, problem.k, problem.dtype_m),
        ("N", problem.layout_n, problem.k, problem.n, problem.dtype_n),
    )
    packs = tuple(
        name
        for name, layout, rows, cols, dtype in operands
        if dtype != problem.dtype or long_lines(layout, rows, cols) is None
    )
    notes = [f"{' and '.join(packs)} packed first: elements apart, or another dtype"] if packs else []
    if tile is not None:
        notes.append(f"tile={tile} is TILE_WIDTH of the ladder's kernels; this one has tiles of its own")
    compute, memory = (
        PRODUCTS * problem.steps / machine.tensor_rate("bfloat16"),
        problem.least_bytes / machine.bandwidth,
    )
    asked = "the kernel was asked for" if kernel else "tensor cores have the least expected time"
    waves = way.waves(problem.m, problem.n, machine.units)
    return replace(
        plan,
        packs=packs,
        predicted=max(predicted, compute, memory),
        floor=max(compute, memory),
        bound="arithmetic" if compute >= memory else "memory",
        notes=(*notes, *way.words()),
        split=way,
        why=f"{asked}; {plan.grid[0]}x{plan.grid[1]} tiles of {way.tile.rows}x{way.tile.cols} are {waves} waves on "
        f"{machine.units} multiprocessors",
    )


def _with_k_side_by_side(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    """tf32 and 8-bit elements on tensor cores."""
    way, predicted = best_k_major(problem, machine)
    geometry = way.tile.geometry(problem.dtype_m.itemsize)
    plan = _assemble(problem, machine, "cuda", K_MAJOR, DEFAULT_TILE if tile is None else tile, geometry)
    kind = kind_of(problem)
    assert kind is not None
    rate = kind.rate * machine.tensor_rate("bfloat16")
    compute, memory = problem.steps / rate, problem.least_bytes / machine.bandwidth
    asked = "the kernel was asked for" if kernel else "tensor cores have the least expected time"
    waves = way.waves(problem.m, problem.n, machine.units)
    return replace(
        plan,
        packs=(),
        predicted=max(predicted, compute, memory),
        floor=max(compute, memory),
        bound="arithmetic" if compute >= memory else "memory",
        notes=tuple(way.words()),
        k_major=way,
        why=f"{asked}; {plan.grid[0]}x{plan.grid[1]} tiles of {way.tile.rows}x{way.tile.cols} are {waves} waves on "
        f"{machine.units} multiprocessors",
    )


def _on_the_ladder(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    candidates = [kernel] if kernel else ["tiled_edges", "coarsened", "register_tiled"]
    if not kernel and problem.algebra.partial.itemsize > 8:
        candidates.remove("register_tiled")  # 64 complex128 sums spill out of the registers
    choices = []
    for name in candidates:
        rung = find_rung(name)
        widths = [tile] if tile else [t for t in (8, 16, 32) if t <= rung.max_tile]
        for width in widths:
            if width <= rung.max_tile:
                choices.append(_candidate(problem, machine, name, width))
    if not choices:
        raise UsageError(f"tile={tile} fits no kernel; name one with kernel=, or leave tile= out")
    best = min(choices, key=lambda plan: plan.predicted)
    if kernel and LADDER[kernel].whole_tiles_only:
        _check_whole_tiles(problem, kernel, best.tile)
    notes = [f"{' and '.join(best.packs)} packed first: columns apart, or another dtype"] if best.packs else []
    return replace(best, notes=(*notes, *_precision_notes(problem, machine)), why=_reason(best, kernel, tile))


def _candidate(problem: Problem, machine: Machine, kernel: str, tile: int) -> Plan:
    """One rung at one tile, with the model's time.

    The busiest multiprocessor sets it: its blocks, one after the other, at the rung's share of the peak. A narrow tile
    reuses less, and a multiprocessor with few threads waits for memory.
    """
    rung = LADDER[kernel]
    geometry = rung.geometry(tile, problem.algebra)
    plan = _assemble(problem, machine, "cuda", kernel, tile, geometry)
    blocks = math.ceil(plan.blocks / machine.units)
    threads = min(blocks * geometry.block[0] * geometry.block[1], machine.resident_threads)
    share = rung.share * (tile / rung.max_tile) ** 0.25 * min(1.0, threads / rung.saturation)
    steps = blocks * geometry.rows * geometry.cols * max(1, plan.phases) * geometry.depth
    rate = machine.step_rate("float32") / machine.units / step_slots(problem.algebra, machine)
    compute = steps / (rate * share) if share else 0.0
    floor, bound = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
    return replace(plan, predicted=max(compute, floor) + LAUNCH_SECONDS, floor=floor, bound=bound)


def _assemble(problem: Problem, machine: Machine, engine: str, kernel: str, tile: int, geometry: Geometry) -> Plan:
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
    # a block's edge threads form addresses past the matrix before a check turns them away
    tall, deep = problem.m + geometry.rows, problem.k + geometry.depth
    reach = max(tall * leads[0] + deep, deep * leads[1] + problem.n, tall * ldp + problem.n) + geometry.cols
    return Plan(
        problem=problem,
        machine=machine,
        engine=engine,
        kernel=kernel,
        tile=tile,
        grid=grid,
        geometry=geometry,
        index="int" if reach < 2**31 else "long long",
        aligned=aligned and kernel == "register_tiled",
        packs=tuple(packs),
        predicted=0.0,
        floor=0.0,
        bound="",
        why="",
    )


def _check_whole_tiles(problem: Problem, kernel: str, tile: int) -> None:
    if problem.m % tile or problem.k % tile or problem.n % tile:
        raise ShapeError(
            f"kernel={kernel!r} takes multiples of TILE_WIDTH only, and {problem.shape} is not made of whole tiles "
            f"of {tile}: use kernel='tiled_edges', which has the boundary checks"
        )


def _reason(plan: Plan, kernel: str | None, tile: int | None) -> str:
    g = plan.geometry
    waves = plan.blocks / plan.machine.units if plan.machine.units else 0
    pieces = f"{plan.grid[0]}x{plan.grid[1]} blocks of {g.rows}x{g.cols} give {waves:.3g} blocks a multiprocessor"
    if kernel and tile:
        return f"kernel and tile were asked for; {pieces}"
    if kernel:
        return f"the kernel was asked for; tile {plan.tile} has the least expected time; {pieces}"
    return f"{plan.kernel} at tile {plan.tile} has the least expected time; {pieces}"


def _precision_notes(problem: Problem, machine: Machine) -> tuple[str, ...]:
    """What becomes of float32 that might have run on tensor cores."""
    if problem.dtype.name != "float32" or problem.semiring.name != "plus_times" or problem.precision == "ieee":
        return ()
    if split_refusal(problem, machine) is None:
        return (f"precision={problem.precision!r} runs as 'ieee' here: splitting operands would take longer",)
    return (f"precision={problem.precision!r} runs as 'ieee': there is no tensor-core path for it here",)


def seconds(value: float) -> str:
    """A time with the unit people would use."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def size(count: float) -> str:
    """Bytes with the unit people would use."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"
