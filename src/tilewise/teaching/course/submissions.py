"""What is to be graded: files, folders, patterns, standard input; each with a name for reports."""

from __future__ import annotations

import glob
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tilewise.errors import UsageError

ENDINGS = (".cu", ".cuh", ".cpp", ".c")


@dataclass(frozen=True)
class Submission:
    name: str
    file: str
    text: str | None = None  # already read, from standard input


def collect(given: Iterable[str]) -> list[Submission]:
    """Each file once. A folder gives its .cu files; a student's folder with one file gives the student's name."""
    out: dict[str, Submission] = {}
    for argument in given:
        if argument == "-":
            out["-"] = Submission("stdin", "-", sys.stdin.read())
            continue
        paths = (
            [Path(argument)]
            if Path(argument).exists()
            else [Path(p) for p in sorted(glob.glob(argument, recursive=True))]
        )
        if not paths:
            raise UsageError(f"{argument}: there is no such file or folder, and nothing fits it as a pattern")
        for path in paths:
            found = _of_folder(path) if path.is_dir() else [Submission(path.stem, str(path))]
            if path.is_dir() and not found:
                raise UsageError(f"{path}: there is no .cu file in this folder")
            out |= {one.file: one for one in found}
    return list(out.values())


def _of_folder(folder: Path) -> list[Submission]:
    files = sorted(p for p in folder.rglob("*.cu") if p.is_file() and not any(x.startswith(".") for x in p.parts[1:]))
    homes = [p.parent for p in files]
    out = []
    for path in files:
        alone = path.parent != folder and homes.count(path.parent) == 1
        inside = path.relative_to(folder)
        name = str(inside.parent if alone else inside.with_suffix("")).replace("\\", "/")
        out.append(Submission(name, str(path)))
    return out
