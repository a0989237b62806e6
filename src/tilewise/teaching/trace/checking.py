"""`check`: chooses the launches of each kernel, runs them, and makes the report. Kernels are judged one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewise.algebra.semiring import Semiring
from tilewise.emulator.budget import Exhausted
from tilewise.emulator.check.adversary import demonstrate
from tilewise.emulator.check.loading import Loaded, choose
from tilewise.emulator.check.own_binding import OwnLaunch, UnknownLaunch, own_launch
from tilewise.emulator.check.prepared import Prepared
from tilewise.emulator.check.simulate import AtShape, FreeSizes, Simulation, simulate
from tilewise.emulator.check.verdict import Tried, assign_basis
from tilewise.emulator.host.program_report import HOST_POINTER, ProgramReport
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.findings import Severity
from tilewise.emulator.parse.tree import Function
from tilewise.errors import EngineError, KernelError, LimitError, TilewiseError, UsageError
from tilewise.teaching.trace.launch import ENTRY, Run, Shape, as_shape, copied, launch_for, run_of
from tilewise.teaching.trace.program_run import as_run, correct, grounds_of, launched, not_run, run_of_program
from tilewise.teaching.trace.report import CheckReport
from tilewise.teaching.trace.rungs import RungText

ON_CARD = re.compile(r"\bcuda[A-Z]|\bthrust\b|\bcu(blas|fft|rand|b)\b")  # a program without kernels that uses the card
REPEATED_SECONDS = 4.0  # for a launch that the run of main has judged
LARGEST_PROBE = 128  # the largest side of a block or tile that is probed


@dataclass(frozen=True)
class CheckRequest:
    """The arguments of `check`. If they have a shape, a launch or arguments, only that launch is run."""

    shape: Any
    grid: Sequence[int] | None
    block: Sequence[int] | None
    args: Mapping[str, Any]
    seed: int
    adversarial: bool
    limits: Limits
    semiring: Semiring
    rung: RungText | None
    entry: str | None
    defines: Mapping[str, str | int] | None = None  # for the program's own run; None: it is not run
    unsafe: bool = False  # main is run even where the system has no sandbox

    @property
    def given(self) -> bool:
        return self.shape is not None or bool(self.args) or self.grid is not None or self.block is not None


def check_all(loaded: Loaded, request: CheckRequest) -> CheckReport:
    """Judge every kernel independently of the others' errors. A program's `main` is run first, and its launches are
    judged with its own arguments."""
    program = _program(loaded, request)
    records = []
    if program is not None and not program.wanted:  # of a launch with a host pointer no arguments are known
        records = [launch for launch in program.launches if launch.get("failed") != HOST_POINTER]
    runs: list[Run] = []
    grounds: dict[str, str] = {}
    failed: dict[str, TilewiseError] = dict(loaded.refused) if request.entry is None else {}
    prepared: list[Prepared] = []
    tiles: set[str] = set()
    for function in _chosen(loaded, request, program):
        try:
            prepared.append(Prepared(loaded, function, own_launch(records, function.short, [])))
        except (KernelError, UsageError) as error:
            failed[function.short] = error
    for i, one in enumerate(prepared):
        name, tried, stopped = one.function.short, list[Tried](), False
        ran = program is not None and program.ended == "exit" and name in launched(program)
        try:
            try:
                brief = _brief(request) if ran and not one.multiplies else request
                _try(one, brief, own_launch(records, name, one.sites), tried)
            except Exhausted as error:  # the launches that ended are judged
                if not tried:
                    raise
                failed[f"{name} at other sizes"], stopped = error, True
            ground = assign_basis(tried, program is not None, ran)
            tiles |= {name for t in tried if t.whole for name, *_ in t.done.launch.program.shared}
            made = [run_of(one, t.done, t.origin) for t in tried]
        except Exhausted as error:  # the call's budget, not this kernel's: what was found before is reported
            if not runs and (program is None or not_run(program)):
                raise
            failed |= {left.function.short: error for left in prepared[i:]}
            break
        except (KernelError, UsageError, LimitError) as error:
            failed[name] = error
            continue
        if ground:
            grounds[name] = ground
        runs += made
        if stopped:
            failed |= {left.function.short: failed[f"{name} at other sizes"] for left in prepared[i + 1 :]}
            break
    rejected = program is not None and program.rejected and request.entry is None
    runs, program = _with_program(loaded, request, runs, grounds, failed, program, tiles)
    if not runs and failed:
        raise next(iter(failed.values()))
    reasons = {name: str(error) for name, error in failed.items()}
    return CheckReport(loaded.source.name, tuple(runs), grounds, reasons, program, rejected)


def _chosen(loaded: Loaded, request: CheckRequest, program: ProgramReport | None) -> list[Function]:
    """The kernels to judge one by one; none if all are in other files or in libraries, which the program's own run has
    covered."""
    if loaded.table.entities.kernels or loaded.refused or program is None or request.entry is not None:
        return choose(loaded, request.entry)
    nothing = not (program.launches or program.findings or ON_CARD.search(loaded.source.text))
    if not_run(program) or nothing:
        why = program.message or "main launched no kernel" + (f" and needs {program.wanted}" if program.wanted else "")
        raise KernelError(f"there is no __global__ function in this file, and {why}", program.path)
    return []


def _program(loaded: Loaded, request: CheckRequest) -> ProgramReport | None:
    if request.given or request.rung is not None or request.defines is None:
        return None
    return run_of_program(loaded.source, request.defines, request.limits, request.unsafe)


def _with_program(
    loaded: Loaded, request: CheckRequest, runs: list[Run], grounds: dict[str, str], failed: dict[str, TilewiseError],
    program: ProgramReport | None, tiles: set[str],
) -> tuple[list[Run], ProgramReport | None]:  # fmt: skip
    """Put the run of main first, and correct the basis of the kernels' findings by it."""
    if program is None or request.entry is not None:
        return runs, None
    if not_run(program):
        call = "tilewise run FILE " + ("< INPUT" if program.wanted == "input" else "-- ARGUMENTS")
        wanting = f"the program wants {program.wanted} and was given none: {call}"
        if program.wanted not in ("input", "arguments"):
            wanting = f"the program wants {program.wanted}, which is not there"
        failed[ENTRY] = EngineError(wanting if program.wanted else program.message)
        return runs, None
    for name in launched(program) & failed.keys():  # run by main, with every check
        del failed[name]
    runs = correct(program, runs)
    grounds[ENTRY] = grounds_of(program)
    return [as_run(program, loaded.source.name, runs, tiles), *runs], program


def _brief(request: CheckRequest) -> CheckRequest:
    """For a launch that main has run with every check: only its costs are new."""
    seconds = min(request.limits.seconds, REPEATED_SECONDS)
    return replace(request, limits=replace(request.limits, seconds=seconds))


def _try(one: Prepared, request: CheckRequest, own: OwnLaunch | None, tried: list[Tried]) -> None:
    """Add each launch to `tried` when it has ended."""
    if request.given:
        tried += (Tried("given", _probe(one, request, size)) for size in _sizes(one, request.shape))
        return
    reason = ""
    if own is not None:
        try:
            tried.append(Tried("own", _run(one, request, own)))
        except UnknownLaunch as error:
            reason = error.reason
    if one.multiplies:
        tried += _probes(one, request, bool(tried))
    if not tried:
        tried.append(Tried("free", _free(one, request, own, reason)))


def _probes(one: Prepared, request: CheckRequest, own: bool) -> list[Tried]:
    """Shapes that find bugs, the first one fitting tile and block."""
    width = one.literal_tile() or one.loaded.width
    square = one.square()
    try:
        try:
            first = _probe(one, request, default_shapes(width, square)[0])
        except UsageError as error:
            if square or "must be square" not in str(error):
                raise
            square = True
            first = _probe(one, request, default_shapes(width, square)[0])
    except (KernelError, UsageError) as error:
        if own or "not understood" in str(error):
            return []
        raise
    extent = max(first.geometry.block[:2]) if first.geometry.block[1] > 1 else width
    extent = max(extent, one.widest_tile() or width)
    if min(first.geometry.grid) < 1:  # the launch rounds its grid down: take sizes of whole blocks
        extent = max(extent, first.geometry.block[0])
    fits = extent <= width
    if width < extent <= LARGEST_PROBE and extent % width == 0:
        width, fits = extent, True
        first = _probe(one, request, default_shapes(width, square)[0])
    tried = [Tried("probe", first, fits)]
    faulty = any(f.severity is Severity.FAULT for f in first.findings)
    if not square and not own and fits and faulty:  # a kernel may be meant for square matrices only
        tried.append(Tried("probe", _probe(one, request, (2 * width,) * 3)))
    for size in default_shapes(width, square)[1:]:
        tried.append(Tried("probe", _probe(one, request, size), False))
    return tried


def _free(one: Prepared, request: CheckRequest, own: OwnLaunch | None, reason: str) -> Simulation:
    try:
        done = _run(one, request, FreeSizes(own or one.written_launch()))
    except UnknownLaunch as error:
        needed = ", ".join(f"--arg {p.name}=…" for p in one.function.parameters)
        raise UsageError(
            f"{one.function.short}: what it is launched with is not known ({reason or error.reason}): give {needed}, "
            "--grid and --block-dim, or --shape where it multiplies matrices"
        ) from None
    unread = "main was not run" if one.sites else "nothing in the file says what it is launched with"
    done.reason = reason or unread
    return done


def _probe(one: Prepared, request: CheckRequest, size: Shape | None) -> Simulation:
    return _run(
        one, request, AtShape(size, *launch_for(request.rung, size, request.grid, request.block), copied(request.args))
    )


def _run(one: Prepared, request: CheckRequest, launch: AtShape | OwnLaunch | FreeSizes) -> Simulation:
    done = simulate(one, launch, seed=request.seed, limits=request.limits, semiring=request.semiring)
    if request.adversarial and done.launch.blocks is None and not one.program.waits_for_grid:
        demonstrate(done)
    return done


def default_shapes(tile: int, square: bool) -> list[Shape]:
    """Shapes that find bugs: multiples of the tile but rectangular, odd everywhere, smaller than one tile."""
    t = max(2, tile)
    if t > 64:
        return [(t, t, t), (t + 1, t + 1, t + 1)] if square else [(t, t, t), (t + 1, t // 2 + 1, t + 3)]
    if square:
        return [(2 * t, 2 * t, 2 * t), (t + 1, t + 1, t + 1), (max(1, t - 1),) * 3]
    return [(t, 2 * t, 3 * t), (t + 1, 2 * t - 1, t + 3), (max(1, t // 2), t // 2 + 1, max(1, t // 2 - 1))]


def _sizes(one: Prepared, shape: Any) -> list[Shape | None]:
    if shape is None:
        return list(default_shapes(one.loaded.width, one.square())) if one.multiplies else [None]
    many = list(shape) if isinstance(shape, Iterable) else []
    if many and not isinstance(many[0], (int, np.integer)):
        return [as_shape(s) for s in many]
    return [as_shape(shape)]
