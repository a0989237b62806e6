"""Options of `trace`, `check` and `explore` that choose the kernel, its launch and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

RUNGS = "naive, tiled, tiled_edges, coarsened, register_tiled"

_OPTIONS = (
    click.argument("file", required=False, metavar="[KERNEL.cu]", type=click.Path(path_type=Path)),
    click.option("--shape", "shapes", multiple=True, help="MxKxN: rows of M, columns of M, columns of N."),
    click.option("--tile", type=int, help="Overrides the file's TILE_WIDTH, BLOCK_SIZE and similar names; 1 to 32."),
    click.option("--kernel", help=f"A rung of our own ladder instead of a file: {RUNGS}."),
    click.option("--semiring", default="plus_times", show_default=True, help="Semiring of the expected P."),
    click.option("--dtype", default="float32", show_default=True, help="Dtype of the --kernel rung."),
    click.option("--entry", help="The __global__ function, if the file has several."),
    click.option("--grid", help="Grid, X,Y or X,Y,Z blocks, instead of the file's <<<…>>>."),
    click.option("--block-dim", help="Threads of a block, X,Y or X,Y,Z."),
    click.option(
        "--arg",
        "arguments",
        multiple=True,
        metavar="NAME=VALUE",
        help="Value of a parameter: a number, a .npy file, or DTYPE:SIZE such as float32:64.",
    ),
    click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro."),
    click.option(
        "--limit",
        "limits",
        multiple=True,
        metavar="NAME=VALUE",
        help="Limit of a run: steps, seconds, memory, nesting, touches, printf, tokens.",
    ),
)


def kernel_options(function: Any) -> Any:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def chosen_kernel(file: Path | None, kernel: str | None, default: str | None) -> str | Path:
    """The kernel's file, or the name of a rung."""
    from tilewise.kernels.ladder.model import find_rung

    if file is not None and kernel is not None:
        raise click.UsageError("give KERNEL.cu or --kernel NAME, not both")
    if file is not None:
        return file if file.parent != Path() or file.suffix else Path(".") / file
    name = kernel or default
    if name is None:
        raise click.UsageError("give KERNEL.cu, or --kernel NAME for a rung of the ladder")
    return find_rung(name).name


def settings(
    tile: int | None, semiring: str, dtype: str, entry: str | None, grid: str | None, block_dim: str | None,
    arguments: tuple[str, ...], defines: tuple[str, ...], limits: tuple[str, ...],
) -> dict[str, Any]:  # fmt: skip
    """The keyword arguments of `tw.trace` and `tw.check` that both take."""
    return {
        "tile": tile,
        "semiring": semiring,
        "dtype": dtype,
        "entry": entry,
        "grid": whole_numbers(grid, "--grid", 3),
        "block": whole_numbers(block_dim, "--block-dim", 3),
        "args": dict(_pair(text, "--arg", _argument) for text in arguments) or None,
        "defines": dict(_pair(text, "-D", lambda _, value: value, "1") for text in defines) or None,
        "limits": _limits(limits),
    }


def whole_numbers(text: str | None, option: str, most: int) -> tuple[int, ...] | None:
    """`16,16` or `16x16` as numbers."""
    if text is None:
        return None
    parts = text.replace("x", ",").split(",")
    if not 1 <= len(parts) <= most or not all(p.strip().isdigit() for p in parts):
        raise click.UsageError(f"{option} {text!r} must be whole numbers such as {','.join('01234'[:most])}")
    return tuple(int(p) for p in parts)


def _pair(text: str, option: str, read: Callable[[str, str], Any], default: str | None = None) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name.strip() or (not equals and default is None):
        raise click.UsageError(f"{option} {text!r} must be NAME=VALUE")
    return name.strip(), read(name, value.strip() if equals else str(default))


def _argument(name: str, value: str) -> Any:
    import numpy as np

    from tilewise.algebra.dtypes import dtype_named
    from tilewise.cli.npy import read_matrix

    if value.endswith(".npy"):
        return read_matrix(Path(value))
    dtype, colon, size = value.partition(":")
    if colon:
        sizes = whole_numbers(size, f"--arg {name}", 3) or ()
        if int(np.prod(sizes, dtype=object)) > 1 << 28:
            raise click.UsageError(f"--arg {name}={value}: {size} is too large an array")
        return np.arange(1, int(np.prod(sizes)) + 1).reshape(sizes).astype(dtype_named(dtype).numpy)
    for kind in (lambda text: int(text, 0), float):
        try:
            return kind(value)
        except ValueError:
            continue
    raise click.UsageError(f"--arg {name}={value}: give a number, a .npy file, or DTYPE:SIZE such as float32:64")


def _limits(given: tuple[str, ...]) -> Any:
    from dataclasses import fields, replace

    from tilewise.emulator.limits import DEFAULT

    known = {f.name: type(getattr(DEFAULT, f.name)) for f in fields(DEFAULT)}

    def read(name: str, value: str) -> Any:
        if name.strip() not in known:
            raise click.UsageError(f"--limit {name} is not known; known are {', '.join(known)}")
        try:
            number = known[name.strip()](value)
        except (ValueError, OverflowError):
            number = -1
        if not number > 0:
            raise click.UsageError(f"--limit {name}={value}: give a positive number")
        return number

    return replace(DEFAULT, **dict(_pair(text, "--limit", read) for text in given))


def text_width() -> int:
    """The terminal's width; 80 columns without a terminal."""
    from shutil import get_terminal_size

    return max(60, get_terminal_size((80, 24)).columns)
