"""Which blocks of a launch are interpreted, with every check, and which run compiled, with checks of bounds and
initialisation: decided by the work counted in the first blocks, not by a clock, so that output is deterministic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewise.emulator.host.runtime import cuda_card as codes
from tilewise.emulator.host.runtime.compiled_kernel import FEW_BLOCKS, INSTRUMENTED_THREADS, CompiledKernel, compiled
from tilewise.emulator.host.runtime.cuda_arguments import Arguments, pointed_blocks
from tilewise.emulator.host.runtime.memory import HOST_AND_CARD, describe
from tilewise.emulator.host.runtime.session import Session
from tilewise.emulator.host.runtime.uninitialised_reads import missing_copy_hint, partial_copy_hint
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.collector import Collector
from tilewise.emulator.machine.costs import Costs, distinct
from tilewise.emulator.machine.execute import Launch, Outcome, execute
from tilewise.emulator.machine.findings import Finding, Kind
from tilewise.emulator.machine.lanes import Geometry
from tilewise.errors import LimitError

SAMPLE_LANES = 1 << 14  # threads that are interpreted before the decision
# seconds of the interpreter: a statement, each of its threads, an access of global memory, of shared memory
STEP, LANE, ACCESS, SHARED_ACCESS = 2e-4, 6e-9, 6e-8, 1e-8
PREPARE = 4e-9  # for each byte that a launch's arguments point to
COUNTED_BLOCKS = 32  # of a grid of at least this size one block is run instrumented
SAMPLE_SECONDS = 1.0  # for the first blocks of one launch
MAX_SAVED_BYTES = 128 << 20  # of memory saved to restart a launch


@dataclass
class KernelRun:
    """One launch."""

    s: Session
    site: Any
    program: Any  # for the interpreter; None if it does not support this kernel
    geometry: Geometry
    arguments: int
    shared: int


def record_findings(s: Session, collector: Collector, given: Arguments) -> None:
    """Add the interpreter's findings to those of the program; an assertion is a sticky error."""
    found = collector.findings()
    for finding in s.cuda.phrase(found, given) if found and s.cuda.phrase is not None else found:
        known = next((f for f in s.faults.kernel if _same(f, finding)), None)
        if known is None:
            _explain(finding, given)
            s.faults.add_kernel(finding)
        else:
            known.count += finding.count
        if finding.kind is Kind.ASSERTION:
            s.cuda.sticky = s.cuda.fail(codes.ASSERTED)


def _same(a: Finding, b: Finding) -> bool:
    return (a.kind, a.place, a.array, a.access, a.hazard) == (b.kind, b.place, b.array, b.access, b.hazard)


def _explain(finding: Finding, given: Arguments) -> None:
    """Explain a kernel's fault by its cause in host code: memory that was not copied to, or allocated too small."""
    block = given.block_of(finding.array)
    if block is None:
        return
    if finding.kind is Kind.UNINITIALISED_READ and (not block.written or block.kind == "__device__"):
        finding.hint = missing_copy_hint(block)
    elif block.pitch and finding.kind in (Kind.UNINITIALISED_READ, Kind.OUT_OF_BOUNDS):
        row = f"(T*)((char*){finding.array} + y * pitch) + x"
        finding.hint = f"rows of {block.name} are {block.pitch} bytes apart: {row}"
    elif finding.kind is Kind.UNINITIALISED_READ:
        finding.hint = partial_copy_hint(block) or finding.hint
    if finding.kind is Kind.OUT_OF_BOUNDS:
        named = "" if block.name == finding.array else f"{finding.array} is "
        finding.evidence = named + describe(block)


def sample_of(geometry: Geometry) -> np.ndarray:
    """Some blocks of a grid, evenly spaced, the first and last included."""
    count = max(4, SAMPLE_LANES // geometry.threads)
    return distinct(np.linspace(0, geometry.blocks - 1, min(count, geometry.blocks)).astype(np.int64))


def setup_seconds(run: KernelRun) -> float:
    """Estimated seconds of the interpreter to inspect the memory of a launch."""
    return PREPARE * sum(b.size for b in {id(b): b for b in pointed_blocks(run.s, run.site, run.arguments)}.values())


def seconds(outcome: Outcome, lanes: float) -> float:
    """Estimated seconds of the interpreter for these statements, with `lanes` threads each."""
    count = outcome.counters
    accesses = count.get("loads", 0) + count.get("stores", 0) + 4 * count.get("atomics", 0)
    shared = count.get("uses", 0) + count.get("shared_writes", 0)
    return outcome.steps * (STEP + LANE * lanes) + ACCESS * accesses + SHARED_ACCESS * shared


def interpret(run: KernelRun, given: Arguments, values: dict[str, Any], blocks: Any, steps: int) -> Outcome:
    s, geometry = run.s, run.geometry
    collector = Collector(s.program.source, Limits())
    limits = replace(Limits(), seconds=s.options.clock, steps=steps, memory=s.options.memory, printf=1 << 20)
    small = geometry.blocks * geometry.threads <= 1 << 16
    machine = Launch(
        run.program, geometry, values, {}, collector, limits, run.shared, True, small, None, None, given.globals,
        blocks,
    )  # fmt: skip
    given.dynamic = run.program.dynamic(run.shared)
    s.cuda.race_checked.add(id(run.site.kernel))
    try:
        made = execute(machine)
        made.statements = made.steps * geometry.threads * (geometry.blocks if blocks is None else len(blocks))
        return made
    finally:
        record_findings(s, collector, given)


def run_blocks(run: KernelRun, given: Arguments, values: dict[str, Any]) -> tuple[Outcome, float]:
    """All blocks; the interpreted ones' counts, and the factor from these to the whole grid."""
    card, geometry = run.s.cuda, run.geometry
    lanes = geometry.blocks * geometry.threads
    whole = lanes <= SAMPLE_LANES or run.program.waits_for_grid
    sample = np.arange(geometry.blocks) if whole else sample_of(geometry)
    width = len(sample) * geometry.threads
    before = _saved_memory(given)
    left = min(SAMPLE_SECONDS, max(0.1, run.s.options.interpret - card.interpreted))
    most = int(left / (STEP + 4 * LANE * width)) + 1
    try:
        outcome = interpret(run, given, values, sample, 1 << 40 if before is None else most)
    except LimitError:
        if before is None:
            raise
        card.interpreted += most * (STEP + 4 * LANE * width)
        return _restart(run, given, before)
    card.interpreted += seconds(outcome, width)
    if len(sample) == geometry.blocks:
        return outcome, 1.0
    rest = np.setdiff1d(np.arange(geometry.blocks), sample, assume_unique=True)
    more = seconds(outcome, width) * (len(rest) / len(sample))
    if card.interpreted + more <= run.s.options.interpret or isinstance(compiled(run.s, run.site, run.geometry), str):
        card.interpreted += more
        return _joined(outcome, interpret(run, given, values, rest, 1 << 40)), 1.0
    _run_compiled_blocks(run, _ranges(rest), len(sample))
    return outcome, geometry.blocks / len(sample)


def _restart(run: KernelRun, given: Arguments, before: list[tuple[Any, Any, Any]]) -> tuple[Outcome, float]:
    """The first blocks took too long: restore memory, and run the launch compiled."""
    for block, data, state in before:
        run.s.memory.view(block.address, block.size)[:] = data
        run.s.memory.restore_states(state)
        block.initialised = False
    if isinstance(compiled(run.s, run.site, run.geometry), str):
        fresh = Arguments(run.s, run.site, run.program)
        values = fresh.read(run.arguments)
        assert values is not None
        return interpret(run, fresh, values, None, 1 << 40), 1.0
    given.forget()
    return _run_compiled_blocks(run, [(0, run.geometry.blocks)], 0)


def run_compiled(run: KernelRun) -> tuple[Outcome, float] | str:
    """All blocks as compiled code; or why it cannot be compiled."""
    made = compiled(run.s, run.site, run.geometry)
    if isinstance(made, str):
        return made
    return _run_compiled_blocks(run, [(0, run.geometry.blocks)], 0)


def _run_compiled_blocks(run: KernelRun, ranges: list[tuple[int, int]], sampled: int) -> tuple[Outcome, float]:
    """Counts of the instrumented blocks, and the factor to the whole grid; without such blocks, an estimate of a load
    and a store per thread."""
    made = compiled(run.s, run.site, run.geometry)
    assert isinstance(made, CompiledKernel)
    record, geometry = run.s.cuda.launches[-1], run.geometry
    instrumented = 0 if sampled else _instrumented_blocks(run)
    record["lanes"], work = made.run(geometry, run.arguments, run.shared, ranges, instrumented)
    mark_changed(run)
    record["interpreted_blocks"] = sampled
    record["compiled_blocks"] = sum(last - first for first, last in ranges)
    if work is not None:
        return work, geometry.blocks / instrumented
    threads = geometry.blocks * geometry.threads
    return Outcome({"loads": threads, "stores": threads}, Costs(geometry.threads), [], 1, 1, threads), 1.0


def _instrumented_blocks(run: KernelRun) -> int:
    """How many blocks are run instrumented, to find races and count work: as many as have INSTRUMENTED_THREADS if the
    interpreter does not support the kernel, few if it had no time for any launch of it, else one of a large grid."""
    blocks, seen = run.geometry.blocks, run.s.cuda.race_checked
    fresh = id(run.site.kernel) not in seen
    seen.add(id(run.site.kernel))
    if run.program is None:
        return min(blocks, max(1, INSTRUMENTED_THREADS // run.geometry.threads))
    return min(blocks, FEW_BLOCKS) if fresh else int(blocks >= COUNTED_BLOCKS)


def mark_changed(run: KernelRun) -> None:
    """Mark the blocks that the launch may have stored to as written at its line."""
    line = run.site.node.line
    for block in pointed_blocks(run.s, run.site, run.arguments, changed=True, program=run.program):
        block.written = True
        block.stored = line
        if block.kind in HOST_AND_CARD:
            run.s.cuda.in_use(block, block.address, block.size, line)
            block.stored, block.copied = 0, True


def _saved_memory(given: Arguments) -> list[tuple[Any, Any, Any]] | None:
    """A copy of the memory that the launch may change; None if that is too large."""
    memory = given.s.memory
    changed = [block for block, buffer in given.blocks.values() if buffer.shadow is not None]
    if sum(b.size for b in changed) > MAX_SAVED_BYTES:
        return None
    return [(b, memory.view(b.address, b.size).copy(), memory.save_states(b.address, b.size)) for b in changed]


def _ranges(blocks: Any) -> list[tuple[int, int]]:
    """Runs of consecutive numbers, as (first, end)."""
    cuts = np.flatnonzero(np.diff(blocks) != 1) + 1
    parts = np.split(blocks, cuts)
    return [(int(p[0]), int(p[-1]) + 1) for p in parts]


def _joined(one: Outcome, two: Outcome) -> Outcome:
    counters = {k: one.counters.get(k, 0) + two.counters.get(k, 0) for k in {*one.counters, *two.counters}}
    return Outcome(counters, two.costs if two.costs.globals else one.costs, [*one.output, *two.output],
                   one.steps + two.steps, max(one.phases, two.phases), one.statements + two.statements)  # fmt: skip
