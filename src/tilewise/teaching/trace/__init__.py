"""Run CUDA C with no GPU and get back what every thread did (`trace`), or every fault (`check`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from operator import index
from pathlib import Path
from typing import Any

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.semiring import Semiring
from tilewise.emulator import budget
from tilewise.emulator.check.adversary import demonstrate
from tilewise.emulator.check.binding import Seed
from tilewise.emulator.check.loading import choose, load, uses_shared
from tilewise.emulator.check.prepared import Prepared
from tilewise.emulator.check.simulate import AtShape, Simulation, simulate
from tilewise.emulator.limits import DEFAULT, Limits
from tilewise.emulator.machine.events import EventKind, Events, empty_events
from tilewise.emulator.machine.findings import Finding
from tilewise.errors import KernelError, UsageError
from tilewise.teaching.trace.launch import Run, Shape, as_shape, copied, launch_for, run_of
from tilewise.teaching.trace.report import CheckReport
from tilewise.teaching.trace.rungs import RungText, is_rung, rung_text
from tilewise.teaching.trace.trace_data import Matrix, TraceData

ALL, SOME, CORNER = "all", "some", ((0, 0),)
EVENTS = 120_000  # of all blocks of a page together
EVENTS_OF_A_PRODUCT = 4  # two reads, a sum, and a share of loads and barriers


def trace(
    kernel: str | Path,
    *,
    shape: Shape | None = None,
    tile: int | None = None,
    entry: str | None = None,
    grid: Sequence[int] | None = None,
    block: Sequence[int] | None = None,
    args: Mapping[str, Any] | None = None,
    defines: Mapping[str, str | int] | None = None,
    semiring: str | Semiring = "plus_times",
    dtype: str = "float32",
    blocks: Sequence[Sequence[int]] | str = ((0, 0),),
    seed: Seed = None,
    adversarial: bool = False,
    limits: Limits = DEFAULT,
) -> TraceData:
    """Run the kernel in a file (or in a text that contains `__global__`, or a rung of the ladder by its name) and
    record what its threads do.

    `shape` is (m, k, n); without it, one with two phases and an edge for the kernel's tile. `tile` overrides
    TILE_WIDTH, BLOCK_SIZE and similar names. `grid` and `block` are (x, y, z) and default to the launch in the file,
    else to what covers P. `args` gives parameters that are not bound automatically: numbers, or NumPy arrays (copied;
    the copies after the launch are in `.run.arrays`).
    `blocks` are the (bx, by) to record, "all", or "some": all of a small run, else the grid's corners and middle.
    M counts 1, 2, 3, … and N goes on at the next ten, so that no value belongs to both; `seed` gives random values.
    P is compared with the product over `semiring`; `dtype` is for rungs, whose text is written for it.
    `adversarial` also runs the threads one at a time, and notes on a race what P holds then; the trace of the order
    that gives a wrong P is in `.failing`.

    >>> tw.trace("tiled_edges", shape=(3, 3, 3), tile=2).counters["fills"]
    28
    """
    with budget.within(limits):
        ring = find_semiring(semiring)
        rung, kernel = _rung(kernel, tile, ring, dtype)
        chosen = _first_tiled(_prepare(kernel, entry, defines, tile, limits))
        if shape is None and chosen.multiplies:
            shape = default_shape(chosen.literal_tile() or chosen.loaded.width)
        size = as_shape(shape)
        grid, block = launch_for(rung, size, grid, block)

        def run(record: Any) -> Simulation:
            launch = AtShape(size, grid, block, copied(args))
            return simulate(chosen, launch, seed=seed, limits=limits, record=record, semiring=ring)

        if not (isinstance(blocks, str) and blocks == SOME):
            wanted = ALL if isinstance(blocks, str) and blocks == ALL else _listed(blocks)
            return _recorded(chosen, run(wanted), adversarial)
        first: Any = ALL if size is not None and EVENTS_OF_A_PRODUCT * prod(size) <= EVENTS else CORNER
        wanted = some_blocks(done := run(first), first)
        return _recorded(chosen, done if wanted == first else run(wanted), adversarial)


def some_blocks(done: Simulation, recorded: Any) -> Any:
    """The blocks for a page, by the number of events recorded so far: all, or some (bx, by)."""
    across, down, deep = done.geometry.grid
    if done.recorder is None or done.geometry.blocks == 1:
        return recorded
    if deep > 1:
        return CORNER
    events = sum(len(row["lanes"]) for row in done.recorder.rows)
    each = max(1, events // (across * down if recorded == ALL else 1))
    return ALL if each * across * down <= EVENTS else sample(across, down, EVENTS // each)


def _listed(blocks: Any) -> tuple[tuple[int, ...], ...]:
    try:
        return tuple(tuple(index(i) for i in block) for block in blocks)
    except TypeError:
        raise UsageError(f"blocks={blocks!r} must be {SOME!r}, {ALL!r} or a list of pairs (bx, by)") from None


def sample(across: int, down: int, most: int) -> tuple[tuple[int, int], ...]:
    """The corners and the middle of the grid, as (bx, by), each once, `most` at most and one at least."""
    right, bottom = across - 1, down - 1
    wanted = [(0, 0), (right, bottom), (right, 0), (0, bottom), (right // 2, bottom // 2)]
    return tuple(sorted(dict.fromkeys(wanted[: max(1, most)])))


def _recorded(chosen: Prepared, done: Simulation, adversarial: bool) -> TraceData:
    failing = demonstrate(done) if adversarial and done.recorder is not None else None
    run = run_of(chosen, done)
    if done.recorder is None:  # the launch itself fails
        return TraceData(run, empty_events(), (), ())
    numbers = tuple(range(done.geometry.blocks)) if done.launch.watch is None else tuple(done.launch.watch)
    matrices = _matrices(done)
    shared = {name: tuple(dims) for name, _, dims, external in done.launch.program.shared if not external}
    made = TraceData(
        run, done.recorder.events(), tuple(done.recorder.names), numbers, chosen.loaded.source.text, matrices, shared
    )
    if failing is None or "P" not in matrices:
        return made
    wrong = {**matrices, "P": Matrix(matrices["P"].name, failing.held)}
    order = replace(made, events=failing.events, names=failing.names, matrices=wrong, wrong=failing.wrong)
    return replace(made, failing=order)


def _matrices(done: Simulation) -> dict[str, Matrix]:
    bound = done.bound
    if bound.matrices is None:
        return {}
    made = {}
    for role in ("M", "N", "P"):
        buffer, values = bound.of(role), bound.arrays.get(role)
        if buffer is not None and values is not None and values.ndim == 2 and values.dtype.kind != "V":
            made[role] = Matrix(buffer.name, values)
    return made


def check(
    kernel: str | Path,
    *,
    shape: Shape | Sequence[Shape] | None = None,
    tile: int | None = None,
    entry: str | None = None,
    grid: Sequence[int] | None = None,
    block: Sequence[int] | None = None,
    args: Mapping[str, Any] | None = None,
    defines: Mapping[str, str | int] | None = None,
    semiring: str | Semiring = "plus_times",
    dtype: str = "float32",
    seed: int = 0,
    adversarial: bool = True,
    limits: Limits = DEFAULT,
    unsafe: bool = False,
) -> CheckReport:
    """Every fault of the kernel, by line and thread. Without `shape`, several shapes that find bugs are run on random
    data: rectangular, not multiples of the tile, one smaller than a tile. A file's own `main` is run as
    WebAssembly (extra `wasm`), or in the system's sandbox; where there is neither, only with `unsafe=True`.

    >>> tw.check("tiled_edges").ok
    True
    >>> [(str(fault.kind), fault.array) for fault in tw.check("tiled", shape=(3, 3, 3), tile=2).faults]
    [('out-of-bounds', 'M'), ('out-of-bounds', 'P')]
    """
    from tilewise.teaching.trace.checking import CheckRequest, check_all
    from tilewise.teaching.trace.program_run import program_alone

    with budget.within(limits):
        ring = find_semiring(semiring)
        rung, kernel = _rung(kernel, tile, ring, dtype)
        own = None if tile is not None or rung is not None else dict(defines or {})
        try:
            loaded = load(kernel, defines, tile, limits)
        except KernelError as error:
            if own is None or shape is not None or args or grid is not None or block is not None or entry is not None:
                raise
            return program_alone(kernel, own, limits, error, unsafe)
        given = (shape, grid, block, dict(args or {}), seed, adversarial, limits, ring, rung, entry, own, unsafe)
        return check_all(loaded, CheckRequest(*given))


def _rung(kernel: str | Path, tile: int | None, ring: Semiring, dtype: str) -> tuple[RungText | None, str | Path]:
    if not is_rung(kernel):
        return None, kernel
    rung = rung_text(str(kernel), tile, ring, dtype)
    return rung, rung.text


def _prepare(kernel: str | Path, entry: str | None, defines: Any, tile: int | None, limits: Limits) -> list[Prepared]:
    loaded = load(kernel, defines, tile, limits)
    return [Prepared(loaded, function) for function in choose(loaded, entry)]


def _first_tiled(prepared: list[Prepared]) -> Prepared:
    """The first kernel that multiplies through shared memory, else the first that multiplies, else the first."""
    multiply = [p for p in prepared if p.multiplies]
    for one in multiply:
        if uses_shared(one.function):
            return one
    return multiply[0] if multiply else prepared[0]


def default_shape(tile: int) -> Shape:
    """A shape with two phases, the second with an edge."""
    side = max(2, 2 * tile - 1)
    return side, side, side


__all__ = ["CheckReport", "EventKind", "Events", "Finding", "Limits", "Matrix", "Run", "TraceData", "check", "trace"]
