"""`tilewise explore`: the page to step through a kernel, written to one HTML file and opened."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tilewise.cli.kernel_options import chosen_kernel, kernel_options, settings
from tilewise.cli.output import print_json, remark
from tilewise.cli.trace import beyond_one_shape, block_choice


@click.command("explore")
@kernel_options
@click.option(
    "--compare", nargs=2, type=click.Path(path_type=Path), metavar="A.cu B.cu", help="Two kernels side by side."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The HTML file; a temporary one where not given.")
@click.option("--lang", default="en", show_default=True, help="The page's first language: en, vi, pt.")
@click.option("--block", "blocks", multiple=True, metavar="BY,BX", help="Record this block, or all; repeatable.")
@click.option("--seed", type=int, help="Random operands; without it they count 1, 2, 3, …")
@click.option("--what-if/--no-what-if", default=True, help="Carry the rung's variants too.  [default: what-if]")
@click.option(
    "--open/--no-open", "show", default=None, help="Open it in a browser; by default when there is a terminal."
)
@click.option("--json", "as_json", is_flag=True, help="Print the file's path, size and faults as JSON.")
def command(
    file: Path | None, shapes: tuple[str, ...], kernel: str | None, compare: tuple[Path, Path] | None,
    output: Path | None, lang: str, blocks: tuple[str, ...], seed: int | None, what_if: bool, show: bool | None,
    as_json: bool, **rest: Any,
) -> int:  # fmt: skip
    """Write the step-through page of KERNEL.cu (or of tiled_edges, 3x3x3, TILE_WIDTH 2) and open it.

    One HTML file that needs no network: M, N and P with their tiles, shared memory, threads and registers, barriers,
    the source line by line, counters and faults. A rung of the ladder brings variants without each check and barrier.
    """
    from tilewise.cli.npy import reserved
    from tilewise.engines.simt import budget
    from tilewise.page import explore
    from tilewise.problem import parse_shape

    if len(shapes) > 1:
        raise click.UsageError("explore shows one --shape")
    if compare and (file is not None or kernel is not None):
        raise click.UsageError("give --compare A.cu B.cu, or one kernel, not both")
    first = compare[0] if compare else chosen_kernel(file, kernel, "tiled_edges")
    options = settings(**rest)
    with reserved(output, ()) as place, budget.within(options["limits"]):
        page = explore(
            first,
            compare=compare[1] if compare else None,
            lang=lang,
            what_if=what_if,
            blocks=block_choice(blocks) if blocks else None,
            shape=parse_shape(shapes[0]) if shapes else None,
            seed=seed,
            **options,
        )
        budget.enter("writing the page")
        if place:
            place.write(page.html.encode())
            target = place.target
        else:
            target = page.save(_temporary(page.trace.run.entry)).resolve()
    faults = [len(scene.trace.run.faults) for scene in page.scenes if not scene.drops]
    if as_json:
        print_json({"html": str(target), "bytes": target.stat().st_size, "scenes": len(page.scenes), "faults": faults})
    else:
        click.echo(str(target))
        run = page.trace.run
        if file is not None and run.shape is not None:
            at = "x".join(map(str, run.shape))
            remark(f"at {at}, {page.trace.phases} phase{'s' if page.trace.phases != 1 else ''}")
            remark(beyond_one_shape(file, run.entry, rest))
    if show or (show is None and sys.stdout.isatty()):
        import webbrowser

        if not webbrowser.open(target.as_uri()):
            remark("no browser could be opened: open the file yourself")
    return 0


def _temporary(name: str) -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix="tilewise-")) / f"{name}.html"
