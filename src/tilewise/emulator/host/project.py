"""The folders that belong to a program: what may be read above its own, and where headers are looked for.

A program is untrusted: it may name any path in an #include. Above its folder only files of its project are read, which
are source files by their ending, with their links followed, in folders up to the one that holds `.git`, or else up to
three above the program. The home folder, the root of the file system and folders that everybody may write to are no
project, and end the way up."""

from __future__ import annotations

import stat
from pathlib import Path

LEVELS = 3
SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".c")
HEADERS = (".h", ".hpp", ".hh", ".hxx", ".cuh", ".inl", ".inc", ".tpp", ".ipp")
USUAL = (
    "include",
    "inc",
    "headers",
    "common",
    "Common",
    "common/inc",
    "utils",
    "util",
    "src",
    "lib",
)  # where courses keep headers


def folders_above(folder: Path) -> list[Path]:
    """The folders of the project above this one, nearest first."""
    out: list[Path] = []
    here = folder
    while len(out) < LEVELS or _repository(folder):
        if (here / ".git").exists():
            return out
        above = here.parent
        if above == here or not _may_be_a_project(above):
            return out
        out.append(above)
        here = above
    return out


def _repository(folder: Path) -> bool:
    """Whether a folder above, short of the home folder, is the root of a repository."""
    for above in (folder, *folder.parents):
        if not _may_be_a_project(above):
            return False
        if (above / ".git").exists():
            return True
    return False


def _may_be_a_project(folder: Path) -> bool:
    try:
        if folder in (Path.home(), Path.home().parent, Path(folder.anchor)):
            return False
        return not folder.stat().st_mode & stat.S_IWOTH
    except (OSError, RuntimeError):
        return False


def in_project(path: Path, folders: list[Path]) -> bool:
    """Whether this file, its links followed, is a source file inside one of these folders."""
    return path.suffix in SOURCES + HEADERS and any(path.is_relative_to(f) for f in folders)


def usual_folders(folder: Path, above: list[Path]) -> list[Path]:
    """Where a header may be that is not beside the program: include/, common/ and their like, here and above."""
    near = (folder, *above)
    return [place for base in near for place in (base, *(base / name for name in USUAL)) if place.is_dir()]
