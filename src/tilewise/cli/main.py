"""`tilewise`: finds the command, runs it, and gives every error an exit code and one sentence.

Exit codes: 0 ok, 1 a check failed, 2 wrong usage or bad input, 3 the requested device is missing, 4 failed while
running, 130 interrupted. Commands are modules of this folder with a click command called `command`; only the one that
runs is imported, so `tilewise --help` stays fast.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from tilewise.errors import TilewiseError
from tilewise.i18n import messages
from tilewise.system.version import __version__

INTERRUPTED = 130
COMMANDS = {
    "demo": "A first run: multiply on the best device present, check, show the phases.",
    "multiply": "Multiply two matrices from files, or of a shape made up.",
    "plan": "What would run for a shape, what it moves, its floor, and why.",
    "trace": "Run a CUDA C kernel with no GPU and see each thread, phase, tile and barrier.",
    "run": "Run a whole CUDA C++ program, its main included, with no GPU and no compiler.",
    "check": "Every fault of a CUDA C kernel, by line and thread, with no GPU.",
    "learn": "Exercises, one after the other: repair a kernel, get hints, go on.",
    "exercise": "Make an exercise from its solution, and check it.",
    "grade": "Grade many submissions by an assignment: points, reasons, reports.",
    "closure": "The best paths between every two nodes of a graph, from a file to a file.",
    "explore": "Write the page that steps through a kernel, and open it.",
    "lsp": "A language server: findings while typing, memory traffic on hover.",
    "bench": "Measure kernels, shapes, dtypes and semirings beside their peers.",
    "tune": "Measure which config is the fastest on this card, for later plans.",
    "warm": "Build every kernel of a dtype before a call needs one.",
    "verify-bits": "Fingerprints of arrays, and whether known products have their bits here.",
    "info": "Devices, backends, caches, versions and limits of this machine.",
}
GUARDED = ("check", "trace", "explore")  # `run` starts another process for the program


class Commands(click.Group):
    """A group that imports a command only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"tilewise.cli.{name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """For an unknown command, suggest the nearest name."""
        import difflib

        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            near = difflib.get_close_matches(args[0], COMMANDS, 1, 0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(COMMANDS)}"
            raise click.UsageError(f"No such command {args[0]!r}: {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tilewise")
def tilewise() -> None:
    """Tiled matrix multiplication without cliffs: every shape, every algebra, every size, and nothing hidden."""


def main() -> None:
    code = guarded(sys.argv[1:], run)
    if code == INTERRUPTED:  # without exit handlers, which would wait for a compiler in another thread
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def guarded(arguments: list[str], run: Callable[[list[str]], int]) -> int:
    """Run a command; those that run an untrusted kernel in a child process within a budget. Returns the exit code."""
    name = next((argument for argument in arguments if not argument.startswith("-")), "")
    if name not in GUARDED or not hasattr(os, "fork") or os.environ.get("TILEWISE_DEBUG"):
        return run(arguments)
    from tilewise.system.guarded import in_child

    ended = in_child(lambda: run(arguments), _watched)
    if ended.message:
        _complain(f"error: {ended.message}")
    return ended.code


def _watched(*given: Any) -> None:
    from tilewise.emulator import budget  # imported in the child only

    budget.watched(*given)


def run(arguments: list[str]) -> int:
    """One command, from its arguments to its exit code."""
    messages.current = "en"  # until a command sets another
    try:
        result = tilewise.main(arguments, prog_name="tilewise", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return 2
    except TilewiseError as error:
        if os.environ.get("TILEWISE_DEBUG"):
            raise
        _complain(_translated(error))
        return error.exit_code
    except (BrokenPipeError, SystemExit):  # click and rich make the second of the first
        # the reader of stdout ended, as `| head` does: no error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        _complain("error: there is not enough memory for this: give less, or stream it with --memory")
        return 4
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO):
            _complain(f"error: {error.filename or 'what is printed'} cannot be written: {error.strerror}")
            return 4
        if os.environ.get("TILEWISE_DEBUG"):
            raise
        _complain(f"error: {type(error).__name__}: {error} (TILEWISE_DEBUG=1 shows where; please report it)")
        return 4


def _translated(error: TilewiseError) -> str:
    """The message in the command's language, if there is a translation."""
    from tilewise.i18n.translation import translated

    return f"{messages.say(messages.current, 'run.error')}: {translated(str(error), messages.current)}"


def _complain(text: str) -> None:
    from tilewise.cli.terminal import plain

    print(plain(text), file=sys.stderr)


if __name__ == "__main__":
    main()
