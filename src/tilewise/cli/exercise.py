"""`tilewise exercise`: make an exercise from its solution, and check exercises."""

from __future__ import annotations

from pathlib import Path

import click

POINTS = """shapes = ["4x4x4", "5x3x7", "3x6x2"]
tile = 2

[points]
parses = 1
product = 5
faults = 4
"""


@click.group("exercise")
def command() -> None:
    """Make exercises for `tilewise learn --from FOLDER`."""


@command.command("new")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--solution",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The finished .cu; the starter omits the lines between // BEGIN SOLUTION and // END SOLUTION.",
)
@click.option("--title", required=True)
@click.option("--text", required=True, help="The task, in a sentence or two.")
@click.option(
    "--assignment",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Assignment TOML; by default a matrix product's.",
)
def new(folder: Path, solution: Path, title: str, text: str, assignment: Path | None) -> int:
    """Write starter, solution, assignment and texts to FOLDER; check that the starter fails and the solution passes."""
    from tilewise.errors import FileError
    from tilewise.teaching.course.exercises import new_exercise

    try:
        points = assignment.read_text(encoding="utf-8") if assignment else POINTS
        new_exercise(folder, solution.read_text(encoding="utf-8"), title, text, points)
    except OSError as error:
        raise FileError(f"{error.filename} cannot be read: {error.strerror}") from None
    return _report(folder)


@command.command("check")
@click.argument("folder", type=click.Path(path_type=Path))
def check(folder: Path) -> int:
    """Check every exercise of a folder, a .zip or a .tar: exit 1 where a starter passes or a solution fails."""
    return _report(folder)


def _report(folder: Path) -> int:
    import secrets

    from tilewise.cli.terminal import plain
    from tilewise.teaching.course.exercises import SEED_SPACE, exercises, problems_of

    wrong = 0
    for one in exercises(folder):
        found = problems_of(one, secrets.randbelow(SEED_SPACE))
        wrong += len(found)
        for problem in found:
            click.echo(plain(f"{one.name}: {problem}"))
        if not found:
            click.echo(plain(f"{one.name}: the starter fails, the solution passes"))
    return 1 if wrong else 0
