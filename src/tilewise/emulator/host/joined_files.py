"""Further source files of a program: those that define what its main file only declares.

If the command line names no further files, a file next to the program or its headers is added if it has no main and
defines a name that is declared and defined nowhere else. If several files define it, the one named like the header is
added, otherwise none."""

from __future__ import annotations

import re
from pathlib import Path

from tilewise.emulator.host.project import SOURCES
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.declared import Entities
from tilewise.emulator.source.source import read_source
from tilewise.errors import FileError

MAX_FILES = 60
MAIN = re.compile(r"\bmain\s*\([^;{}]*\)\s*\{")


def declared_only(entities: Entities) -> list[str]:
    """Functions, methods and variables of the program that are declared and not defined."""
    out: list[str] = []
    for name, functions in entities.functions.items():
        if all(f.tokens is None and f.body is None and not f.library for f in functions):
            out.append(name.rpartition("::")[2])
    for classes in entities.classes.values():
        for class_ in classes:
            for method in class_.methods:
                if method.tokens is None and method.body is None and not method.library and not _bodiless(method):
                    out.append(f"{class_.name.rpartition('::')[2]}::{method.name.rpartition('::')[2]}")
    for name, item in entities.variables.items():
        if "extern" in item.specifiers and item.init is None and "__shared__" not in item.specifiers:
            out.append(f"extern {name.rpartition('::')[2]}")
    return out


def _bodiless(method: tree.Function) -> bool:
    return method.defaulted or method.deleted or "pure" in method.specifiers


def further_files(missing: list[str], taken: list[Path], headers: list[Path]) -> tuple[list[Path], str]:
    """Files that define one of the missing names, and a message if several files define one."""
    texts = _candidates(taken, headers)
    found: list[Path] = []
    stems = {h.stem for h in headers}
    for name in missing:
        pattern = _definition(name)
        defining = [p for p, text in texts.items() if pattern.search(text)]
        if any(p in found for p in defining):
            continue
        if len(defining) > 1:
            defining = [p for p in defining if p.stem in stems] or defining
        if len(defining) > 1:
            names = ", ".join(p.name for p in defining[:4])
            return found, (
                f"{name.removeprefix('extern ')} is declared and not defined here, and {names} define it: "
                f"name the one that belongs to the program behind it: tilewise run {taken[0].name} {defining[0].name}"
            )
        found += defining
    return found, ""


def _candidates(taken: list[Path], headers: list[Path]) -> dict[Path, str]:
    """Source files near the program that have no main, with their text."""
    folders: list[Path] = []
    for file in (*taken, *headers):
        near = [file.parent]
        if file.parent.name in ("include", "inc", "headers"):
            near += [file.parent.parent, file.parent.parent / "src"]
        folders += [f for f in near if f not in folders and f.is_dir()]
    out: dict[Path, str] = {}
    for folder in folders:
        for path in sorted(folder.iterdir()):
            if path.suffix in SOURCES and path.resolve() not in (*taken, *headers) and len(out) < MAX_FILES:
                text = _text(path, folder)
                if text is not None and not MAIN.search(text):
                    out[path.resolve()] = text
    return out


def _text(path: Path, folder: Path) -> str | None:
    try:
        real = path.resolve()
        if not real.is_file() or not real.is_relative_to(folder.resolve()):
            return None
        return _without_comments(read_source(real).text)
    except (OSError, FileError):
        return None


def _without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)


def _definition(name: str) -> re.Pattern[str]:
    if name.startswith("extern "):
        bare = re.escape(name.removeprefix("extern "))
        return re.compile(
            rf"^(?!\s*extern\b)[ \t]*[A-Za-z_][\w:<>,* \t]*[ *&]{bare}\s*(\[[^\]]*\]\s*)*(=|;)", re.MULTILINE
        )
    bare = r"\s*::\s*".join(re.escape(part) for part in name.split("::"))
    return re.compile(rf"(?<![\w.>]){bare}\s*\([^;{{}}]*\)[^;{{}}()]*(\{{|:[^:;]*\{{)")
