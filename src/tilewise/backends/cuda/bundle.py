"""A bundle: built kernels in one file, found by their keys; `tilewise warm` stores a dtype's set in one.

A kernel key names one text of this version of the code (`kernels/keys.py`), so a bundle belongs to one version of the
code that renders texts, one arch and one compiler, all of them part of its cache key. Finding a kernel is one lookup in
the index, one read and one checksum: 0.03 ms, against 0.5 ms (an H200's host) to render and hash its text and look that
up. A damaged or missing kernel is looked up by its text.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock

from tilewise.system.resources import PACKAGE

MAGIC = b"tilewise kernels 2\n"
LEVEL = 6  # of compression: 0.31 of the bytes, for 2 ms beside half a second of compiling
SUFFIXES = (".py", ".cu", ".cuh")
RENDERERS = ("kernels", "algebra")  # with the files of the package itself: all code that a text may depend on
_BEGAN = time.time()


def packed(code: bytes) -> bytes:
    """Machine code as it lies on disk."""
    return zlib.compress(code, LEVEL)


@lru_cache(maxsize=1)
def build_id() -> str | None:
    """A digest of all the code that texts depend on; None if it was changed after this process started."""
    found = hashlib.sha256()
    try:
        for name, path in sorted(_files()):
            with open(path, "rb", buffering=0) as file:
                if os.fstat(file.fileno()).st_ctime > _BEGAN:
                    return None
                code = file.read()
            found.update(f"{name} {len(code)}\n".encode() + code)
    except OSError:
        return None
    return found.hexdigest()


def _files(folders: Iterable[str] = ("", *RENDERERS)) -> Iterator[tuple[str, str]]:
    """(name in the package, path) of the package's own files, and of those in `folders`, recursively."""
    for folder in folders:
        with os.scandir(PACKAGE / folder) as listing:
            for one in listing:
                name = f"{folder}/{one.name}" if folder else one.name
                if one.name.endswith(SUFFIXES):
                    yield name, one.path
                elif folder and one.name != "__pycache__" and one.is_dir():
                    yield from _files((name,))


@dataclass
class Bundle:
    """An open bundle: its index in memory, its kernels on disk."""

    handle: int
    start: int  # of the machine code, in the file
    build_id: str
    kernels: dict[str, tuple[int, int, int, list[str]]]  # by key: position, size, checksum, entry points
    sets: dict[str, list[str]]  # keys, by kind
    _reading: Lock = field(default_factory=Lock)

    def __del__(self) -> None:
        os.close(self.handle)

    def read(self, name: str) -> bytes | None:
        """The machine code, or None if it is damaged."""
        held = self.held(name)
        return None if held is None else zlib.decompress(held)

    def held(self, name: str) -> bytes | None:
        """The same compressed, as it is stored; a damaged kernel is removed from the index."""
        found = self.kernels.get(name)
        if found is None:
            return None
        at, size, checksum, _ = found
        try:
            code = _read(self.handle, size, self.start + at, self._reading)
        except OSError:
            code = b""
        if len(code) == size and zlib.crc32(code) == checksum:
            return code
        self.kernels.pop(name, None)
        return None

    def entries(self, name: str) -> list[str]:
        """The entry points of a text."""
        return self.kernels[name][3] if name in self.kernels else []


def _read(handle: int, size: int, at: int, reading: Lock) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(handle, size, at)
    with reading:
        os.lseek(handle, at, os.SEEK_SET)
        return os.read(handle, size)


def opened(handle: int, at: int = 0) -> Bundle | None:
    """The bundle at an offset of an open file, which it then owns; None, with the file closed, if it is invalid."""
    reading, head = Lock(), len(MAGIC) + 40
    try:
        data = _read(handle, head, at, reading)
        size, digest = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 8], "little"), data[-32:]
        index = _read(handle, size, at + head, reading) if data.startswith(MAGIC) and size < 1 << 28 else b""
        if index and hashlib.sha256(index).digest() == digest:
            found = json.loads(index)
            names = list(found["kernels"])
            sets = {kind: [names[number] for number in numbers] for kind, numbers in found["sets"].items()}
            return Bundle(handle, at + head + size, found["build_id"], found["kernels"], sets)
    except OSError:
        pass
    os.close(handle)
    return None


def bundled(build_id: str, built: Mapping[str, tuple[bytes, list[str]]], sets: Mapping[str, Iterable[str]]) -> bytes:
    """The bytes of a bundle of kernels (`packed` machine code and entry points by key): equal for equal kernels."""
    kernels, places, codes, end = {}, dict[bytes, int](), list[bytes](), 0
    for name in sorted(built):
        code, entries = built[name]
        if code not in places:  # two keys may have one text
            places[code], end = end, end + len(code)
            codes.append(code)
        kernels[str(name)] = places[code], len(code), zlib.crc32(code), entries
    numbers = {name: number for number, name in enumerate(kernels)}
    numbered = {kind: sorted(numbers[name] for name in names) for kind, names in sorted(sets.items())}
    index = json.dumps({"build_id": build_id, "kernels": kernels, "sets": numbered}, separators=(",", ":")).encode()
    head = MAGIC + len(index).to_bytes(8, "little") + hashlib.sha256(index).digest()
    return b"".join((head, index, *codes))


def merged(
    held: Bundle | None, kind: str, built: Mapping[str, tuple[bytes, list[str]]]
) -> tuple[dict[str, tuple[bytes, list[str]]], dict[str, set[str]]]:
    """The kernels of a bundle and those built of a kind together, as `bundled` takes them."""
    kernels = dict(_whole(held)) if held is not None else {}
    kernels.update(built)
    sets = {of: {name for name in names if name in kernels} for of, names in held.sets.items()} if held else {}
    sets.setdefault(kind, set()).update(built)
    return kernels, sets


def _whole(held: Bundle) -> Iterator[tuple[str, tuple[bytes, list[str]]]]:
    for name in list(held.kernels):
        code = held.held(name)
        if code is not None:
            yield name, (code, held.entries(name))
