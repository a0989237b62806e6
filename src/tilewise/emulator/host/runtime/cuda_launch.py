"""Kernel launches: prepare the kernel, read its arguments, run it, record its findings."""

from __future__ import annotations

import re
import struct
from importlib import import_module
from typing import Any

from tilewise.emulator.compile.kernel import compile_kernel
from tilewise.emulator.host.lower.launch import argument_offsets
from tilewise.emulator.host.lower.program import LaunchSite
from tilewise.emulator.host.program_report import HOST_POINTER
from tilewise.emulator.host.runtime import cuda_card as codes
from tilewise.emulator.host.runtime.c_memory import readable, writable
from tilewise.emulator.host.runtime.compiled_kernel import compiled
from tilewise.emulator.host.runtime.cuda_arguments import (
    Arguments,
    describe_arguments,
    describe_template,
    pointed_blocks,
)
from tilewise.emulator.host.runtime.cuda_card import Card
from tilewise.emulator.host.runtime.cuda_streams import launched, stream_used
from tilewise.emulator.host.runtime.dynamic_parallelism import copied_launch, queue, run_now, run_queue
from tilewise.emulator.host.runtime.graphs import captured
from tilewise.emulator.host.runtime.kernel_blocks import KernelRun, run_blocks, run_compiled, setup_seconds
from tilewise.emulator.host.runtime.repeated_launches import repeated
from tilewise.emulator.host.runtime.session import Session, runtime
from tilewise.emulator.host.runtime.swapped_arguments import report_swapped
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.costs import Costs
from tilewise.emulator.machine.execute import Outcome, check_geometry
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.machine.lanes import Geometry
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Type
from tilewise.errors import EngineError, KernelError, LimitError, UsageError
from tilewise.system.quantities import extent

NULL_NAME = re.compile(r"(\w+)(\[.*\])? goes through a null pointer")


def prepare(s: Session) -> None:
    """Import modules that the kernels need: in the sandbox no file can be opened."""
    if "__nv_bfloat16" in s.program.entities.classes:
        import_module("ml_dtypes")


def _compiled(s: Session, site: Any) -> Any:
    """The kernel for the interpreter."""
    key = (id(site.kernel), tuple(sorted((k, str(v)) for k, v in site.bindings.items())))
    if key not in s.cuda.kernels:
        limits = Limits(seconds=s.options.clock, steps=1 << 40)
        s.cuda.kernels[key] = compile_kernel(s.program, site.kernel, template=site.bindings, limits=limits)
    return s.cuda.kernels[key]


@runtime("rt_launch")
def launch(
    s: Session, number: int, handle: int, grid: int, block: int, shared: int, stream: int, arguments: int
) -> None:  # fmt: skip
    written = s.program.launches[number]
    shared &= (1 << 64) - 1  # a size_t
    site = written if written.kernel is not None else _pointed_to(s, number, handle)
    if site is None:
        return
    if s.cuda.running.geometry is not None:
        queue(s, site, grid, block, shared, arguments)
        return
    if _fails_in_stream(s, site, stream & (1 << 64) - 1, arguments):
        return
    child = copied_launch(s, site, grid, block, shared, arguments)
    if captured(s, lambda: run_now(s, child, _launch)):
        return
    _launch(s, site, grid, block, shared, arguments)
    run_queue(s, _launch)


def _fails_in_stream(s: Session, site: LaunchSite, stream: int, arguments: int) -> int:
    """Order a launch with the work of other streams; the error code for a stream that does not exist."""
    failed: int = stream_used(s, stream, site.node.line)
    if not failed and s.cuda.streams:
        stored = pointed_blocks(s, site, arguments, changed=True, program=for_interpreter(s, site)[0])
        launched(s, stream, site.node.line, pointed_blocks(s, site, arguments), stored)
    return failed


def _pointed_to(s: Session, number: int, handle: int) -> LaunchSite | None:
    """The launch site, with the kernel that the pointer stands for."""
    site: LaunchSite = s.program.launches[number]
    known = s.program.kernel_handles.get(handle)
    if known is None:
        what = "a null pointer" if not handle else "a pointer that is no kernel's"
        hint = "give the pointer the name of a __global__ function"
        s.faults.add(Kind.LAUNCH, site.node.line, f"this launch goes through {what}", hint, access="launch")
        s.cuda.fail(codes.INVALID_FUNCTION)
        s.cuda.unchecked_launches.add(site.node.line)
        return None
    sites = s.cuda.pointed_to
    if (number, handle) not in sites:
        kernel = s.program.definition(known.node)
        sites[number, handle] = LaunchSite(site.node, kernel, known.bindings, known.parameters, site.offsets)
    found: LaunchSite = sites[number, handle]
    return found


@runtime("__cuda_launch")
def launch_by_call(
    s: Session, handle: int, grid: int, block: int, pointers: int, shared: int, stream: int, cooperative: int
) -> int:
    """cudaLaunchKernel: `pointers` is an array of pointers to the arguments."""
    known = s.program.kernel_handles.get(handle)
    if known is None:
        return int(s.cuda.fail(codes.INVALID_FUNCTION))
    parameters: list[Type] = known.parameters
    sites = s.cuda.pointed_to
    if (-1, handle) not in sites:
        offsets, size = argument_offsets(s.program, parameters)
        site = LaunchSite(
            tree.Launch(None, [], []), s.program.definition(known.node), known.bindings, parameters, offsets
        )
        sites[-1, handle] = (site, s.memory.static(max(16, size), "", False))
    site, space = sites[-1, handle]
    site.node.line = s.line
    if not (readable(s, grid, 12) and readable(s, block, 12) and readable(s, pointers, 8 * len(parameters))):
        return int(s.cuda.fail(codes.INVALID_VALUE))
    before = s.cuda.last
    s.cuda.last = 0
    for i, (type_, offset) in enumerate(zip(parameters, site.offsets, strict=True)):
        (at,) = struct.unpack("<Q", s.memory.view(pointers + 8 * i, 8).tobytes())
        if not writable(s, at, type_.size):  # addressable; it may be uninitialised
            return int(s.cuda.fail(codes.INVALID_VALUE))
        s.memory.put(space + offset, s.memory.view(at, type_.size).tobytes())
    if not _fails_in_stream(s, site, stream & (1 << 64) - 1, space):
        _launch(s, site, grid, block, shared & (1 << 64) - 1, space, bool(cooperative))
    failed = int(s.cuda.last)
    s.cuda.last = failed or before
    return failed


def _launch(
    s: Session, site: LaunchSite, grid: int, block: int, shared: int, arguments: int, cooperative: bool = False
) -> None:
    card: Card = s.cuda
    assert site.kernel is not None
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
    program, reason = for_interpreter(s, site)
    problem = _configuration(s, geometry, shared, program, cooperative)
    if problem:
        if program is None:
            _refuse_unreadable(s, site, reason)
        card.fail(_code(problem))
        if line not in card.unchecked_launches:
            s.faults.add(Kind.LAUNCH, line, f"this launch fails: {problem}", _advice(problem), access="launch")
        card.unchecked_launches.add(line)
        record["failed"] = problem
        return
    if program is not None and program.waits_for_grid and not cooperative:
        message = f"{site.kernel.name} waits for its whole grid, whose blocks need not run at the same time"
        s.faults.add(Kind.LAUNCH, line, message, "launch it by cudaLaunchCooperativeKernel", access="launch")
        card.sticky = card.fail(codes.LAUNCH_FAILURE)
        record["failed"] = "a barrier of the grid"
        return
    if site.kernel.name not in card.described:
        card.described.add(site.kernel.name)
        record["arguments"] = describe_arguments(s, site, arguments)
        record["template"] = describe_template(site.bindings)
    given = Arguments(s, site, program)
    if not given.usable(arguments):
        card.illegal_address()
        record["failed"] = HOST_POINTER
        return
    run = KernelRun(s, site, program, geometry, arguments, shared)
    before = set(map(id, s.faults.all()))
    card.progress = site.kernel.name
    outcome, times = repeated(run, lambda: _run(run, given, reason))
    card.progress = ""
    report_swapped(s, site, arguments, before)
    record["microseconds"] = round(times * seconds_of(card, outcome) * 1e6, 3)
    card.computed(times * seconds_of(card, outcome))
    card.outstanding = line
    if outcome.output:
        s.console.write("".join(outcome.output).encode("utf-8", "surrogateescape"))


def for_interpreter(s: Session, site: Any) -> tuple[Any, str]:
    """The kernel for the interpreter; or None, and the reason."""
    try:
        return _compiled(s, site), ""
    except (KernelError, EngineError) as error:
        return None, str(error)


def _refuse_unreadable(s: Session, site: LaunchSite, reason: str) -> None:
    """End the program if its launch is invalid and its kernel cannot be compiled either."""
    made = compiled(s, site, Geometry((1, 1, 1), (32, 1, 1)))
    if isinstance(made, str):
        raise EngineError(_not_supported(reason, made))


def _not_supported(reason: str, made: str) -> str:
    why = f"\nnor can it be compiled: {made}" if made.splitlines()[0] != reason.splitlines()[0] else ""
    return f"the kernel of this launch is not supported yet:\n{reason}{why}"


def _run(run: KernelRun, given: Arguments, reason: str) -> tuple[Outcome, float]:
    """Interpret the launch if the time allows, else run it compiled; the outcome, and its factor to the whole grid."""
    s = run.s
    if run.program is not None and run.program.copies_asynchronously:
        run.program = None
    setup = setup_seconds(run)
    if run.program is None or s.cuda.interpreted + setup >= s.options.interpret:
        made = run_compiled(run)
        if not isinstance(made, str):
            return made
        if run.program is None:
            raise EngineError(_not_supported(reason, made))
    s.cuda.interpreted += setup
    try:
        values = given.read(run.arguments)
    except LimitError as error:
        raise LimitError(f"{run.program.entry}: {error}") from None
    except EngineError as error:  # for example void pointers; nothing has run yet, so try the compiled kernel
        run.program = None
        return _run(run, given, str(error))
    if values is None:  # a pointer in an object cannot be used on the card: reported
        s.cuda.illegal_address()
        s.cuda.launches[-1]["failed"] = HOST_POINTER
        return Outcome({}, Costs(run.geometry.threads), [], 0, 0), 1.0
    try:
        result = run_blocks(run, given, values)
        given.finished(run.site.node.line)
        return result
    except LimitError as error:
        raise LimitError(f"{run.program.entry}: {error}") from None
    except KernelError as error:
        if "null pointer" in error.message:
            _report_null(s, error, run.program.entry)
            given.finished(run.site.node.line)
            return Outcome({}, Costs(run.geometry.threads), [], 0, 0), 1.0
        raise


def _report_null(s: Session, error: KernelError, kernel: str) -> None:
    hint = "give the kernel memory from cudaMalloc: the argument is NULL, or its cudaMalloc failed"
    message, named = f"{kernel}: a thread goes through a null pointer", NULL_NAME.search(error.message)
    name = named[1] if named else ""
    if name:
        message = f"{kernel}: a thread goes through {name}, a null pointer"
    s.faults.add(Kind.NULL_POINTER, error.line, message, hint, array=name, access="kernel")
    s.cuda.illegal_address()


def static_shared(s: Session, known: Any) -> int:
    """Bytes of static __shared__ memory of a kernel; 0 if the interpreter does not support it."""
    site = LaunchSite(tree.Launch(None, [], []), s.program.definition(known.node), known.bindings, known.parameters, [])
    try:
        made = _compiled(s, site)
        return made.static_shared if made is not None else 0
    except (KernelError, EngineError, UsageError):
        return 0


def _configuration(s: Session, geometry: Geometry, shared: int, program: Any, cooperative: bool) -> str:
    """Why CUDA refuses a launch, or ''."""
    try:
        static = program.static_shared if program is not None else 0
        check_geometry(geometry, static)
    except UsageError as error:
        return str(error)
    if geometry.block[2] > 64:
        return f"a block of {extent(geometry.block)}: z is at most 64"
    most = s.cuda.shared_limit
    if shared + static > most:
        return f"{shared + static} bytes of shared memory: a block has {most}"
    resident = s.cuda.resident_blocks(geometry.threads, shared + static) * s.cuda.machine.units
    if cooperative and geometry.blocks > resident:
        return f"{geometry.blocks} cooperative blocks: a {s.cuda.machine.name} holds {resident} at a time"
    return ""


def _code(problem: str) -> int:
    if "cooperative" in problem:
        return codes.TOO_LARGE
    return codes.INVALID_VALUE if "shared" in problem else codes.BAD_CONFIGURATION


def _advice(problem: str) -> str:
    if "zero" in problem:
        return "round the grid up: (size + block - 1) / block"
    if "a grid of" in problem:
        return "count in x, which goes to 2147483647, or let each thread loop over more elements"
    if "cooperative" in problem:
        return "take the blocks from cudaOccupancyMaxActiveBlocksPerMultiprocessor, and loop over more elements"
    if "static shared" in problem:
        return "use a smaller tile, or extern __shared__ memory: nvcc refuses more than 48 KB of static arrays"
    if "shared" in problem:
        return "use a smaller tile, or cudaFuncSetAttribute(…, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)"
    return "keep blocks at 1024 threads or fewer"


def seconds_of(card: Card, outcome: Outcome) -> float:
    """A roofline model: the larger of bytes / bandwidth and statements / rate."""
    machine = card.machine
    moved = 4.0 * (outcome.counters.get("loads", 0) + outcome.counters.get("stores", 0))
    if outcome.costs.globals:
        moved = 32.0 * sum(c.units for c in outcome.costs.globals.values())
    return max(moved / machine.bandwidth, outcome.statements / machine.step_rates[""])
