"""`check` first runs the program itself, if it has a main; findings of that run have the basis SEEN.

If that run ended normally, it covers its own launches: a fault that only a probe with another shape shows has the basis
OTHER_SIZES."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tilewise.emulator.host.options import REQUIRED, WHERE_POSSIBLE, Options, strangers_target
from tilewise.emulator.host.process import run_program
from tilewise.emulator.host.program_report import UNCONFINED, ProgramReport
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.findings import STALE, Basis, Finding, Kind, Severity
from tilewise.emulator.source.source import Source, read_source
from tilewise.errors import KernelError, TilewiseError
from tilewise.teaching.trace.launch import ENTRY, Run
from tilewise.teaching.trace.report import CheckReport

SHARE = 0.5  # of the check's time limit
INTERPRET = 2.0  # seconds of interpretation, before kernels are compiled
MAIN = re.compile(r"\bmain\s*\(")
ALLOCATES = re.compile(
    r"\bcuda(Malloc|HostAlloc|HostRegister)|__device__|__managed__|\bdevice_vector\b"
)  # a main without any of these beside a kernel with pointers is only a sketch: compiled, and not run
POINTERS = re.compile(r"__global__[^{;]*\([^)]*[*\[]")
GENERAL = re.compile(r"keep the subscript|clear it first")  # hints that know no matrix and no allocation
BY_MAIN = frozenset({  # what the program's own run would have shown
    Kind.OUT_OF_BOUNDS, Kind.UNINITIALISED_READ, Kind.DIVERGENT_BARRIER, Kind.RACE, Kind.LAUNCH, Kind.ASSERTION,
})  # fmt: skip


def run_of_program(
    source: Source, defines: Mapping[str, str | int], limits: Limits, unsafe: bool = False
) -> ProgramReport | None:
    """The program's own run; None if it has no main, or a sketch of one that compiles.

    `unsafe`: also if the system has no sandbox for it."""
    texts = [source.text, *(other.text for other in getattr(source, "others", ()) if Path(other.name).is_file())]
    sketch = POINTERS.search(source.text) is not None and not any(map(ALLOCATES.search, texts))
    if not MAIN.search(source.text):
        return None
    options = Options(
        seconds=SHARE * limits.seconds, interpret=INTERPRET, memory=limits.memory,
        output=8 << 20, lenient=not sketch, compile_only=sketch,
        defines={k: str(v) for k, v in defines.items()}, sandbox=WHERE_POSSIBLE if unsafe else REQUIRED,
        target=strangers_target(),
    )  # fmt: skip
    try:
        program = _run(source, options)
    except (TilewiseError, OSError) as error:
        program = ProgramReport(source.name, 4, "refused", str(error))
    return None if sketch and not program.rejected else program


def _run(source: Source, options: Options) -> ProgramReport:
    path = Path(source.name)
    if path.is_file():
        return run_program(path, [], options, capture=True)
    with TemporaryDirectory() as folder:  # a text: the run needs a file
        copy = Path(folder) / "kernel.cu"
        copy.write_text(source.text, "utf-8")
        return _renamed(run_program(copy, [], options, capture=True), str(copy), source.name)


def _renamed(program: ProgramReport, path: str, name: str) -> ProgramReport:
    """The report with the temporary file's path replaced by the text's name."""
    for finding in program.findings:
        if finding.place is not None and finding.place.file == path:
            finding.place = replace(finding.place, file=name)
    return replace(program, path=name, message=program.message.replace(path, name))


def not_run(program: ProgramReport) -> bool:
    """Whether there is no run to report: no sandbox, refused, missing arguments, or a failed process."""
    return program.ended in (UNCONFINED, "failed", "refused") or bool(program.wanted)


def launched(program: ProgramReport) -> set[str]:
    """The kernels that the program's own run executed."""
    return {str(launch["kernel"]).rpartition("::")[2] for launch in program.launches if not launch.get("failed")}


def as_run(program: ProgramReport, file: str, runs: list[Run], tiles: set[str]) -> Run:
    """The program's run as a `Run`, without findings that the kernels' runs report in more detail. `tiles`: shared
    arrays whose uninitialised reads those runs have already judged."""
    reported = {(f.kind, f.line) for run in runs for f in run.findings if f.basis is Basis.SEEN}
    mine = [
        f
        for f in program.findings
        if f.severity is Severity.FAULT and (f.kind, f.line) not in reported
        if not (f.kind is Kind.UNINITIALISED_READ and f.array in tiles)
    ]
    return Run(file, ENTRY, None, None, (1, 1, 1), (1, 1, 1), (), (), {}, tuple(mine), origin="own")


def grounds_of(program: ProgramReport) -> str:
    """The basis of the verdict on the program, as a sentence."""
    launches = len(program.launches)
    many = f"{launches} launch{'es' if launches != 1 else ''}"
    if program.ended == "limit":
        return f"was run as it stands, and stopped after {many}: {program.message}"
    if program.ended == "crash":
        return f"was run as it stands, until {program.message}"
    return f"was run as it stands: status {program.status} after {many}"


def program_alone(
    kernel: str | Path, defines: Mapping[str, str | int], limits: Limits, error: KernelError, unsafe: bool
) -> CheckReport:
    """The report of a file whose kernels cannot be read one by one: that of the program's own run."""
    try:
        source = read_source(kernel)
    except TilewiseError:
        raise error from None
    program = run_of_program(source, defines, limits, unsafe)
    if program is None or not_run(program):
        raise error from None
    run = as_run(program, source.name, [], set())
    return CheckReport(source.name, (run,), {ENTRY: grounds_of(program)}, {"its kernels": str(error)}, program)


def correct(program: ProgramReport, runs: list[Run]) -> list[Run]:
    """The kernels' findings with their basis corrected by the program's own run."""
    shown: dict[tuple[Kind, int], dict[str, Finding]] = {}
    for f in program.findings:
        shown.setdefault((f.kind, f.line), {})[f.array] = f
    whole: dict[str, bool] = {}
    for launch in program.launches:
        name = str(launch["kernel"]).rpartition("::")[2]
        whole[name] = whole.get(name, True) and not launch.get("compiled_blocks") and not launch.get("failed")
    done = program.ended == "exit" and not any(f.kind in (Kind.LAUNCH, Kind.NULL_POINTER) for f in program.faults)
    out = []
    for run in runs:
        findings = tuple(
            _correct(f, shown, done and run.entry in whole, whole.get(run.entry, False)) for f in run.findings
        )
        out.append(replace(run, findings=findings))
    return out


def _correct(
    finding: Finding, shown: Mapping[tuple[Kind, int], Mapping[str, Finding]], launched: bool, whole: bool
) -> Finding:
    """`shown`: the findings of the program's own run, by array."""
    if finding.severity is not Severity.FAULT:
        return finding
    there = shown.get((finding.kind, finding.line))
    if there is not None:
        finding.basis = Basis.SEEN
        same = there.get(finding.array)
        if same is not None:  # that run knows the allocation
            finding.evidence = finding.evidence or same.evidence
            finding.hint = same.hint if same.hint and GENERAL.match(finding.hint) else finding.hint
    elif finding.hazard == STALE:  # reported where the product is wrong, which that run does not know
        pass
    elif launched and finding.basis is Basis.SEEN and finding.kind in BY_MAIN and (whole or finding.kind != Kind.RACE):
        finding.basis = Basis.OTHER_SIZES
    return finding
