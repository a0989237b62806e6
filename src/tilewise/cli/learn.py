"""`tilewise learn`: exercises one after the other; each is a starter to repair, with hints for the faults found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tilewise.cli.terminal import plain, print_json, report_options


@click.command("learn")
@click.argument("exercise", required=False, metavar="[EXERCISE]")
@click.option("--list", "listing", is_flag=True, help="List all exercises, and which are solved.")
@click.option("--solution", is_flag=True, help="Print the solution.")
@click.option("--restart", is_flag=True, help="Overwrite your file with the starter.")
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), default=Path(), help="Your files' folder.")
@click.option("--from", "source", type=click.Path(path_type=Path), help="Exercises from a folder, a .zip or a .tar.")
@click.option("--hint", type=click.IntRange(1, 3), help="Show hint 1 (a question), 2 (the place) or 3 (the change).")
@report_options()
def command(
    exercise: str | None, listing: bool, solution: bool, restart: bool, folder: Path, source: Path | None,
    hint: int | None, form: str, language: str,
) -> int:  # fmt: skip
    """Walk through the exercises: run this, repair the file it names, run it again.

    Without EXERCISE (a number or a name) it takes the first unsolved one. An existing file is
    checked with no GPU, on random data; exit 1 until it is right.
    """
    from tilewise.i18n.messages import say
    from tilewise.teaching.course.exercises import Progress, exercises, find_exercise

    progress = Progress(folder, source)
    if listing:
        _list(progress, language, form)
        return 0
    one = find_exercise(exercise, source) if exercise else progress.next
    if one is None:
        click.echo(say(language, "learn.all", count=len(exercises(source))))
        return 0
    if solution:
        click.echo(one.solution, nl=False)
        return 0
    file = folder / one.file_name
    if restart or not file.exists():
        _begin(one, file, folder, language)
        return 0
    grade = _attempt(one, file)
    if grade.full:
        progress.solve(one)
    hints = [] if grade.full else one.hints_for(grade, language, hint or progress.step(one, grade))
    if form == "json":
        shown = [{"cause": h.cause, "line": h.line, "text": h.text} for h in hints]
        print_json({**grade.to_json(), "hints": shown, "solved": sorted(progress.solved)})
    else:
        _print(one, grade, hints, progress, language, file)
    return 0 if grade.full else 1


def _begin(one: Any, file: Path, folder: Path, language: str) -> None:
    from tilewise.errors import FileError
    from tilewise.i18n.messages import say
    from tilewise.system.output import write_whole

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made: {error.strerror or error}") from error
    write_whole(file, one.starter)
    click.echo(f"{one.number}. {one.titles[language]}\n\n{one.texts[language]}\n")
    click.echo(plain(say(language, "learn.begin", file=file)))


def _attempt(one: Any, file: Path) -> Any:
    import secrets

    from tilewise.errors import FileError
    from tilewise.teaching.course.exercises import SEED_SPACE

    try:
        text = file.read_bytes().decode("utf-8-sig", "replace")
    except OSError as error:
        raise FileError(f"{file} cannot be read: {error.strerror or error}") from error
    return one.grade(text, secrets.randbelow(SEED_SPACE))


def _proof(one: Any, file: Path) -> list[str]:
    """After a solved exercise on boundary checks: what is now proved for every size, if z3 is installed."""
    from tilewise.emulator.limits import DEFAULT
    from tilewise.emulator.prove.solver import available
    from tilewise.errors import TilewiseError
    from tilewise.teaching.trace.proofs import prove_file

    if not available() or not {"out-of-bounds", "silent-overrun"} & one.hints.keys():
        return []
    try:
        return prove_file(file, tile=one.assignment.tile, limits=DEFAULT).text().splitlines()
    except TilewiseError:
        return []


def _print(one: Any, grade: Any, hints: list[Any], progress: Any, language: str, file: Path) -> None:
    from tilewise.i18n.messages import say
    from tilewise.teaching.course.exercises import exercises
    from tilewise.teaching.course.reports import item_name, number, sentence

    click.echo(f"{one.number}. {one.titles[language]}: {number(grade.points)}/{number(grade.most)}")
    shown = set()
    for item in grade.items:
        if item.points < item.most and (why := sentence(item, grade, language)) not in shown:
            shown.add(why)
            click.echo(plain(f"  {item_name(item.name, one.assignment, language)}: {why}"))
    for hint in hints:
        click.echo(plain(f"  → {hint.text}"))
    if grade.full:
        for line in _proof(one, file):
            click.echo(line)
        done, all_of_them = progress.done, len(exercises(progress.source))
        click.echo(say(language, "learn.solved", done=done, count=all_of_them))
        click.echo(say(language, "learn.next" if progress.next else "learn.all", count=all_of_them))
    else:
        click.echo(say(language, "learn.again", number=one.number))


def _list(progress: Any, language: str, form: str) -> None:
    from tilewise.teaching.course.exercises import exercises

    if form == "json":
        solved = progress.solved
        print_json(
            [
                {"number": one.number, "name": one.name, "title": one.titles[language], "solved": one.name in solved}
                for one in exercises(progress.source)
            ]
        )
        return
    for one in exercises(progress.source):
        mark = "✓" if one.name in progress.solved else "·"
        click.echo(f"{mark} {one.number:2d}  {one.titles[language]}")
