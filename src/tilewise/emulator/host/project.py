"""The folders of a program's project, in which headers are searched.

A program is untrusted and may #include any path. Above its own folder only source files (by suffix, links resolved) of
its project are read: in the folders up to the one with `.git`, else up to three levels. The home folder, the root and
world-writable folders end the search upwards."""

from __future__ import annotations

import os
import stat
from itertools import islice
from pathlib import Path

LEVELS = 3
SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".c")
HEADERS = (".h", ".hpp", ".hh", ".hxx", ".cuh", ".inl", ".inc", ".tpp", ".ipp")
USUAL = ("include", "inc", "headers", "common", "Common", "common/inc", "utils", "util", "src", "lib")
MOST_FOLDERS = 400  # that are looked through for a header in no usual place


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
    """Whether the folder is in a repository below the home folder."""
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
    """Whether a resolved path is a source file inside one of these folders."""
    return path.suffix in SOURCES + HEADERS and any(path.is_relative_to(f) for f in folders)


def usual_folders(folder: Path, above: list[Path]) -> list[Path]:
    """The project's folders and their include/, common/, …"""
    near = (folder, *above)
    return [place for base in near for place in (base, *(base / name for name in USUAL)) if place.is_dir()]


def only_file(name: str, folder: Path, above: list[Path]) -> Path | None:
    """The file of that name below the nearest folder of the project that has one; None if that has several."""
    parts = Path(name).parts
    for base in (folder, *above) if parts and ".." not in parts else ():
        found: list[Path] = []
        for here, below, files in islice(os.walk(base), MOST_FOLDERS):
            below[:] = sorted(f for f in below if not f.startswith("."))
            if parts[-1] in files and Path(here, parts[-1]).parts[-len(parts) :] == parts:
                found.append(Path(here, parts[-1]))
        if found:
            return found[0] if len(found) == 1 else None
    return None
