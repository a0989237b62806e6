"""Bytes on disk by key: compiled kernels that outlive a process.

Written to a temporary name and renamed, so a reader sees a whole entry or none, whatever other processes do. Every
entry begins with the digest of what follows: a damaged one is dropped and built again, never trusted. When the folder
outgrows its bound, the entries unused for longest go first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tilewise.errors import UsageError

DEFAULT_LIMIT = 256 * 1024 * 1024
_DIGEST = hashlib.sha256


def cache_folder() -> Path:
    """TILEWISE_CACHE_DIR, or where the system keeps such things."""
    chosen = os.environ.get("TILEWISE_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "tilewise"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "tilewise" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tilewise"


def _limit() -> int:
    asked = os.environ.get("TILEWISE_CACHE_LIMIT", "").strip()
    if not asked:
        return DEFAULT_LIMIT
    if not asked.isdecimal():
        raise UsageError(f"TILEWISE_CACHE_LIMIT={asked!r} must be a whole number of bytes, say {DEFAULT_LIMIT}")
    return int(asked)


def clear() -> int:
    """Delete every compiled kernel on disk; how many bytes that gave back. Those a process has loaded stay loaded.

    >>> freed = tw.cache.clear()
    """
    freed = 0
    for path in cache_folder().glob("*/*"):
        with contextlib.suppress(OSError):
            if path.is_file() and len(path.name) == 64:
                size = path.stat().st_size
                path.unlink()
                freed += size
    return freed


class DiskCache:
    """A folder of entries. Anything that goes wrong with the disk costs a rebuild, never a wrong answer."""

    def __init__(self, kind: str, folder: Path | None = None, limit: int | None = None) -> None:
        self.folder = (folder or cache_folder()) / kind
        self.limit = limit if limit is not None else _limit()

    def get_or_build(self, parts: tuple[str, ...], build: Callable[[], bytes]) -> bytes:
        """The entry for this key (the parts, in order), built and kept if it is not there or not whole."""
        path = self.path(parts)
        found = self._read(path)
        if found is not None:
            return found
        built = build()
        self._write(path, built)
        return built

    def path(self, parts: tuple[str, ...]) -> Path:
        key = _DIGEST()
        for part in parts:
            data = part.encode()
            key.update(len(data).to_bytes(8, "little") + data)  # lengths first: ("ab", "c") is not ("a", "bc")
        return self.folder / key.hexdigest()

    def entries(self) -> list[Path]:
        try:
            return [p for p in self.folder.iterdir() if len(p.name) == 64]
        except OSError:
            return []

    def size(self) -> int:
        total = 0
        for path in self.entries():
            with contextlib.suppress(OSError):
                total += path.stat().st_size
        return total

    def _read(self, path: Path) -> bytes | None:
        try:
            data = path.read_bytes()
        except OSError:
            return None
        digest, body = data[:32], data[32:]
        if len(digest) == 32 and _DIGEST(body).digest() == digest:
            with contextlib.suppress(OSError):
                os.utime(path)  # this is what "unused for longest" is measured by
            return body
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def _write(self, path: Path, body: bytes) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix="new-", dir=self.folder)
        except OSError:
            return  # a read-only home is no reason to fail
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_DIGEST(body).digest() + body)
            os.replace(name, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            return
        self._trim()

    def _trim(self) -> None:
        aged = []
        for path in self.entries():
            with contextlib.suppress(OSError):
                stat = path.stat()
                aged.append((stat.st_mtime_ns, stat.st_size, path))
        total = sum(size for _, size, _ in aged)
        for _, size, path in sorted(aged):
            if total <= self.limit:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size
