"""`tilewise check`: the faults of a kernel as text, SARIF, JSON or compute-sanitizer's output; exit 1 if any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tilewise.cli.kernel_options import chosen_kernel, kernel_options, settings, text_width
from tilewise.cli.terminal import print_json, report_options, say


@click.command("check")
@kernel_options
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the random operands.")
@click.option("--costs", is_flag=True, help="Also report bank conflicts, uncoalesced access and divergence.")
@click.option("--strict", is_flag=True, help="Exit 1 also for faults that only other sizes show.")
@click.option("--all", "everything", is_flag=True, help="Print each finding with its threads and cells, ungrouped.")
@click.option("--prove", is_flag=True, help="Prove bounds, races and barriers for every size (extra: prove).")
@click.option("--unsafe", is_flag=True, help="Run main even where the system has no sandbox for it.")
@report_options("text", "sanitizer", "sarif", "json", language_of="text")
def command(
    file: Path | None, shapes: tuple[str, ...], kernel: str | None, seed: int, costs: bool, strict: bool,
    everything: bool, prove: bool, unsafe: bool, form: str, language: str, **rest: Any,
) -> int:  # fmt: skip
    """Run KERNEL.cu with no GPU and name every fault by line and thread; exit 1 when one was seen.

    Without --shape, a program with a main is run unchanged; then the launch that main makes, with its own sizes,
    and shapes that find bugs: rectangular, not multiples of the tile, and one smaller than a tile. What only those
    show is listed apart, and --strict counts it. Exit 2 when main does not compile and no fault was seen.

    --prove runs nothing: for every size at once, each property of a kernel is proved, refuted by the smallest
    size at which the emulator sees it fail, or not decided. Exit 1 when one is refuted; with --strict, when one is not
    proved.

    Threads and blocks are named in CUDA's order, (x 1, y 0); --format sanitizer prints (1,0,0).
    """
    from tilewise.core.problem import parse_shape
    from tilewise.emulator import budget
    from tilewise.teaching.trace import check

    chosen, options = chosen_kernel(file, kernel, None), settings(**rest)
    if prove:
        return _prove(chosen, options, shapes, form, strict)
    with budget.within(options["limits"]):
        report = check(chosen, shape=[parse_shape(s) for s in shapes] or None, seed=seed, unsafe=unsafe, **options)
        budget.enter("writing the report")
        if form == "json":
            print_json(report.to_json())
        elif form == "sarif":
            from tilewise.teaching.trace.sarif import report_sarif

            print_json(report_sarif(report, costs))
        elif form == "sanitizer":
            from tilewise.teaching.trace.sanitizer import report_sanitizer

            say(report_sanitizer(report))
        else:
            say(report.text(text_width(), language, costs, everything))
            if not shapes:
                from tilewise.teaching.trace.proofs import sentences

                ran = report.program is not None
                for line in sentences(chosen, language, report.seen, ran=ran, **options):
                    say(line)
    return 1 if strict and not report.clean else report.exit_code


def _prove(chosen: str | Path, options: dict[str, Any], shapes: tuple[str, ...], form: str, strict: bool) -> int:
    from tilewise.teaching.trace.proofs import prove_file

    if shapes:
        raise click.UsageError("--prove holds for every size: leave --shape out")
    if form == "sanitizer":
        raise click.UsageError("--prove reports as text, sarif or json")
    report = prove_file(chosen, **options)
    if form == "text":
        say(report.text())
    else:
        print_json(report.to_json() if form == "json" else report.sarif())
    return 0 if (report.proved if strict else report.ok) else 1
