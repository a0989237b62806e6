"""The launches of the plain kernels: packing, tiles, split-K, thin edges by the GEMV kernels."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat, zip_longest

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.dtypes import DTYPES
from tilewise.core.machine import has_dependent_launch
from tilewise.core.plan import Plan
from tilewise.core.problem import Layout, row_major
from tilewise.core.recipe import Address, Launch, Scratch, Step, Value, Zero, argument
from tilewise.kernels.shared.delegated import Fallback
from tilewise.kernels.shared.layouts import long_lines
from tilewise.kernels.shared.placed import Operands, Placed, broadcast, members, own_stack
from tilewise.kernels.shared.stacked import GRID_LIMIT, Runs, stacked
from tilewise.kernels.shared.triangle import tiles_of
from tilewise.kernels.simt_gemm.skinny_recipe import SkinnyJob, skinny_launches
from tilewise.kernels.simt_gemm.tiled.chains import on_quads, pointer_names, sums_apart, sums_of_chains
from tilewise.kernels.simt_gemm.tiled.configs import Config
from tilewise.kernels.simt_gemm.tiled.model import KERNEL, Choice, Tail, k_each, whole_tiles
from tilewise.kernels.simt_gemm.tiled.text import JOINED, PACK_LINES, Form, pack_text, render_join, render_plain
from tilewise.kernels.simt_gemm.tiled.texts import common_vectors, with_stack_loop
from tilewise.kernels.simt_gemm.tiled.tiles import PlainTile
from tilewise.kernels.transforms.sums import combine

GUARDED_WAVES = 4  # of blocks of a guarded stack, which loop over its members


@dataclass(frozen=True)
class Words:
    """An operand in words, contiguous along k or across it; `strides` of its stack."""

    pointer: Address
    lead: int  # words from line to line
    along_k: bool
    vector: int  # words one copy takes
    word_bytes: int
    strides: tuple[int, ...]

    def on(self, words: int) -> Address:
        """So many words behind the first."""
        return self.pointer + words * self.word_bytes


@dataclass(frozen=True)
class Job:
    """A product: plan, choice, operands."""

    plan: Plan
    choice: Choice
    M: Placed
    N: Placed
    P: Placed
    where: Placed | None
    guard: tuple[Address, int] | None = None  # a flag's address, and the value for which this runs

    @property
    def tile(self) -> PlainTile:
        return self.choice.tile

    @property
    def words(self) -> int:
        """Of k."""
        return math.ceil(self.plan.problem.k / self.choice.config.per_word)

    @property
    def pieces(self) -> int:
        return max(1, math.ceil(self.words / k_each(self.words, self.tile, self.choice.pieces)))

    @property
    def starts_early(self) -> bool:
        """Whether its kernels use programmatic dependent launch; not under a guard, whose flag they read first."""
        return self.guard is None and has_dependent_launch(self.plan.machine.arch)

    @property
    def guards_a_stack(self) -> bool:
        """Whether it is the fallback of a stack: one text a layout for all operands, because it hardly ever runs."""
        return self.guard is not None and self.plan.problem.members > 1

    @property
    def in_planes(self) -> bool:
        """Whether sums go to planes first: with split-K, and with accumulate, so that the set of texts has no
        ACCUMULATE variants."""
        p = self.plan.problem
        onto = p.accumulate and p.members == 1 and is_plus_times(p.semiring) and not p.ordered
        return self.choice.pieces > 1 or onto

    @property
    def sums_apart(self) -> bool:
        """Whether sums of chains are in scratch memory until the last one."""
        return sums_apart(self.plan.problem, self.P, self.choice.config.word_bytes)

    @property
    def verdict(self) -> tuple[Value, Value]:
        """The guard as kernel arguments."""
        address, value = self.guard or (None, 0)
        return address, ctypes.c_uint(value)

    @property
    def plane_lead(self) -> int:
        return -(-self.choice.cols // 4) * 4


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Step]:
    """P (and `given.arg`, for the winning k) is row-major."""
    choice = plan.config
    assert isinstance(choice, Choice)
    job = Job(plan, choice, given.M, given.N, given.P, given.arg)
    made: list[Step] = []
    held = scratch.take_all(_needs(job))
    if choice.limit:
        made.append(Zero(held["found"]))
    tiles, after = _launches(job, held)
    made += tiles
    edges = _few_jobs(job)
    thin = [skinny_launches(e, scratch.take(e.plane_bytes) if e.plane_bytes else None) for e in edges]
    for steps in zip(*thin, strict=True):  # all of them read before the first planes are added up
        made += [launch for step in zip_longest(*steps) for launch in step if launch is not None]
    return [*made, *after]


def fallback_launches(step: Fallback, scratch: Scratch, held: dict[int, Address]) -> list[Launch]:
    """Tiles only, operands unpacked. Fallbacks of one recipe run one after another and share planes of one size
    (`held`)."""
    choice = whole_tiles(step.plan.problem, step.plan.machine)
    job = Job(step.plan, choice, step.M, step.N, step.P, None, (step.verdict, step.value))
    places = {role: held.get(nbytes) or scratch.take(nbytes) for role, nbytes in _needs(job).items()}
    held |= {nbytes: places[role] for role, nbytes in _needs(job).items()}
    made, after = _launches(job, places)
    return made + after


def _few_jobs(job: Job) -> list[SkinnyJob]:
    """The rows below and the columns right of the whole tiles."""
    p, choice, jobs = job.plan.problem, job.choice, []

    def few(swapped: bool, top: int, rows: int, left: int, cols: int) -> SkinnyJob:
        return SkinnyJob(
            p, job.plan.machine, job.M.part(top, rows, 0, p.k), job.N.part(0, p.k, left, cols),
            job.P.part(top, rows, left, cols), None if job.where is None else job.where.part(top, rows, left, cols),
            swapped, True,
        )  # fmt: skip

    if choice.rows < p.m:
        jobs.append(few(False, choice.rows, p.m - choice.rows, 0, p.n))
    if choice.cols < p.n:
        jobs.append(few(True, 0, choice.rows, choice.cols, p.n - choice.cols))
    return jobs


def _needs(job: Job) -> dict[str, int]:
    """Scratch memory by its role: packed words, and planes of sums where k comes in pieces."""
    p, config, made = job.plan.problem, job.choice.config, {}
    for side, x in (("M", job.M), ("N", job.N)):
        if side in job.choice.packs:
            lines = x.rows if side == "M" else x.cols
            made[f"words {side}"] = (
                math.prod(own_stack(x, p.stack)) * job.words * _packed_lead(lines, config) * config.word_bytes
            )
    if job.in_planes:
        cells = job.pieces * job.choice.rows * job.plane_lead
        made["planes"] = cells * p.algebra.partial.itemsize
        if job.where is not None:
            made["planes of k"] = cells * 8
    if job.sums_apart:
        made["sums"] = p.members * job.choice.rows * job.plane_lead * p.algebra.partial.itemsize
    if job.choice.limit:
        made["found"] = 4
    if (tail := job.choice.tail) is not None:
        made["planes"] = tail.pieces * tail.tiles * job.tile.rows * job.tile.cols * p.result.itemsize
    return made


def _packed_lead(lines: int, config: Config) -> int:
    """A multiple of 128-byte cache lines: a copy across two of them costs both."""
    words = 128 // config.word_bytes
    return -(-lines // words) * words


def _as_they_lie(x: Placed, side: str, config: Config, extent: int) -> Words:
    """`extent`: words across k; a copy must not reach beyond them."""
    lines = long_lines(x.layout, x.rows, x.cols)
    assert lines is not None
    columns, lead = lines
    starts = (x.pointer.alignment, *(s * config.word_bytes for s in (extent, lead, *x.layout.stack)))
    along_k = columns if side == "N" else not columns
    whole = math.gcd(*starts, 16) == 16
    vector = 16 // config.word_bytes if whole and not along_k else 1
    return Words(x.pointer, lead, along_k, vector, config.word_bytes, x.layout.stack)


def _packed(job: Job, x: Placed, side: str, held: dict[str, Address]) -> Words:
    """The place of packed words, k by k, rows aligned to 128 bytes."""
    config, own = job.choice.config, own_stack(x, job.plan.problem.stack)
    lead = _packed_lead(x.rows if side == "M" else x.cols, config)
    strides = broadcast(own, row_major(job.words, lead, own).stack)
    return Words(held[f"words {side}"], lead, False, 16 // config.word_bytes, config.word_bytes, strides)


def _packing(job: Job, x: Placed, side: str, held: dict[str, Address], made: Words | None, first: bool) -> list[Launch]:
    """What packs all members into words, or only searches them for words above the limit; `first`: of the recipe."""
    own, launches = own_stack(x, job.plan.problem.stack), list[Launch]()
    if made is not None and not (job.words and x.rows and x.cols):
        return launches
    runs = Runs(own, [x.layout.stack, made.strides if made else (0,) * len(own)])
    for at, count in runs.starts():
        early = job.starts_early and not (first and not launches)
        to, lead = (made.on(at[1]), made.lead) if made else (None, 0)
        packing = _pack(job, x, side, x.on(at[0]), to, lead, held, early)
        launches += [_over_members(launch, count, runs.steps) for launch in packing]
    return launches


def _pack(
    job: Job,
    x: Placed,
    side: str,
    source: Address,
    target: Address | None,
    lead: int,
    held: dict[str, Address],
    early: bool,
) -> list[Launch]:
    """Pack one matrix into words at `target`, or search it for words above the choice's limit, or both; as many lines a
    launch as a grid has blocks for."""
    choice = job.choice
    lines, k = (x.rows, x.cols) if side == "M" else (x.cols, x.rows)
    across, along = (x.layout.row, x.layout.col) if side == "M" else (x.layout.col, x.layout.row)
    text = pack_text(job.plan.problem.algebra, choice.config, side, abs(along) < abs(across), choice.limit)
    found, made, most = (held["found"],) if choice.limit else (), list[Launch](), GRID_LIMIT * PACK_LINES
    for first in range(0, lines, most):
        some, to = min(most, lines - first), None if target is None else target + first * choice.config.word_bytes
        arguments = (
            source + first * across * x.dtype.itemsize, to, *found, ctypes.c_int(some), ctypes.c_int(k),
            *(ctypes.c_longlong(s) for s in (across, along, lead)),
        )  # fmt: skip
        grid = (math.ceil(job.words / 32), math.ceil(some / PACK_LINES))
        made.append(
            Launch.of(text, "pack_words", grid, (32, 8), arguments, overlap=early or (bool(made) and job.starts_early))
        )
    return made


def _over_members(launch: Launch, count: int, steps: Sequence[int]) -> Launch:
    """The launch for `count` members of a stack."""
    more = tuple(argument(ctypes.c_longlong(step)) for step in steps)
    return launch._replace(grid=(*launch.grid[:2], count), arguments=(*launch.arguments, *more))


def _launches(job: Job, held: dict[str, Address]) -> tuple[list[Launch], list[Launch]]:
    """(packing, then the product, with `combine` for split-K; `join` for a tail). All but the first use programmatic
    dependent launch."""
    p, choice, tile, config = job.plan.problem, job.choice, job.tile, job.choice.config
    m, n, split = choice.rows, choice.cols, job.in_planes
    launches, (M, N) = _operands(job, held)
    target, where = _planes(job, held) if split else (job.P, job.where)
    ldp = target.layout.row if split else target.layout.leading_dimension(p.m, p.n)
    assert ldp is not None
    aligned = on_quads(target, ldp, config.word_bytes) and not job.guards_a_stack
    tail = choice.tail
    vectors = common_vectors(M.along_k, N.along_k, M.vector, N.vector)
    kept = split and p.algebra.partial != p.result
    lie = (
        M.along_k,
        N.along_k,
        *vectors,
        aligned,
        p.accumulate and not split,
        kept,
        tail is not None,
        choice.symmetric,
        p.ordered,
    )
    sums = sums_of_chains(p, job.P, held.get("sums"), job.plane_lead)
    shared = tile.shared_bytes(config.word_bytes)
    tiles = tiles_of(m, n, tile.rows, tile.cols, choice.symmetric)
    grid = (tiles + tail.tiles * (tail.pieces - 1) if tail else tiles, 1, job.pieces)
    others = [x for x in (target, where, sums) if x is not None]
    operands: tuple[Words | Placed, ...] = (M, N, *others)
    runs = Runs(p.stack, [M.strides, N.strides, *(x.layout.stack for x in others)], 1 if split else GRID_LIMIT)
    names, each = pointer_names(where, sums), members(p.stack) if split else repeat(())
    for (at, count), member in zip(runs.starts(), each, strict=False):
        places = dict(zip(names, [x.on(here) for x, here in zip(operands, at, strict=True)], strict=True))
        arguments: tuple[Value, ...] = (
            *(places[name] for name in "MNP"),
            *(() if where is None else (places["Pwhere"], ctypes.c_longlong(where.layout.row))),
            *(() if tail is None else (held["planes"], *map(ctypes.c_int, tail.cut(tiles)))),
            *(() if sums is None else (places["sums"], ctypes.c_longlong(sums.layout.row))),
            *(ctypes.c_int(extent) for extent in (m, job.words, n)),
            *(ctypes.c_longlong(lead) for lead in (M.lead, N.lead, ldp)),
            ctypes.c_int(k_each(job.words, tile, choice.pieces)),
        )
        for under, by, of in _variants(job, held):
            text, steps = (
                render_plain.key(p.algebra, of, Form(by, *lie)),
                [ctypes.c_longlong(step) for step in runs.steps],
            )
            if job.guards_a_stack:
                source, more = with_stack_loop(text), (*under.verdict, ctypes.c_int(count), *steps)
                blocks = (grid[0], min(count, max(1, GUARDED_WAVES * job.plan.machine.units // grid[0])), grid[2])
            else:
                source, more = stacked.key(text, names), (*under.verdict, *steps)
                blocks = (grid[0], count, grid[2])
            early = bool(launches) and under.starts_early
            launches.append(Launch.of(source, KERNEL, blocks, (tile.threads,), (*arguments, *more), shared, early))
        if split:
            launches.append(_combine(job, target, where, member, job.pieces))
    return launches, [] if tail is None else [_join(job, tail, tiles, held["planes"])]


def _operands(job: Job, held: dict[str, Address]) -> tuple[list[Launch], list[Words]]:
    """What packs or searches the operands, and both as words."""
    choice, launches, operands = job.choice, list[Launch](), list[Words]()
    for side, x in (("M", job.M), ("N", job.N)):
        packs = side in choice.packs
        extent = choice.rows if side == "M" else choice.cols
        words = _packed(job, x, side, held) if packs else _as_they_lie(x, side, choice.config, extent)
        if packs or choice.limit:
            launches += _packing(job, x, side, held, words if packs else None, not launches)
        operands.append(replace(words, vector=1) if job.guards_a_stack else words)
    return launches, operands


def _planes(job: Job, held: dict[str, Address]) -> tuple[Placed, Placed | None]:
    """The planes of partial sums, and of the winning k."""
    p, m, n = job.plan.problem, job.choice.rows, job.choice.cols
    layout = Layout(job.plane_lead, 1, (0,) * len(p.stack))
    where = None if job.where is None else Placed(held["planes of k"], DTYPES["int64"], m, n, layout)
    return Placed(held["planes"], p.algebra.partial, m, n, layout), where


def _variants(job: Job, held: dict[str, Address]) -> list[tuple[Job, Config, PlainTile]]:
    """(job, config, tile) of the product; or of two predicated launches, of which a device flag picks one. The usual
    one is last, so that the next launch overlaps it."""
    choice = job.choice
    if choice.otherwise is None:
        return [(job, choice.config, job.tile)]
    return [
        (replace(job, guard=(held["found"], 1)), *choice.otherwise),
        (replace(job, guard=(held["found"], 0)), choice.config, job.tile),
    ]


def _join(job: Job, tail: Tail, tiles: int, planes: Address) -> Launch:
    """Adds up the pieces of the last tiles into P."""
    p, tile = job.plan.problem, job.tile
    ldp = job.P.layout.leading_dimension(p.m, p.n)
    assert ldp is not None
    arguments = (
        planes, job.P.pointer, ctypes.c_int(tiles - tail.tiles),
        ctypes.c_int(job.choice.rows), ctypes.c_int(job.choice.cols), ctypes.c_longlong(ldp), ctypes.c_int(tail.pieces),
    )  # fmt: skip
    grid = (tail.tiles * tile.rows * tile.cols // JOINED,)
    text = render_join.key(p.algebra, job.choice.config, tile)
    return Launch.of(text, "join", grid, (256,), arguments, overlap=job.starts_early)


def _combine(job: Job, planes: Placed, where: Placed | None, member: tuple[int, ...], pieces: int) -> Launch:
    p, places = job.plan.problem, list[Value]()
    lead = job.P.layout.leading_dimension(p.m, p.n)
    assert lead is not None
    if where is not None and job.where is not None:
        places = [where.pointer, job.where.member(member), *map(ctypes.c_longlong, (job.where.layout.row, 1))]
    return combine(
        p.algebra, p.accumulate, planes.pointer, job.P.member(member), (planes.rows, planes.cols),
        (planes.layout.row, lead, 1), pieces, where=places, guard=job.guard or (None, 0), overlap=job.starts_early,
    )  # fmt: skip
