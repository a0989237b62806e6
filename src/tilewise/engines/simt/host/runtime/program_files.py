"""The files that a program sees: under its folder to read, under --allow-write to write, and what it wrote itself.

Writing anywhere else goes to memory: the program runs on and reads it back, nothing is touched, and that is told at the
end. It counts towards --limit-output as what is printed does."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from tilewise.engines.simt.host.runtime.c_memory import put_text, string, writable
from tilewise.engines.simt.host.runtime.session import Session, runtime

DIRECTORY, REGULAR = 4, 8  # dirent's d_type


class Kept(io.BytesIO):
    """A file in memory whose bytes outlive its closing."""

    def close(self) -> None:
        self.seek(0)


class Appended(Kept):
    """As `a` has it: what is written goes to the end."""

    def write(self, data: Any) -> int:
        self.seek(0, io.SEEK_END)
        return super().write(data)


def allowed(s: Session, name: str, writing: bool) -> Path | None:
    """The file, where the program may touch it: under its own folder to read, under --allow-write to write."""
    folders = s.options.writable if writing else [s.options.folder, *s.options.include, *s.options.writable]
    for folder in folders:
        root = Path(folder).resolve()
        try:
            path = (root / name).resolve()
            if path.is_relative_to(root):
                return path
        except (OSError, ValueError):
            continue
    return None


def opened(s: Session, name: str, mode: str) -> Any:
    """A file to read or write, as fopen's mode says; None where it cannot be opened."""
    mode = mode.replace("t", "").replace("b", "")
    written: dict[Path, Kept] = s.state.setdefault("written", {})
    try:
        own = (Path(s.options.folder) / name).resolve()
        if any(c in mode for c in "wa+") and allowed(s, name, True) is None:
            return _in_memory(s, name, own, mode, written)
        if own in written:
            return io.BytesIO(written[own].getvalue())
        path = allowed(s, name, not mode.startswith("r"))
        if path is None:
            _tell(s, f"line {s.line}: {name} was not opened: it is outside the program's folder")
            return None
        return open(path, mode + "b")
    except (OSError, ValueError):
        return None


def _in_memory(s: Session, name: str, own: Path, mode: str, written: dict[Path, Kept]) -> Any:
    before = written[own].getvalue() if own in written else None
    readable = allowed(s, name, False)
    if before is None and mode[0] != "w" and readable is not None and readable.is_file():
        before = readable.read_bytes()
    if before is None and mode[0] == "r":
        return None
    if own not in written:
        _tell(
            s, f"line {s.line}: {name} is written to memory only, and read back from there: --allow-write DIR keeps it"
        )
    written[own] = (Appended if mode[0] == "a" else Kept)(b"" if mode[0] == "w" or before is None else before)
    return written[own]


def _tell(s: Session, note: str) -> None:
    if note not in s.faults.notes:
        s.faults.notes.append(note)


def removed(s: Session, name: str) -> bool:
    written: dict[Path, Kept] = s.state.setdefault("written", {})
    if written.pop((Path(s.options.folder) / name).resolve(), None) is not None:
        return True
    path = allowed(s, name, True)
    if path is None:
        return False
    try:
        path.unlink()
    except OSError:
        return False
    return True


@runtime("__open_folder")
def open_folder(s: Session, name: int) -> int:
    path = allowed(s, string(s, name).decode("utf-8", "replace"), False)
    if path is None or not path.is_dir():
        return -1
    folders: list[list[tuple[str, int]]] = s.state.setdefault("folders", [])
    entries = [(".", DIRECTORY), ("..", DIRECTORY)]
    entries += sorted((p.name, DIRECTORY if p.is_dir() else REGULAR) for p in path.iterdir())
    folders.append(entries)
    return len(folders) - 1


@runtime("__file_kind")
def file_kind(s: Session, name: int, size: int) -> int:
    """Whether a name is a file or a folder, and the file's size; -1 where there is none."""
    text = string(s, name).decode("utf-8", "replace")
    own = (Path(s.options.folder) / text).resolve()
    written: dict[Path, Kept] = s.state.setdefault("written", {})
    path = allowed(s, text, False)
    found, bytes_ = -1, 0
    if own in s.state.get("made folders", ()):
        found = DIRECTORY
    elif own in written:
        found, bytes_ = REGULAR, len(written[own].getvalue())
    elif path is not None and path.exists():
        found = DIRECTORY if path.is_dir() else REGULAR
        bytes_ = path.stat().st_size
    if writable(s, size, 8):
        s.memory.put(size, bytes_.to_bytes(8, "little"))
    return found


@runtime("__make_folder")
def make_folder(s: Session, name: int) -> int:
    """In memory, as files are; under --allow-write on the disk."""
    text = string(s, name).decode("utf-8", "replace")
    own, path = (Path(s.options.folder) / text).resolve(), allowed(s, text, True)
    made: set[Path] = s.state.setdefault("made folders", set())
    if own in made or own.exists():
        return -1
    if path is None:
        made.add(own)
        return 0
    try:
        path.mkdir()
    except OSError:
        return -1
    return 0


@runtime("__folder_entry")
def folder_entry(s: Session, handle: int, at: int, name: int) -> int:
    """Its kind, with its name put there; -1 behind the last one."""
    folders: list[list[tuple[str, int]]] = s.state.setdefault("folders", [])
    if not 0 <= handle < len(folders) or not 0 <= at < len(folders[handle]):
        return -1
    text, kind = folders[handle][at]
    put_text(s, name, text.encode()[:255])
    return kind
