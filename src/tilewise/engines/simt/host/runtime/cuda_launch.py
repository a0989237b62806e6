"""A launch: the kernel compiled for the machine, its arguments read from memory, run, and what it found kept."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import numpy as np

from tilewise.engines.simt.compile.kernel import compile_kernel
from tilewise.engines.simt.frontend import ctype
from tilewise.engines.simt.frontend.parser import Parser
from tilewise.engines.simt.frontend.syntax import File, Function
from tilewise.engines.simt.host.runtime import cuda_card as codes
from tilewise.engines.simt.host.runtime.cuda_arguments import Arguments
from tilewise.engines.simt.host.runtime.cuda_card import Card, PendingError
from tilewise.engines.simt.host.runtime.host_faults import describe
from tilewise.engines.simt.host.runtime.session import Session, runtime
from tilewise.engines.simt.host.translation_unit import read_unit
from tilewise.engines.simt.limits import Limits
from tilewise.engines.simt.machine.collector import Collector
from tilewise.engines.simt.machine.costs import Costs
from tilewise.engines.simt.machine.execute import Launch, Outcome, check_geometry, execute
from tilewise.engines.simt.machine.findings import Finding, Kind
from tilewise.engines.simt.machine.lanes import Geometry
from tilewise.errors import EngineError, KernelError, LimitError, UsageError


def load_kernels(s: Session) -> File:
    """The file once more, as kernels see it."""
    card: Card = s.cuda
    if card.loaded is None:
        unit = read_unit(card.path, s.options.include, s.options.defines, host=False)
        card.loaded = (unit.source, Parser(unit.source, unit.tokens, Limits()).parse())
        for name, (item, words) in card.loaded[1].variables.items():
            if "__constant__" in words:
                card.loaded[1].variables[name] = (item, words | {"__device__"})
    file: File = card.loaded[1]
    return file


def _function(s: Session, name: str, count: int) -> Function:
    file = load_kernels(s)
    short = name.rpartition("::")[2]
    for function in file.functions.get(short, []):
        if "__global__" in function.words and function.body is not None and len(function.parameters) == count:
            return function
    raise EngineError(f"the kernel {short} could not be read for the machine")


def _compiled(s: Session, site: Any) -> Any:
    card: Card = s.cuda
    template = {n: _template_value(v) for n, v in site.bindings.items()}
    key = (id(site.kernel), tuple(sorted((k, str(v)) for k, v in template.items())))
    if key not in card.kernels:
        function = _function(s, site.kernel.name, len(site.parameters))
        limits = Limits(seconds=s.options.seconds, steps=1 << 40)
        card.kernels[key] = compile_kernel(card.loaded[0], card.loaded[1], function, template=template, limits=limits)
    return card.kernels[key]


def _template_value(value: Any) -> Any:
    """A host type as the machine's, by its name."""
    if isinstance(value, tuple):
        return value[0]
    name = str(value)
    for known in vars(ctype).values():
        if isinstance(known, ctype.Scalar) and known.name == name:
            return known
    found = ctype.NAMED.get(name)
    if found is None:
        raise EngineError(f"a kernel's template argument {name} is not supported")
    return found


@runtime("rt_launch")
def launch(s: Session, number: int, grid: int, block: int, shared: int, stream: int, arguments: int) -> None:
    site = s.program.launches[number]
    card: Card = s.cuda
    line = site.node.line
    sizes = (
        struct.unpack("<3I", s.memory.view(grid, 12).tobytes()),
        struct.unpack("<3I", s.memory.view(block, 12).tobytes()),
    )
    record = {
        "kernel": site.kernel.name,
        "line": line,
        "grid": list(sizes[0]),
        "block": list(sizes[1]),
        "shared": shared,
    }
    card.launches.append(record)
    if card.sticky:
        return
    geometry = Geometry(sizes[0], sizes[1])
    try:
        program = _compiled(s, site)
    except KernelError as error:
        raise EngineError(f"the kernel of this launch is not supported yet:\n{error}") from None
    problem = _configuration(s, geometry, shared, program)
    if problem:
        card.fail(codes.BAD_CONFIGURATION if "shared" not in problem else codes.INVALID_VALUE)
        card.unasked.append(PendingError(card.last, line, problem))
        if not any(p.line == line for p in card.unasked[:-1]):
            s.faults.add(Kind.LAUNCH, line, f"this launch fails: {problem}", _mend(problem), access="launch")
        record["failed"] = problem
        return
    given = Arguments(s, site, program)
    values = given.read(arguments)
    if values is None:
        card.sticky = card.fail(codes.ILLEGAL_ADDRESS)
        record["failed"] = "a host pointer"
        return
    outcome = _run(s, program, geometry, values, shared, given)
    given.finished(line)
    card.computed(seconds_of(card, outcome, geometry, given))
    record["microseconds"] = round(seconds_of(card, outcome, geometry, given) * 1e6, 3)
    if outcome.output:
        s.console.write("".join(outcome.output).encode("utf-8", "surrogateescape"))


def _run(
    s: Session, program: Any, geometry: Geometry, values: dict[str, Any], shared: int, given: Arguments
) -> Outcome:
    card: Card = s.cuda
    collector = Collector(card.loaded[0], Limits())
    limits = replace(Limits(), seconds=s.options.seconds, steps=1 << 40, memory=s.options.memory, printf=1 << 20)
    small = geometry.blocks * geometry.threads <= 1 << 16
    machine = Launch(program, geometry, values, {}, collector, limits, shared, True, small, None, None, given.globals)
    try:
        outcome = execute(machine)
    except LimitError as error:
        _keep(s, collector, given)
        raise LimitError(f"{program.entry}: {error}") from None
    except KernelError as error:
        _keep(s, collector, given)
        if "null pointer" not in error.message:
            raise
        _through_null(s, error, program.entry)
        return Outcome({}, Costs(geometry.threads), [], 0, 0)
    _keep(s, collector, given)
    return outcome


def _through_null(s: Session, error: KernelError, kernel: str) -> None:
    """A card stops such a kernel, and every call after it returns the error."""
    hint = "give the kernel memory from cudaMalloc: the argument is NULL, or its cudaMalloc failed"
    s.faults.add(
        Kind.NULL_POINTER, error.line, f"{kernel}: a thread goes through a null pointer", hint, access="kernel"
    )
    s.cuda.sticky = s.cuda.fail(codes.ILLEGAL_ADDRESS)


def _keep(s: Session, collector: Collector, given: Arguments) -> None:
    """Findings of the kernel, in sentences; a bad address or an assertion is sticky, as on a card."""
    for finding in collector.findings():
        if s.cuda.word is not None:
            s.cuda.word(finding, given)
        known = next((f for f in s.faults.kernel if _same(f, finding)), None)
        if known is None:
            _explain(finding, given)
            s.faults.kernel.append(finding)
        else:
            known.count += finding.count
        if finding.kind is Kind.ASSERTION:
            s.cuda.sticky = s.cuda.fail(codes.ASSERTED)


def _same(a: Finding, b: Finding) -> bool:
    return (a.kind, a.place, a.array, a.access, a.hazard) == (b.kind, b.place, b.array, b.access, b.hazard)


def _explain(finding: Finding, given: Arguments) -> None:
    """A kernel's fault whose cause stands on the host: never copied in, or allocated too small."""
    block = given.block_of(finding.array)
    if block is None:
        return
    if finding.kind is Kind.UNINITIALISED_READ and not block.written:
        finding.hint = (
            f"nothing was ever copied into {block.name or 'it'} (allocated at line {block.line}): "
            f"cudaMemcpy({block.name or 'it'}, …, cudaMemcpyHostToDevice) or cudaMemset before the launch"
        )
    elif finding.kind is Kind.OUT_OF_BOUNDS:
        finding.evidence = f"{finding.array} is {describe(block)}"


def _configuration(s: Session, geometry: Geometry, shared: int, program: Any) -> str:
    """What the runtime refuses about a launch, '' where nothing."""
    try:
        check_geometry(geometry)
    except UsageError as error:
        return str(error)
    if geometry.block[2] > 64:
        return f"a block of {geometry.block}: z is at most 64"
    static = 0
    for _, type_, _, external in program.shared:
        static += 0 if external else type_.size
    if static > 48 << 10:
        return f"{static} bytes of static shared memory: a block has 49152"
    most = s.cuda.shared_limit
    if shared + static > most:
        return f"{shared + static} bytes of shared memory: a block has {most}"
    return ""


def _mend(problem: str) -> str:
    if "no zero" in problem:
        return "round the grid up: (size + block - 1) / block"
    if "shared" in problem:
        return "use a smaller tile, or cudaFuncSetAttribute(…, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)"
    return "keep blocks at 1024 threads or fewer"


def seconds_of(card: Card, outcome: Outcome, geometry: Geometry, given: Arguments) -> float:
    """A roofline: bytes moved over the bandwidth, statements over the lanes."""
    machine = card.machine
    moved = 4.0 * (outcome.counters.get("loads", 0) + outcome.counters.get("stores", 0))
    if outcome.costs.globals:
        moved = 32.0 * sum(c.units for c in outcome.costs.globals.values())
    statements = outcome.steps * min(geometry.blocks * geometry.threads, 1 << 16)
    return max(moved / machine.bandwidth, statements / machine.step_rates[""])


__all__ = ["np"]
