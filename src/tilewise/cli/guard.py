"""Commands that run untrusted kernels run in a child process (`system.guarded`), within one budget."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from tilewise.system.guarded import Publish, in_child

COMMANDS = ("check", "trace", "explore")  # `run` starts another process for the program


def guarded(arguments: list[str], run: Callable[[list[str]], int]) -> int:
    """Run a command, in a child process where the kernel is untrusted; its exit code."""
    name = next((argument for argument in arguments if not argument.startswith("-")), "")
    if name not in COMMANDS or not hasattr(os, "fork") or os.environ.get("TILEWISE_DEBUG"):
        return run(arguments)
    ended = in_child(lambda: run(arguments), _watched)
    if ended.message:
        from tilewise.cli.terminal import plain

        print(f"error: {plain(ended.message)}", file=sys.stderr)
    return ended.code


def _watched(publish: Publish) -> None:
    from tilewise.emulator import budget  # in the child: the parent only waits

    budget.watched(publish)
