"""`tilewise run`: a whole CUDA C++ program with its main; its output on stdout, its faults on stderr."""

from __future__ import annotations

import math
import os
import sys
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilewise.cli.terminal import json_text, plain, report_options
from tilewise.core.machine import KNOWN_CARDS

if TYPE_CHECKING:
    from tilewise.emulator.host.options import Options


class _WithArguments(click.Command):
    """Arguments after the first -- belong to the program; options and files come before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["program arguments"] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


@click.command("run", cls=_WithArguments)
@click.argument("program", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("further", nargs=-1, metavar="[FURTHER.cu|.cpp …] [-- ARGUMENTS]")
@click.option("--card", default="t4", show_default=True, help=f"The card to model: {', '.join(KNOWN_CARDS)}.")
@click.option("--include", "-I", multiple=True, type=click.Path(file_okay=False), help="A folder of local headers.")
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro.")
@click.option("--allow-write", multiple=True, type=click.Path(file_okay=False), help="A folder it may write to.")
@click.option(
    "--limit-time",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Time limit, without waiting for a core; by default 20, none if stderr is a terminal.",
)
@click.option(
    "--interpret",
    default=4.0,
    show_default=True,
    metavar="SECONDS",
    help="Kernels run with every check for this long, then compiled without race detection.",
)
@click.option(
    "--limit-memory",
    metavar="BYTES",
    help="Host and card together; by default 2GiB, half of the machine's if stderr is a terminal.",
)
@click.option("--limit-output", default="64MB", show_default=True, metavar="BYTES", help="Printed or written to files.")
@click.option("--untrusted", is_flag=True, help="Run it as WebAssembly: its code reaches nothing but its own memory.")
@click.option("--real-time", is_flag=True, help="Use real clocks; by default they are the same in every run.")
@click.option("--all", "everything", is_flag=True, help="Print every finding, not only the first dozen.")
@report_options("text", "sanitizer", "sarif", "json", language_of="report")
def command(
    program: Path, further: tuple[str, ...], card: str, include: tuple[str, ...], defines: tuple[str, ...],
    allow_write: tuple[str, ...], limit_time: float | None, interpret: float,
    limit_memory: str | None, limit_output: str,
    untrusted: bool, real_time: bool, form: str, language: str, everything: bool,
) -> int:  # fmt: skip
    """Run PROGRAM.cu, its main included, with no GPU, no compiler and no headers installed.

    Further files of the program follow it; files beside it that define what it declares are found too.
    Its arguments follow --. What it prints goes to stdout; faults of host and kernels go to stderr, each at its line
    with the change that repairs it. The exit status is the program's own; 1 where that is 0 and faults were found.
    Event times come from a model of --card. With --format json, sarif or sanitizer the report goes to stderr.
    """
    from tilewise.emulator.host.options import NATIVE, WASM, WHERE_POSSIBLE, Options
    from tilewise.emulator.host.process import run_program
    from tilewise.scale.budget import budget

    sources = list(takewhile(_is_source, further))
    arguments = [*further[len(sources) :], *click.get_current_context().meta["program arguments"]]
    usual = _usual_limits()
    options = Options(
        seconds=usual.seconds if limit_time is None else limit_time,
        interpret=interpret,
        memory=usual.memory if limit_memory is None else budget(limit_memory, "--limit-memory"),
        progress=usual.progress,
        output=budget(limit_output, "--limit-output"),
        card=card,
        real_time=real_time,
        writable=list(allow_write),
        include=list(include),
        sources=sources,
        sandbox=WHERE_POSSIBLE,  # the user's own file; with or without a sandbox, the same is forbidden
        target=WASM if untrusted else NATIVE,
        defines={d.partition("=")[0]: d.partition("=")[2] if "=" in d else "1" for d in defines},
    )
    sys.stdout.flush()
    report = run_program(program, arguments, options, fork=True)
    if form == "json":
        text = json_text(report.to_json())
    elif form == "sarif":
        from tilewise.teaching.trace.sarif import program_sarif

        text = json_text(program_sarif(report))
    elif form == "sanitizer":
        from tilewise.teaching.trace.sanitizer import program_sanitizer

        text = plain(program_sanitizer(report))
    elif report.silent:  # importing the report takes longer than a small program runs
        text = ""
    else:
        from tilewise.teaching.trace.program_text import program_text

        text = plain(program_text(report, everything=everything, lang=language))
    if text:
        click.echo(text, err=True)
    return report.exit_code


def _usual_limits() -> Options:
    """Limits of time and memory, and no progress, unless stderr is a terminal, whose user has Ctrl-C."""
    from tilewise.emulator.host.options import Options
    from tilewise.system.memory import total

    if not sys.stderr.isatty() or os.environ.get("CI"):
        return Options()
    return Options(seconds=math.inf, memory=max(Options.memory, total()[0] // 2), progress=True)


def _is_source(argument: str) -> bool:
    """Whether an argument before -- is a further file of the program."""
    from tilewise.emulator.host.project import SOURCES

    return argument.endswith(SOURCES) and Path(argument).is_file()
