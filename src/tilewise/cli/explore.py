"""`tilewise explore`: the page that steps through a kernel, written to one HTML file and opened."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewise.cli.kernel_options import chosen_kernel, kernel_options, settings
from tilewise.cli.output import print_json, remark
from tilewise.cli.terminal import report_options
from tilewise.cli.trace import beyond_one_shape, block_choice

if TYPE_CHECKING:
    from tilewise.teaching.page.views import Trace


@click.command("explore")
@kernel_options
@click.option(
    "--compare", nargs=2, type=click.Path(path_type=Path), metavar="A.cu B.cu", help="Two kernels side by side."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The HTML file; by default a temporary one.")
@click.option("--block", "blocks", multiple=True, metavar="BX,BY", help="Record this block, or all; repeatable.")
@click.option("--seed", type=click.IntRange(0), help="Random operands; by default M is 1, 2, 3, … and N what follows.")
@click.option("--what-if/--no-what-if", default=True, help="Include the kernel's variants.  [default: what-if]")
@click.option("--open/--no-open", "show", default=None, help="Open it in a browser; by default on a terminal.")
@click.option("--fault", is_flag=True, help="Open it on the first fault: its block, phase and thread.")
@click.option("--live", is_flag=True, help="Serve one page on this machine with an editor: a change shows at once.")
@click.option("--watch", is_flag=True, help="Like --live, from the file on disk: updated whenever it is saved.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of --live and --watch; 0: any free one.")
@report_options(language_of="page at first", json_help="Print the file's path, size and faults as JSON.")
def command(
    file: Path | None, shapes: tuple[str, ...], kernel: str | None, compare: tuple[Path, Path] | None,
    output: Path | None, blocks: tuple[str, ...], seed: int | None, what_if: bool, show: bool | None, fault: bool,
    live: bool, watch: bool, port: int, form: str, language: str, **rest: Any,
) -> int:  # fmt: skip
    """Write the step-through page of KERNEL.cu (or of the lecture notes' kernel, 3x3x3, TILE_WIDTH 2) and open it.

    One HTML file that needs no network: M, N and P with their tiles, shared memory, threads and registers, barriers,
    the source line by line, counters and faults; variants without each check and barrier, and for a missing barrier an
    order of threads that gives a wrong P. --compare takes files or rungs.
    """
    from tilewise.cli.npy import reserved
    from tilewise.core.problem import parse_shape
    from tilewise.emulator import budget
    from tilewise.teaching.page.exploring import explore

    if len(shapes) > 1:
        raise click.UsageError("explore shows one --shape")
    if compare and (file is not None or kernel is not None):
        raise click.UsageError("give --compare A.cu B.cu, or one kernel, not both")
    if live or watch:
        if compare or kernel or output or (watch and file is None):
            raise click.UsageError("--live takes one KERNEL.cu or none, --watch one; no --compare, -o or --kernel")
        return serve(file, watch, language, port, _given(shapes, rest), show)
    chosen: Any = None if file is None and kernel is None else chosen_kernel(file, kernel, None)
    options = settings(**rest)
    with reserved(output, ()) as place, budget.within(options["limits"]):
        page = explore(
            file_or_rung(compare[0]) if compare else chosen,
            compare=file_or_rung(compare[1]) if compare else None,
            lang=language,
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
    address = target.as_uri() + (_fault_fragment(page.trace) if fault else "")
    faults = [len(scene.trace.run.faults) for scene in page.scenes if not scene.drops]
    if form == "json":
        written = {"html": str(target), "address": address, "bytes": target.stat().st_size}
        print_json({**written, "scenes": len(page.scenes), "faults": faults})
    else:
        click.echo(str(target))
        run = page.trace.run
        if file is not None and run.shape is not None:
            at = "x".join(map(str, run.shape))
            remark(f"at {at}, {page.trace.phases} phase{'s' if page.trace.phases != 1 else ''}")
            remark(beyond_one_shape(file, run.entry, rest, language))
    if not _open_browser(address, show):
        remark("no browser could be opened: open the file yourself")
    if fault:
        remark(address)
    return 0


def _fault_fragment(trace: Trace) -> str:
    """The URL fragment that selects the block, phase and thread of the first fault."""
    touch = next((touch for finding in trace.run.faults for touch in finding.touches), None)
    if touch is None:
        return ""
    block, thread = (",".join(map(str, place)) for place in (touch.block, touch.thread))
    return f"#block={block}&phase={touch.phase}&thread={thread}"


def _open_browser(address: str, show: bool | None) -> bool:
    """Open the address if `show`, or if it is None and stdout is a terminal; False if no browser could be opened."""
    import webbrowser

    wanted = sys.stdout.isatty() if show is None else show
    return not wanted or webbrowser.open(address)


def _given(shapes: tuple[str, ...], rest: dict[str, Any]) -> dict[str, Any]:
    """The options that the user gave: the live page has other defaults for the rest."""
    from tilewise.core.problem import parse_shape

    given = {"shape": parse_shape(shapes[0])} if shapes else {}
    named = {k: v for k, v in settings(**rest).items() if v is not None and (k != "limits" or rest["limits"])}
    return {**given, **named}


def file_or_rung(name: Path) -> str | Path:
    """The name of a rung, unless a file has that name."""
    from tilewise.errors import FileError
    from tilewise.kernels.ladder.model import LADDER
    from tilewise.teaching.trace.rungs import is_rung

    if name.exists():
        return name
    if is_rung(str(name)):
        return str(name)
    raise FileError(f"{name} is neither a file nor a rung of the ladder: {', '.join(LADDER)}")


def serve(file: Path | None, watch: bool, lang: str, port: int, given: dict[str, Any], show: bool | None) -> int:
    """The live page, until it is interrupted."""
    from tilewise.emulator import budget
    from tilewise.errors import UsageError
    from tilewise.teaching.page.live import Server, Workbench

    budget.unwatched("serving the page")  # each edit runs in another process, with other limits
    workbench = Workbench(file, watch, given)
    try:
        server = Server(workbench, lang, port)
    except OSError as error:
        raise UsageError(f"--port {port} cannot be used: {error.strerror or error}") from error
    click.echo(server.address)
    remark("for this machine only; Ctrl-C ends it")
    _open_browser(server.address, show)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        remark("ended")
    finally:
        server.server_close()
    return 0


def _temporary(name: str) -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix="tilewise-")) / f"{name}.html"
