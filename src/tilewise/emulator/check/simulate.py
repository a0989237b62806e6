"""One launch from end to end: bind arguments, evaluate the file's own <<<…>>>, run, check the product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilewise.algebra.semiring import Semiring
from tilewise.emulator.check.binding import Bound, Seed, Shape, bind
from tilewise.emulator.check.explain import explain
from tilewise.emulator.check.judge import cost_findings, judge
from tilewise.emulator.check.loading import place_of
from tilewise.emulator.check.own_binding import OwnLaunch, bind_free, bind_own
from tilewise.emulator.check.prepared import Prepared
from tilewise.emulator.check.unfilled import unfilled_reads
from tilewise.emulator.check.wording import describe
from tilewise.emulator.host.launch_site import LaunchSite, LaunchValue
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.collector import Collector
from tilewise.emulator.machine.costs import Costs
from tilewise.emulator.machine.execute import Launch, Outcome, check_geometry, execute
from tilewise.emulator.machine.findings import Finding, Kind
from tilewise.emulator.machine.lanes import Geometry
from tilewise.emulator.machine.program import Program
from tilewise.emulator.machine.recorder import Recorder
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.parse.tree import Function
from tilewise.emulator.parse.types import Scalar
from tilewise.errors import UsageError
from tilewise.system.quantities import coordinates, extent

FREE_SECONDS = 5.0  # for a kernel of unknown sizes
OWN_STEPS = 1 << 20  # lanes · k; of a program's own launch with more than four times that, some blocks are run


@dataclass(frozen=True)
class AtShape:
    """A requested launch; grid and block default to the file's own <<<…>>>, evaluated for the shape."""

    shape: Shape | None
    grid: Sequence[int] | None = None
    block: Sequence[int] | None = None
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FreeSizes:
    """A launch of unknown sizes, with as much of it as could be evaluated."""

    written: OwnLaunch | None


@dataclass
class Setting:
    """A launch that is about to run."""

    prepared: Prepared
    bound: Bound
    geometry: Geometry
    site: LaunchSite | None
    dynamic: int | None  # bytes of extern __shared__ memory; None: not known
    limits: Limits
    checks: bool = True
    semiring: Semiring | None = None  # of the expected product; None: plus_times
    record: Any = None  # None for no events, else "all" or the (bx, by) of the blocks to record
    blocks: np.ndarray | None = None
    line: int = 0  # of the program's own launch
    assumed: bool = False  # the file does not launch the kernel: grid or block are assumed
    notes: list[str] = field(default_factory=list)

    @property
    def program(self) -> Program:
        return self.prepared.program


@dataclass
class Simulation(Setting):
    """The result of one launch."""

    outcome: Outcome = field(kw_only=True)
    findings: list[Finding] = field(kw_only=True)
    launch: Launch = field(kw_only=True)
    recorder: Recorder | None = None
    reason: str = ""  # why the program's own launch is not known

    @property
    def shape(self) -> Shape | None:
        return self.bound.shape


def triple(values: Sequence[int] | None, what: str) -> tuple[int, int, int] | None:
    if values is None:
        return None
    parts = [int(v) for v in values]
    if not 1 <= len(parts) <= 3 or min(parts) < 1:
        raise UsageError(f"{what} must be one to three positive numbers, not {tuple(values)}")
    full = parts + [1] * (3 - len(parts))
    return full[0], full[1], full[2]


def simulate(
    prepared: Prepared, launch: AtShape | OwnLaunch | FreeSizes, *, seed: Seed, limits: Limits,
    semiring: Semiring | None = None, record: Any = None, checks: bool = True,
) -> Simulation:  # fmt: skip
    """Bind, run and judge one launch of a kernel."""
    if isinstance(launch, FreeSizes):
        return _with_free_sizes(prepared, launch.written, seed, limits)
    if isinstance(launch, OwnLaunch):
        return run(replace(_own_setting(prepared, launch, seed, limits), semiring=semiring, record=record))
    setting = replace(requested_setting(prepared, launch, seed, limits, checks), semiring=semiring, record=record)
    made = run(setting)
    uncovered = next((f for f in made.findings if f.kind is Kind.UNCOVERED), None)
    if setting.assumed and launch.grid is None and uncovered is not None:
        x, y, _ = setting.geometry.grid
        if x != y:  # no launch in the file: x may be the row
            swapped = replace(launch, grid=(y, x, 1), block=setting.geometry.block)
            again = simulate(
                prepared, swapped, seed=seed, limits=limits, semiring=semiring, record=record, checks=checks
            )  # fmt: skip
            if not any(f.kind is Kind.UNCOVERED for f in again.findings):
                again.notes.append("no launch in the file: x is taken over the rows of P")
                again.assumed = True
                return again
        uncovered.hint += "; there is no launch in the file: give --grid and --block-dim if it is launched otherwise"
    return made


def requested_setting(prepared: Prepared, launch: AtShape, seed: Seed, limits: Limits, checks: bool = True) -> Setting:
    """A launch as requested, bound and ready to run."""
    current, bound = _bound(prepared, launch, limits, seed, checks)
    value = current.evaluate_launch(bound)
    dynamic = value.shared if value is not None else None
    setting = Setting(current, bound, Geometry((1, 1, 1), (1, 1, 1)), None, dynamic, limits, checks)
    _set_geometry(setting, value, launch)
    return setting


def _own_setting(prepared: Prepared, own: OwnLaunch, seed: Seed, limits: Limits) -> Setting:
    """The program's own launch; of a large grid, the corners and some blocks."""
    bound = bind_own(prepared.program, own, prepared.loaded.integers, seed, prepared.multiplies)
    geometry = Geometry(own.grid, own.block)
    setting = Setting(prepared, bound, geometry, own.site, own.shared, limits, line=own.line)
    if not prepared.program.waits_for_grid:
        setting.blocks = _some_blocks(geometry, bound.shape[1] if bound.shape else 16)
    if setting.blocks is not None:
        setting.notes.append(f"{len(setting.blocks)} of its {geometry.blocks} blocks were run")
    return setting


def _with_free_sizes(prepared: Prepared, own: OwnLaunch | None, seed: Seed, limits: Limits) -> Simulation:
    """Run with large arrays, and keep the findings that hold for every launch: barriers and shared memory."""
    program = prepared.program
    block = own.block if own is not None else _literal_block(prepared)
    grid = tuple(2 if f"blockIdx.{axis}" in builtins_used(prepared.function) else 1 for axis in "xyz")
    geometry = Geometry((grid[0], grid[1], grid[2]), block)
    bound = bind_free(program, own, max(1, geometry.blocks * geometry.threads - 3), seed)
    dynamic = own.shared if own is not None else None
    brief = replace(limits, seconds=min(limits.seconds, FREE_SECONDS))
    setting = Setting(prepared, bound, geometry, None, dynamic, brief, assumed=True)
    made = run(setting)
    unknown = _unknown_sizes(program, own)
    ends = dynamic == 0 or (dynamic is not None and not unknown)  # the size of extern __shared__ memory is known
    always = (
        _faults_of_one_thread(setting, own, seed) if any(f.kind is Kind.OUT_OF_BOUNDS for f in made.findings) else set()
    )
    made.findings = [
        f
        for f in made.findings
        if _holds_for_all_launches(f, prepared, own, unknown)
        or (ends and f.kind is Kind.OUT_OF_BOUNDS and f.array in bound.dynamic)
        or (f.kind, f.line, f.array) in always
    ]
    return made


def _faults_of_one_thread(setting: Setting, own: OwnLaunch | None, seed: Seed) -> set[tuple[Kind, int, str]]:
    """Out-of-bounds accesses of a single thread with sizes of 1 to arrays of declared length: every launch has them.
    Lengths from template parameters or missing headers do not count as declared."""
    program, alone = setting.program, Geometry((1, 1, 1), (1, 1, 1))
    declared = {name for name, _, _, external in program.shared if not external}
    if not declared or program.supplied or setting.prepared.function.template:
        return set()
    made = run(replace(setting, geometry=alone, bound=bind_free(program, own, 1, seed), notes=[]))
    return {(f.kind, f.line, f.array) for f in made.findings if f.kind is Kind.OUT_OF_BOUNDS and f.array in declared}


def _unknown_sizes(program: Program, own: OwnLaunch | None) -> list[str]:
    """The integer parameters whose values no launch gives."""
    whole = [
        (i, v.name) for i, v in enumerate(program.parameters) if isinstance(v.type, Scalar) and not v.type.floating
    ]
    known = own.arguments if own is not None else []
    return [name for i, name in whole if i >= len(known) or known[i] is None]


def _holds_for_all_launches(finding: Finding, prepared: Prepared, own: OwnLaunch | None, unknown: list[str]) -> bool:
    """Whether a finding of a run with assumed sizes holds for every launch: races in a tile of declared length or under
    a known block. WAW races may be an effect of the assumed sizes."""
    declared = {name for name, _, _, external in prepared.program.shared if not external}
    block_known = own is not None
    if finding.kind is Kind.LAUNCH:  # too many __shared__ bytes; of a program's own launch, its run reports it
        return own is None and not prepared.function.template and not prepared.program.supplied
    if finding.kind is Kind.DIVERGENT_BARRIER:
        return block_known
    if finding.kind is Kind.RACE:
        return finding.hazard != "WAW" and (finding.array in declared or block_known)
    if finding.kind is not Kind.OUT_OF_BOUNDS:  # an uninitialised read depends on the sizes at which the cell is stored
        unknown = _unknown_sizes(prepared.program, None)
    return finding.array in declared and block_known and not unknown


def _literal_block(prepared: Prepared) -> tuple[int, int, int]:
    used = builtins_used(prepared.function)
    tile = prepared.literal_tile() or prepared.loaded.own_tile
    if "threadIdx.y" in used:
        width = tile if tile is not None and tile <= 32 else 16
        return (width, width, 1)
    rows = [dims[0] for _, _, dims, external in prepared.program.shared if not external and len(dims) == 1]
    sizes = [n for n in rows if n is not None and 32 <= n <= 1024] or [prepared.loaded.own_tile or 256]
    return (max(1, min(sizes[0], 1024)), 1, 1)


def _some_blocks(geometry: Geometry, depth: int) -> np.ndarray | None:
    """Corners, middles and random blocks of a large grid; None to run all."""
    if geometry.blocks * geometry.threads * depth <= 4 * OWN_STEPS:
        return None
    room = max(4, OWN_STEPS // (geometry.threads * max(1, depth)))
    gx, gy, gz = geometry.grid
    picked: dict[int, None] = {}
    for z in (0, gz - 1):
        for y in (0, gy - 1, gy // 2):
            for x in (0, gx - 1, gx // 2, 1 % gx):
                picked[(z * gy + y) * gx + x] = None
    rng = np.random.default_rng(0)
    for extra in rng.integers(0, geometry.blocks, room).tolist():
        picked[extra] = None
    return np.sort(np.array(list(picked)[: max(room, 4)]))


def _bound(
    prepared: Prepared, launch: AtShape, limits: Limits, seed: Seed, checks: bool
) -> tuple[Prepared, Bound]:  # fmt: skip
    """The kernel with the file's constants set to the shape, and its arguments."""
    current, constants = prepared.for_shape(launch.shape)
    zeroed = current.clears_output(prepared.matrices)

    def bound(one: Prepared) -> Bound:
        width = one.loaded.width
        return bind(one.program, launch.shape, launch.args, constants, limits, seed, zeroed, checks, width)

    made = bound(current)
    passed = current.passed_constants(made)
    if passed:  # the host passes constants of the file: they must have the requested values
        current = current.with_constants({**constants, **passed})
        made = bound(current)
    return current, made


def _set_geometry(setting: Setting, value: LaunchValue | None, launch: AtShape) -> None:
    """Grid and block: as given, else of the file's launch, else from the kernel's tile."""
    current, grid, block = setting.prepared, triple(launch.grid, "grid"), triple(launch.block, "block")
    if value is not None:
        if value.unknown and (grid is None or block is None):
            line = current.site.launch.span.line if current.site else 0
            setting.notes.append(f"the launch at line {line} could not be evaluated: {value.unknown}")
        elif grid is None and block is None:
            setting.site = current.site
        grid, block = grid or value.grid, block or value.block
    setting.assumed = grid is None or block is None
    if grid is None or block is None:
        grid, block = default_launch(current, launch.shape, grid, block, setting.bound)
    setting.geometry = Geometry(grid, block)


def run(setting: Setting) -> Simulation:
    """Execute and judge; a launch that a GPU would refuse is a finding."""
    program, bound, geometry = setting.program, setting.bound, setting.geometry
    loaded = setting.prepared.loaded
    collector = Collector(loaded.source, setting.limits)
    place = place_of(setting.site.launch.span, loaded) if setting.site is not None else None
    try:
        check_geometry(geometry, program.static_shared)
    except UsageError as error:
        over = "shared memory" in str(error)  # independent of the launch
        if over and place is None:
            place = place_of(setting.prepared.function.span, loaded)
        if place is None or not setting.checks:
            raise
        refused = Finding(Kind.LAUNCH, f"this launch fails: {error}", place, access="launch", count=1)
        refused.hint = "round the grid up, (size + tile - 1) / tile, and keep blocks at 1024 threads or fewer"
        if over:
            refused.hint = "use a smaller tile, or extern __shared__ memory of the size that the launch gives"
        nothing = Launch(program, geometry, bound.arguments, bound.symbols, collector, setting.limits)
        return _simulation(setting, Outcome({}, Costs(1), [], 0, 0), [refused], nothing)
    dynamic = setting.dynamic
    if dynamic is None and program.dynamic(0):
        dynamic = 2 * geometry.threads * 8
        setting.notes.append(f"dynamic shared memory: {dynamic} bytes supplied")
    bound.dynamic = program.dynamic(dynamic or 0)
    recorder, watch = _recorder(setting)
    launch = Launch(
        program, geometry, bound.arguments, bound.symbols, collector, setting.limits, dynamic or 0, setting.checks,
        setting.checks, recorder, watch, blocks=setting.blocks,
    )  # fmt: skip
    outcome = execute(launch)
    findings = collector.findings()
    if setting.checks:
        sampled = setting.blocks is not None
        findings += judge(bound, setting.prepared.function, geometry, loaded.source, place, setting.semiring, sampled)
        stored = [b.data[b.written] for b in bound.buffers.values() if b.written is not None]
        wrong = any(f.kind is Kind.WRONG_PRODUCT for f in findings)
        findings = unfilled_reads(without_layout_overruns(findings, bound), program, stored, wrong)
        findings += cost_findings(outcome.costs, program, loaded.source)
        for finding in findings:
            describe(finding, bound)
        explain(findings, setting.prepared.function, program, geometry)
    return _simulation(setting, outcome, findings, launch)


def without_layout_overruns(findings: list[Finding], bound: Bound) -> list[Finding]:
    """Drop silent overruns of matrices that are right in another layout: their rows were assumed wrongly."""
    if bound.reading is None or bound.matrices is None:
        return findings
    transposed = {bound.matrices[role].name for role in bound.reading.transposed}
    return [f for f in findings if not (f.kind is Kind.SILENT_OVERRUN and f.array in transposed)]


def _recorder(setting: Setting) -> tuple[Recorder | None, list[int] | None]:
    if setting.record is None:
        return None, None
    buffers = setting.bound.buffers.values()
    for i, buffer in enumerate(buffers):
        buffer.index = i
    watch = None if setting.record == "all" else [_linear(setting.geometry, b) for b in setting.record]
    return Recorder([b.name for b in buffers]), watch


def _simulation(setting: Setting, outcome: Outcome, findings: list[Finding], launch: Launch) -> Simulation:
    return Simulation(**vars(setting), outcome=outcome, findings=findings, launch=launch, recorder=launch.recorder)


def default_launch(
    current: Prepared, shape: Shape | None, grid: Any, block: Any, bound: Bound
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """A launch that covers P, if the file has none: a block as large as the tile in shared memory, one-dimensional if
    the kernel uses only x."""
    function = current.function
    used = builtins_used(function)
    flat = "threadIdx.y" not in used and "threadIdx.x" in used
    width = current.literal_tile() or current.loaded.width
    if block is None:
        block = (width * width, 1, 1) if flat else (width, width, 1)
    if grid is None:
        if shape is None or bound.matrices is None:
            raise UsageError(f"{function.short}: say how many blocks to run with --grid X,Y (grid=(x, y))")
        m, _, n = shape
        if flat and "blockIdx.y" not in used:
            grid = (max(1, -(-m * n // max(1, block[0]))), 1, 1)
        else:
            across, down = (width, width) if flat else (block[0], block[1])
            grid = (max(1, -(-n // max(1, across))), max(1, -(-m // max(1, down))), 1)
    return grid, block


def builtins_used(function: Function) -> set[str]:
    texts = [t.text for t in tokens_of(function.tokens or [])]
    return {f"{a}.{b}" for a, dot, b in zip(texts, texts[1:], texts[2:], strict=False) if dot == "."}


def _linear(geometry: Geometry, block: Sequence[int]) -> int:
    parts = [int(b) for b in block]
    bx, by, bz = (*parts, 0, 0)[:3]
    gx, gy, gz = geometry.grid
    if not (0 <= bx < gx and 0 <= by < gy and 0 <= bz < gz):
        raise UsageError(f"there is no block {coordinates(parts)}: the grid is {extent(geometry.grid)}")
    return (bz * gy + by) * gx + bx
