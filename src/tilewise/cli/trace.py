"""`tilewise trace`: a kernel run with no GPU, as the course's table: threads down and phases across."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tilewise.cli.kernel_options import chosen_kernel, kernel_options, settings, text_width, whole_numbers
from tilewise.cli.terminal import print_json, report_options, say


@click.command("trace")
@kernel_options
@click.option("--block", "blocks", multiple=True, metavar="BX,BY", help="Show this block, or all; repeatable.")
@click.option("--phase", "phases", multiple=True, type=click.IntRange(0), help="Show this phase only; repeatable.")
@click.option("--seed", type=click.IntRange(0), help="Random operands; by default M is 1, 2, 3, … and N what follows.")
@click.option("--html", "html_file", type=click.Path(path_type=Path), help="Write the page to step through it.")
@click.option(
    "--svg", "svg_file", type=click.Path(path_type=Path), help="Write a picture of one phase (--phase, else 0)."
)
@click.option("--svg-dir", type=click.Path(path_type=Path), help="Write a picture of every phase and block shown.")
@report_options("text", "json", language_of="text, page and pictures")
def command(
    file: Path | None, shapes: tuple[str, ...], kernel: str | None, blocks: tuple[str, ...], phases: tuple[int, ...],
    seed: int | None, form: str, html_file: Path | None, svg_file: Path | None, svg_dir: Path | None,
    language: str, **rest: Any,
) -> int:  # fmt: skip
    """Run KERNEL.cu (or tiled_edges) with no GPU: what each thread loads, where it puts it, what it adds.

    The sizes of a matmul-like kernel are bound by name and order, and the binding is printed. --block chooses what is
    shown; how many threads are launched is --block-dim. Exit 1 when the run has faults.
    """
    from tilewise.core.problem import parse_shape
    from tilewise.emulator import budget
    from tilewise.teaching.page.views import trace

    if len(shapes) > 1:
        raise click.UsageError("trace shows one --shape; check takes several")
    chosen = chosen_kernel(file, kernel, "tiled_edges")
    options = settings(**(_rung_options(rest) if file is None else rest))
    for path in (html_file, svg_file):
        if path:
            from tilewise.system.output import check_output

            check_output(path)
    with budget.within(options["limits"]):
        shape = parse_shape(shapes[0]) if shapes else None
        made = trace(chosen, shape=shape, blocks=block_choice(blocks), seed=seed, **options)
        check_phases(phases, made.phases)
        budget.enter("drawing")
        if html_file or svg_file or svg_dir:
            _write_views(made, html_file, svg_file, svg_dir, language, phases)
        if form == "json":
            print_json(made.to_json(), indent=None)
        else:
            say(made.text(text_width(), phases or None, language))
            if file is not None:
                say(beyond_one_shape(file, made.run.entry, rest, language))
    return 1 if made.run.faults else 0


def beyond_one_shape(file: Path, entry: str, rest: dict[str, Any], language: str) -> str:
    """The verdict of `tilewise check`, which runs more shapes, in one line."""
    from tilewise.errors import TilewiseError
    from tilewise.i18n import messages
    from tilewise.i18n.translation import translated
    from tilewise.teaching.trace import check
    from tilewise.teaching.trace.report import verdict_line

    chosen = {**settings(**rest), "entry": entry}
    try:
        return verdict_line(check(file, **chosen), language)
    except TilewiseError as error:
        return messages.say(
            language, "check.not.judged", name="tilewise check", reason=translated(str(error).splitlines()[0], language)
        )


def check_phases(requested: tuple[int, ...], count: int) -> None:
    """Every requested phase must be one of the run's."""
    verdict_line = [phase for phase in requested if phase >= count]
    if verdict_line and count:
        which = "phase 0 only" if count == 1 else f"phases 0 to {count - 1}"
        raise click.UsageError(f"--phase {verdict_line[0]}: this run has {which}")


def _write_views(
    made: Any, html_file: Path | None, svg_file: Path | None, svg_dir: Path | None, lang: str, phases: tuple[int, ...]
) -> None:
    from tilewise.cli.output import remark
    from tilewise.system.output import write_whole
    from tilewise.teaching.page.exploring import explore

    page = explore(made, lang=lang)
    if svg_file:
        write_whole(svg_file, page.svg(phases[0] if phases else 0))
        remark(f"written: {svg_file}")
    if svg_dir:
        remark(f"written: {len(page.save_svgs(svg_dir))} pictures in {svg_dir}")
    if html_file:
        remark(f"written: {page.save(html_file)}")


def _rung_options(rest: dict[str, Any]) -> dict[str, Any]:
    """The options of a rung: TILE_WIDTH 2, as in the course, by default."""
    return {**rest, "tile": 2 if rest["tile"] is None else rest["tile"]}


def block_choice(texts: tuple[str, ...]) -> Any:
    """The blocks of --block: "all", or (bx, by) pairs."""
    if "all" in texts:
        return "all"
    chosen = []
    for text in texts:
        numbers = whole_numbers(text, "--block", 3) or ()
        if len(numbers) < 2:
            raise click.UsageError(f"--block {text!r} must be BX,BY, for example 0,0, or all")
        chosen.append(numbers)
    return tuple(chosen) or ((0, 0),)
