"""`tilewise bench`: measure a suite beside its peers, or show a document that was saved."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tilewise.cli.output import json_option, print_json, print_rows, print_table, progress, remark

SAVE_SECONDS = 2.0  # between two writes of --save, at least


@click.command("bench")
@click.argument("suite", default="ladder")
@click.option("--device", default="auto", show_default=True, help="auto (the best present), cpu, cuda.")
@click.option("--sizes", help="Square sizes instead of the suite's own: 512,1024,4097.")
@click.option("--threads", default=1, show_default=True, help="Threads of the CPU backend and its peers.")
@click.option("--count", type=click.IntRange(1), default=30, show_default=True,
              help="Shapes in a `…-random` suite, and per dtype in `random`.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), help="Seed of the drawn cases; by default the time.")
@click.option("--dtypes", default="bf16,fp16,fp32,tf32,fp64", show_default=True, help="Dtypes of `random`.")
@click.option("--quick", is_flag=True, help="Fewer rounds.")
@click.option("--odd", is_flag=True, help="`model` with odd widths, instead of with even ones and an odd vocabulary.")
@click.option("--compile", "compiled", is_flag=True, help="Add torch.compile to `model`, alone and with ours.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the result into this PNG or SVG.")
@click.option("--save", type=click.Path(path_type=Path), help="Also write the JSON document to this file.")
@click.option("--from", "from_file", type=click.Path(path_type=Path), help="Show or plot a saved document instead.")
@json_option
def command(
    device: str, sizes: str | None, seed: int | None, plot: Path | None, save: Path | None, from_file: Path | None,
    as_json: bool, **how: Any,
) -> None:  # fmt: skip
    """SUITE is `ladder` (every rung over sizes), `tiles` (the TILE_WIDTH sweep), `shapes` (half precision on a card,
    float32 and float64 on a CPU), `cpu-random`, `semirings-random`, `halves-random` (random shapes on a CPU),
    `cliffs` (walks along m, k and n on a CPU: neighbours whose times do not follow their work), `dtypes` (other
    numbers on a card), `semirings` (every semiring against the machine's limit), `linear` (a layer of a language model
    beside torch's, forward and backward), `model` (whole training steps), `host` (what a call costs the host, tensors
    at new addresses every time), `calls` (what a call costs, by library and keyword), `random` (random shapes on a
    card, by three clocks), `scale` (larger than card, memory or one process), `stacks` (many products of one shape,
    known and random) or `groups` (rows of experts, random). Peers that are installed take part.

    All candidates of a shape run interleaved in one process on the same random operands; each product is checked
    against float64; the table shows medians.
    """
    from tilewise.bench.report import make_document
    from tilewise.bench.suites import Request, pieces, suite_named
    from tilewise.cli.job import chosen_device
    from tilewise.system.output import check_output

    for path in (plot, save):
        if path:
            check_output(path)
    if from_file:
        document = _read(from_file)
    else:
        chosen = chosen_device(device)
        seed = int(time.time()) if seed is None else seed
        request = Request(device=chosen, sizes=_sizes(sizes), seed=seed, **how)
        drawn = {"seed": seed, "count": request.count} if suite_named(request.suite).drawn else {}
        if drawn:
            remark(f"seed: {seed}")
        work = pieces(request)
        command_line = shlex.join(["tilewise", *sys.argv[1:]])
        document = {**make_document(request.suite, chosen, command_line, []), **drawn}
        _measure(work, document, save)
    if save:
        _write(save, document)
    if plot:
        from tilewise.bench.plot import draw

        draw(document, plot)
        remark(f"drawn: {plot}")
    if as_json:
        print_json(document)
    else:
        _print(document)


def _measure(work: list[Callable[[], list[dict[str, Any]]]], document: dict[str, Any], save: Path | None) -> None:
    """Run every piece and append its rows to the document."""
    bar, task = progress(len(work), f"bench {document['suite']}")
    done, written = 0, -SAVE_SECONDS
    try:
        with bar:
            for piece in work:
                document["rows"] += piece()
                done += 1
                bar.advance(task)
                if save and time.monotonic() > written + SAVE_SECONDS:
                    _write(save, document)  # what remains of a killed run; after an exception all rows are written
                    written = time.monotonic()
    except BaseException:
        if save and done:
            _write(save, document)
            remark(f"{save} holds the first {done} of {len(work)} measurements")
        raise


def _print(document: dict[str, Any]) -> None:
    """The document as tables."""
    from tilewise.bench.report import plans, tables

    for title, head, rows in tables(document):
        print_table(title, head, rows)
    if document["suite"] == "random":
        print_rows(plans(document))


def _sizes(text: str | None) -> tuple[int, ...]:
    if not text:
        return ()
    parts = text.split(",")
    if not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise click.UsageError(f"--sizes {text!r} must be whole numbers with commas, for example 512,1024,4097")
    return tuple(int(part) for part in parts)


def _read(path: Path) -> dict[str, Any]:
    import json

    from tilewise.errors import FileError

    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        assert isinstance(document["rows"], list)
    except FileNotFoundError:
        raise FileError(f"{path} does not exist") from None
    except (OSError, ValueError, KeyError, TypeError, AssertionError):
        raise FileError(f"{path} is not a document that `tilewise bench --save` wrote") from None
    return dict(document)


def _write(path: Path, document: dict[str, Any]) -> None:
    import json

    from tilewise.system.output import write_whole

    write_whole(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
