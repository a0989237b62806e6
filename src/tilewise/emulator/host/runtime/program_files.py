"""A program's files: it reads those under its folder, writes those under --allow-write.

Writes anywhere else go to memory, from which the program reads them back; a note says so. All written bytes count
towards --limit-output."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.emulator.host.file_broker import DIRECTORY, FLAGS, REGULAR
from tilewise.emulator.host.runtime.c_memory import put_text, string, writable
from tilewise.emulator.host.runtime.session import Session, runtime

DEVICE_BYTES = 1 << 16  # length of files like /dev/urandom: streams read whole files


class MemoryFile(io.BytesIO):
    """A file in memory whose content remains when it is closed."""

    def close(self) -> None:
        self.seek(0)


class AppendedMemoryFile(MemoryFile):
    """Opened for appending."""

    def write(self, data: Any) -> int:
        self.seek(0, io.SEEK_END)
        return super().write(data)


def _random_bytes() -> bytes:
    """The same in every run: splitmix64."""
    x = np.arange(1, 1 + DEVICE_BYTES // 8, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return (x ^ (x >> np.uint64(31))).tobytes()


DEVICES: dict[str, Callable[[], bytes]] = {
    "/dev/urandom": _random_bytes,
    "/dev/random": _random_bytes,
    "/dev/zero": lambda: bytes(DEVICE_BYTES),
    "/dev/null": bytes,
}


def opened(s: Session, name: str, mode: str) -> Any:
    """A file, opened with fopen's mode; None if it cannot be opened."""
    made = _opened(s, name, mode)
    if made is None:
        s.state["not opened"] = name, s.line
    return made


def _opened(s: Session, name: str, mode: str) -> Any:
    mode = mode.replace("t", "").replace("b", "")
    mode = mode[:1] + ("+" if "+" in mode else "")
    if name in DEVICES:
        return MemoryFile(DEVICES[name]())
    if mode not in FLAGS or "\0" in name:
        return None
    written: dict[str, MemoryFile] = s.state.setdefault("written", {})
    answer, descriptor = s.files.request("open", name, mode)
    own, allowed = answer.get("own"), answer.get("allowed")
    if own is None:
        return None
    if mode != "r" and not allowed:
        return _in_memory(s, name, own, mode, written)
    if mode == "r" and own in written:
        if descriptor is not None:
            os.close(descriptor)
        return io.BytesIO(written[own].getvalue())
    if not allowed:
        _note(s, f"line {s.line}: {name} was not opened: it is outside the program's folder")
    return None if descriptor is None else open(descriptor, mode + "b")


def _in_memory(s: Session, name: str, own: str, mode: str, written: dict[str, MemoryFile]) -> Any:
    before = written[own].getvalue() if own in written else None
    if before is None and mode[0] != "w":
        descriptor = s.files.request("open", name, "r")[1]
        if descriptor is not None:
            with open(descriptor, "rb") as file:
                before = file.read()
    if before is None and mode[0] == "r":
        return None
    if own not in written:
        _note(
            s, f"line {s.line}: {name} is written to memory only, and read back from there: --allow-write DIR keeps it"
        )
    written[own] = (AppendedMemoryFile if mode[0] == "a" else MemoryFile)(
        b"" if mode[0] == "w" or before is None else before
    )
    return written[own]


def put(s: Session, handle: Any, data: bytes) -> None:
    """Write to a file within --limit-output; for files in memory the zeros that a seek past the end adds count, too."""
    gap = 0
    if isinstance(handle, io.BytesIO) and not isinstance(handle, AppendedMemoryFile):
        gap = max(0, handle.tell() - handle.getbuffer().nbytes)
    s.console.spend(len(data) + gap)
    handle.write(data)


def _note(s: Session, note: str) -> None:
    if note not in s.faults.notes:
        s.faults.notes.append(note)


def removed(s: Session, name: str) -> bool:
    written: dict[str, MemoryFile] = s.state.setdefault("written", {})
    if written.pop(s.files.request("kind", name)[0].get("own", ""), None) is not None:
        return True
    return bool(s.files.request("remove", name)[0].get("done"))


@runtime("__open_folder")
def open_folder(s: Session, name: int) -> int:
    entries = s.files.request("list", string(s, name).decode("utf-8", "replace"))[0].get("entries")
    if entries is None:
        return -1
    folders: list[list[tuple[str, int]]] = s.state.setdefault("folders", [])
    folders.append([(".", DIRECTORY), ("..", DIRECTORY), *((str(n), int(kind)) for n, kind in entries)])
    return len(folders) - 1


@runtime("__file_kind")
def file_kind(s: Session, name: int, size: int) -> int:
    """The kind of a path, file or folder; -1 if there is none. Stores the file's size."""
    answer = s.files.request("kind", string(s, name).decode("utf-8", "replace"))[0]
    own = answer.get("own", "")
    written: dict[str, MemoryFile] = s.state.setdefault("written", {})
    found, bytes_ = answer.get("kind", -1), answer.get("size", 0)
    if own in s.state.get("made folders", ()):
        found, bytes_ = DIRECTORY, 0
    elif own in written:
        found, bytes_ = REGULAR, len(written[own].getvalue())
    if writable(s, size, 8):
        s.memory.put(size, bytes_.to_bytes(8, "little"))
    return int(found)


@runtime("__make_folder")
def make_folder(s: Session, name: int) -> int:
    """On disk under --allow-write, else in memory."""
    made: set[str] = s.state.setdefault("made folders", set())
    answer = s.files.request("make", string(s, name).decode("utf-8", "replace"))[0]
    own = answer.get("own")
    if own is None or own in made or answer.get("there"):
        return -1
    if answer.get("allowed"):
        return 0 if answer.get("done") else -1
    made.add(own)
    return 0


@runtime("__folder_entry")
def folder_entry(s: Session, handle: int, at: int, name: int) -> int:
    """The kind of an entry, -1 behind the last one. Stores its name."""
    folders: list[list[tuple[str, int]]] = s.state.setdefault("folders", [])
    if not 0 <= handle < len(folders) or not 0 <= at < len(folders[handle]):
        return -1
    text, kind = folders[handle][at]
    put_text(s, name, text.encode()[:255])
    return kind
