"""Commands that run other people's kernels run in a child process (`system.guarded`), within one budget."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from tilewise.system.guarded import Publish, in_child

COMMANDS = ("check", "trace", "explore")  # `run` starts a process of its own for the program


def guarded(arguments: list[str], run: Callable[[list[str]], int]) -> int:
    """Run a command, in a child where it may be hostile; its exit code."""
    name = next((word for word in arguments if not word.startswith("-")), "")
    if name not in COMMANDS or not hasattr(os, "fork") or os.environ.get("TILEWISE_DEBUG"):
        return run(arguments)
    ended = in_child(lambda: run(arguments), _watched)
    if ended.message:
        from tilewise.cli.terminal import plain

        print(f"error: {plain(ended.message)}", file=sys.stderr)
    return ended.code


def _watched(publish: Publish, began: float) -> None:
    from tilewise.emulator import budget  # in the child: the parent only waits

    budget.watched(publish, began)
