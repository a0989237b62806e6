"""How commands print: results on stdout, as a table or as JSON; progress and remarks on stderr; NO_COLOR honoured."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tilewise.cli.terminal import plain, print_json

__all__ = [
    "console", "counted_progress", "json_option", "plain", "print_json", "print_rows", "print_table", "progress",
    "remark", "show",
]  # fmt: skip


def json_option(function: Any) -> Any:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")(function)


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """A table of names and values."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Text(plain(value)))  # no markup: "[cuda]" is an extra, not a style
    console().print(table)


def show(document: Any, rows: Iterable[tuple[str, str]], as_json: bool) -> None:
    """Print a command's result: one JSON document, or a table of names and values."""
    print_json(document) if as_json else print_rows(rows)


def print_table(title: str, columns: list[str], rows: Iterable[Iterable[str]]) -> None:
    table = Table(title=title, title_justify="left", header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    console().print(table)


def console() -> Console:
    """The terminal's width; 160 columns in a file or a pipe."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def remark(text: str) -> None:
    """For people, on stderr; programs read stdout."""
    Console(stderr=True, highlight=False).print(plain(text), style="dim", markup=False)


def progress(total: int | None, what: str) -> tuple[Progress, Any]:
    """A progress bar on stderr with the time left; disabled if stderr is no terminal."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    return bar, bar.add_task(what, total=total)


@contextlib.contextmanager
def counted_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar as a function of (done, total)."""
    bar, task = progress(1, what)
    with bar:
        yield lambda done, total: bar.update(task, completed=done, total=total)
