"""The code blocks of a Markdown file, and how each kind of them is run.

`python` blocks of a file run one after the other in one namespace, `sh` blocks in bash. A block that begins with `$ `
is compared with the output of the command; `…` matches anything. A comment before a block lists what it needs beyond a
plain install: `<!-- needs: card, torch -->`; where that is missing, the block is skipped.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"(?:<!-- needs: (?P<needs>[^>]*) -->\n)?^```(?P<kind>[\w{}]*)\n(?P<text>.*?)^```$", re.M | re.S)
FRAMEWORKS = ("torch", "jax", "cupy")
NEEDS = ("card", "network", "your shell", "make", "compiler", "minutes", *FRAMEWORKS)
NOT_CODE = ("text", "c", "{toctree}")  # output, and the signature that kernels share


@dataclass(frozen=True)
class Block:
    file: Path
    line: int
    kind: str
    text: str
    needs: tuple[str, ...]

    @property
    def missing(self) -> str:
        """Needs that are not available; empty when the block can run."""
        return ", ".join(need for need in self.needs if not available(need))


def available(need: str) -> bool:
    assert need in NEEDS, f"unknown need {need!r}: {', '.join(NEEDS)}"
    if need == "card":
        from tilewise.arrays.card import card_count

        return card_count() > 0
    if need == "compiler":
        from shutil import which

        return which("g++") is not None
    return need in FRAMEWORKS and find_spec(need) is not None


def blocks(file: Path) -> list[Block]:
    text = file.read_text(encoding="utf-8")
    made = []
    for match in FENCE.finditer(text):
        needs = tuple(need.strip() for need in (match["needs"] or "").split(",") if need.strip())
        line = text.count("\n", 0, match.start("text")) + 1
        kind = match["kind"] or ("console" if match["text"].startswith("$ ") else "text")
        made.append(Block(file, line, kind, match["text"], needs))
    return made


def run(block: Block, namespace: dict[str, object], folder: Path) -> None:
    if block.kind == "python":
        code = "\n" * (block.line - 1) + block.text
        exec(compile(code, str(block.file), "exec"), namespace)
    elif block.kind == "pycon":
        test = doctest.DocTestParser().get_doctest(block.text, namespace, block.file.name, str(block.file), block.line)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        assert runner.run(test).failed == 0, f"{block.file}:{block.line}"
    elif block.kind == "sh":
        done = shell(block.text, folder)
        assert done.returncode == 0, f"{block.file}:{block.line}: {done.stderr[-2000:]}"
    elif block.kind == "console":
        console(block, folder)
    else:
        assert block.kind in NOT_CODE, f"{block.file}:{block.line}: {block.kind!r} blocks cannot run"


def console(block: Block, folder: Path) -> None:
    command, _, expected = block.text[2:].partition("\n")
    done = shell(command, folder)
    assert done.returncode in (0, 1, 2), done.stderr
    parts = [re.escape(part.strip("\n")) for part in expected.split("…\n")]
    pattern = r"\n?(?:.*\n)*?".join(part for part in parts if part) if "…\n" in expected else re.escape(expected)
    printed = done.stdout + done.stderr
    assert re.search(pattern, printed), f"{block.file}:{block.line}: {command} printed\n{printed}"


def shell(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """bash in a folder of samples; `tilewise` and `python` are those of this environment, and no browser opens."""
    programs = folder / ".programs"
    if not programs.exists():
        programs.mkdir()
        for name, arguments in (("tilewise", "-m tilewise"), ("python", "")):
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n', encoding="utf-8")
            (programs / name).chmod(0o755)
    settings = {"PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "80", "NO_COLOR": "1", "BROWSER": "true"}
    return subprocess.run(
        ["bash", "-e", "-c", text], cwd=folder, env={**os.environ, **settings}, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
