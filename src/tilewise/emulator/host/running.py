"""Parse, lower, compile and run a program, in a child process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tilewise.core.machine import KNOWN_CARDS
from tilewise.emulator.host.joined_files import declared_only, further_files
from tilewise.emulator.host.lower.call import PREFIX
from tilewise.emulator.host.lower.function import LoweredProgram
from tilewise.emulator.host.lower.module import module_text
from tilewise.emulator.host.options import Options
from tilewise.emulator.host.program_report import UNCONFINED, refused
from tilewise.emulator.host.runtime import (
    c_memory,
    c_misc,
    c_stdio,
    comparisons,
    cpp_library,
    cuda_api,
    cuda_libraries,
    cuda_streams,
    exceptions,
    fourier,
    host_faults,
    images,
    initialised_ranges,
    mixed_gemm,
    program_files,
    releases,
    streams,
    thrust,
)
from tilewise.emulator.host.runtime.linking import symbols_of
from tilewise.emulator.host.runtime.sealing import reserve, seal
from tilewise.emulator.host.runtime.session import FUNCTIONS, NEEDS, Session
from tilewise.emulator.host.target import Trapped
from tilewise.emulator.host.translation_unit import Copies, Unit, read_unit
from tilewise.emulator.host.watch import LEAST
from tilewise.emulator.parse.declared import Declared
from tilewise.emulator.parse.parser import read_tokens
from tilewise.errors import EngineError, FileError, KernelError, SandboxError, TilewiseError
from tilewise.system.memory import growth_limited

MAX_NOTED = 4  # entities that could not be parsed
MISSING_ARGUMENTS = 64  # null pointers after argv, so that reads of missing arguments are detected
STACK_BYTES = 512 << 20
REGISTERED = (  # imported because they register runtime functions
    c_memory, c_misc, c_stdio, cpp_library, cuda_api, cuda_libraries, cuda_streams, exceptions, fourier, host_faults,
    images, mixed_gemm, program_files, releases, streams, thrust, initialised_ranges,
)  # fmt: skip


def build(path: str | Path, options: Options, report: Callable[[dict[str, Any]], None]) -> tuple[Session, str]:
    """The session and the LLVM text of a program.

    `lenient`: of a program that does not compile, build what does; its report has the refusal and the launches.
    """
    try:
        return _build(path, options, report)
    except (KernelError, FileError) as error:
        if not options.lenient:
            raise
        outcome = {name: value for name, value in refused(error).items() if name != "launches"}
        try:
            return _build_once(
                path, options, lambda document: report({**document, **outcome}), [], Copies(), lenient=True
            )
        except (TilewiseError, RecursionError):
            raise error from None


def _build(path: str | Path, options: Options, report: Callable[[dict[str, Any]], None]) -> tuple[Session, str]:
    unknown_headers: list[str] = []
    copies = Copies()
    try:
        try:
            return _build_once(path, options, report, unknown_headers, copies)
        except TilewiseError:
            if not copies.found:
                raise
            made = _with_other_copies(path, options, report)
            if made is None:
                raise
            return made
    except RecursionError:
        raise EngineError("the program is nested too deep") from None
    except KernelError as error:
        if unknown_headers:
            names = ", ".join(dict.fromkeys(unknown_headers))
            raise FileError(f"{error}\n{names}: not among the headers that are known here") from None
        raise


def _with_other_copies(
    path: str | Path, options: Options, report: Callable[[dict[str, Any]], None]
) -> tuple[Session, str] | None:
    """Build with the other choice between the project's and the shipped copies of known headers; None if that fails."""
    sources = list(options.sources)
    options.other_copies = True
    try:
        return _build_once(path, options, report, [], Copies(other=True))
    except (TilewiseError, RecursionError):
        options.other_copies = False
        options.sources[:] = sources
        return None


def _build_once(
    path: str | Path, options: Options, report: Callable[[dict[str, Any]], None], unknown_headers: list[str],
    copies: Copies, lenient: bool = False,
) -> tuple[Session, str]:  # fmt: skip
    room = max(options.memory, LEAST)
    with growth_limited(room):
        unit, known, declared, notes, ambiguity = _read(path, options, unknown_headers, copies)
    session = Session(unit.source, options, report)
    session.faults.notes += notes
    session.faults.notes += [
        f"<{h}> is not included: its names are declared as if another header included it" for h in unit.implied
    ]
    entities = declared.entities
    session.faults.notes += [f"not read, and not used: {str(e).splitlines()[0]}" for e in entities.refusals[:MAX_NOTED]]
    program = LoweredProgram(unit.source, entities, declared.names, session.memory)
    program.library_variables = known
    program.constants_are_written = True
    program.lenient = lenient
    program.catches = any(token.text == "catch" for token in unit.tokens)
    session.program = program
    session.before_report.append(host_faults.small_allocations)
    session.cuda = cuda_api.new_card(session, path)
    session.at_end.append(comparisons.check_comparisons)
    try:
        with growth_limited(room):
            text = module_text(program)
    except TilewiseError as error:
        if ambiguity and "never defined" in str(error):
            raise FileError(f"{error}\n{ambiguity}") from None
        if entities.refusals:  # report the parse error first: later ones may follow from it
            raise entities.refusals[0] from None
        raise
    return session, text


def _read(
    path: str | Path, options: Options, unknown_headers: list[str], copies: Copies
) -> tuple[Unit, set[str], Declared, list[str], str]:
    """Parse the program's files, and further ones that define what is only declared; with notes and an ambiguity."""
    given = [Path(p).resolve() for p in options.sources]
    notes: list[str] = []
    while True:
        others = [Path(p).resolve() for p in options.sources]
        card = KNOWN_CARDS.get(options.card, KNOWN_CARDS["t4"])  # an unknown card is refused later
        unit = read_unit(path, options.include, options.defines, others, copies, card.arch)
        unknown_headers[:] = unit.unknown
        known = set(unit.declared.entities.order)
        declared = read_tokens(unit.source, unit.tokens, unit.declared, library=False)
        missing = declared_only(declared.entities)
        if given or not missing:  # named files are complete
            return unit, known, declared, notes, ""
        taken = [Path(path).resolve(), *others]
        more, ambiguity = further_files(missing, taken, [Path(p) for p in unit.local])
        if not more:
            return unit, known, declared, notes, ambiguity
        options.sources += [str(p) for p in more]
        notes += [f"{p.name} was read as part of the program: it defines what is declared here" for p in more]


def execute(session: Session, text: str, arguments: list[str], name: str, confine: Callable[[], None]) -> None:
    """Run the program; it ends this process. `confine` is called in its thread before `main`."""
    program = session.program
    if program.launches or program.kernel_handles:  # otherwise the kernel compiler and the machine are not imported
        import_module("tilewise.emulator.host.runtime.cuda_launch").prepare(session)
    for external in program.externals:
        if external.removeprefix(PREFIX) in NEEDS:
            import_module(NEEDS[external.removeprefix(PREFIX)])
    target = session.memory.target
    main = target.load(text, symbols_of(session), "start", ("i32", "i32", "ptr", "i64"))
    argv = _argv(session, [name, *arguments])
    session.arguments = len(arguments)
    room = target.stack_room(text, STACK_BYTES)
    if program.launches or program.kernel_handles:
        reserve(len(FUNCTIONS))
    seal()

    def run() -> None:
        try:
            confine()
        except SandboxError as error:
            session.finish(error.exit_code, UNCONFINED, str(error))
        try:
            session.leave(main(len(arguments) + 1, argv, room))
        except Trapped as error:
            session.trapped(error)
        except TilewiseError as error:
            session.finish(error.exit_code, "refused", str(error))

    threading.stack_size(STACK_BYTES)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()  # `Watch` enforces the limits


def _argv(session: Session, arguments: list[str]) -> int:
    memory = session.memory
    addresses = [memory.constant(w.encode("utf-8", "surrogateescape") + b"\0") for w in arguments]
    data = b"".join(a.to_bytes(8, "little") for a in (*addresses, *[0] * MISSING_ARGUMENTS))
    return memory.constant(data)
