"""A submission's files as one text for the interpreter of kernels, which reads one: local includes are put in their
place, further sources before the file with main. Every line knows where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tilewise.teaching.course.programs import main_of, sources_beside
from tilewise.teaching.course.submissions import INCLUDE, decoded

DEEPEST = 20


@dataclass(frozen=True)
class Joined:
    text: str
    places: tuple[tuple[str, int], ...] = ()  # of each line: its file and line; empty for a single file
    main: str = ""

    def origin(self, line: int) -> tuple[str, int]:
        if not self.places:
            return self.main, line
        return self.places[line - 1] if 0 < line <= len(self.places) else (self.main, 0)


def joined(files: Mapping[str, bytes]) -> Joined:
    main = main_of(files)
    order = [*sources_beside(files, main), main]
    if order == [main] and not _included(decoded(files.get(main, b"")), main, files):
        return Joined(decoded(files.get(main, b"")), main=main)
    lines: list[str] = []
    places: list[tuple[str, int]] = []
    seen: set[str] = set()
    for path in order:
        _put(path, files, lines, places, seen, 0)
    return Joined("\n".join(lines) + "\n", tuple(places), main)


def _put(
    path: str, files: Mapping[str, bytes], lines: list[str], places: list[tuple[str, int]], seen: set[str], depth: int
) -> None:
    """A file's lines; each local file once, as by an include guard."""
    seen.add(path)
    for number, line in enumerate(decoded(files[path]).split("\n"), 1):
        named = _included(line, path, files)
        if named:
            if named[0] not in seen and depth < DEEPEST:
                _put(named[0], files, lines, places, seen, depth + 1)
            continue
        if line.strip() != "#pragma once":
            lines.append(line.rstrip("\r"))
            places.append((path, number))


def _included(text: str, path: str, files: Mapping[str, bytes]) -> list[str]:
    """The submission's files that this text includes: beside it, or the only one of that name."""
    out = []
    for name in INCLUDE.findall(text):
        beside = str(PurePosixPath(path).parent / name)
        same = [p for p in files if PurePosixPath(p).name == PurePosixPath(name).name]
        out += [beside] if beside in files else same if len(same) == 1 else []
    return out
