"""A disk cache of bytes by key, for compiled kernels.

Entries are executed, so nothing is loaded that others could have written: the folder and each entry must belong to this
user (or to root) and be writable by no other user. Entries are written to a temporary name and renamed, so that a
reader finds a complete one or none; each begins with a digest of its key and body, so a damaged one is rebuilt. When
the folder exceeds its limit, the least recently used entries are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tilewise.errors import UsageError

DEFAULT_LIMIT = 256 * 1024 * 1024
_DIGEST = hashlib.sha256
OTHERS = stat.S_IWGRP | stat.S_IWOTH
# environment variables that decide the folder and its limit
PLACES = ("TILEWISE_CACHE_DIR", "TILEWISE_CACHE_LIMIT", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA")


def cache_folder() -> Path:
    """TILEWISE_CACHE_DIR, or where the system keeps such things."""
    chosen = os.environ.get("TILEWISE_CACHE_DIR")
    if chosen:
        return _checked(Path(chosen))
    try:
        home = Path.home()
    except RuntimeError:  # HOME is not set, and the user has no entry in passwd
        user = os.getuid() if hasattr(os, "getuid") else "user"
        return Path(tempfile.gettempdir()) / f"tilewise-{user}"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "tilewise"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home)) / "tilewise" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "tilewise"


def _checked(folder: Path) -> Path:
    """A folder set by the user is used or refused, never silently ignored."""
    if not folder.exists():
        return folder
    if not folder.is_dir():
        raise UsageError(f"TILEWISE_CACHE_DIR={folder} is no folder: give one, or leave it unset")
    if not _trusted(folder.stat()):
        raise UsageError(
            f"TILEWISE_CACHE_DIR={folder} can be written by others, who could put code there that would be run here: "
            "give a folder of your own (chmod 700), or a read-only one of root's"
        )
    return folder


def _trusted(about: os.stat_result) -> bool:
    """Whether only this user and root can have written it."""
    if os.name != "posix":
        return True  # on Windows the profile folder is private to the user
    return about.st_uid in (os.geteuid(), 0) and not about.st_mode & OTHERS


def clear() -> int:
    """Delete every compiled kernel on disk and return the bytes freed. Kernels that a process has loaded stay loaded.

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
    """A folder of entries. A disk error costs a rebuild, never a wrong result."""

    def __init__(self, kind: str, folder: Path | None = None, limit: int | None = None) -> None:
        self.root = folder or cache_folder()
        self.folder = self.root / kind
        self.limit = limit if limit is not None else _limit()

    def get_or_build(self, parts: tuple[str, ...], build: Callable[[], bytes]) -> bytes:
        """The entry for this key (the parts, in order), built and stored if it is missing or damaged."""
        found = self.get(parts)
        if found is None:
            found = build()
            self.put(parts, found)
        return found

    def opened(self, parts: tuple[str, ...]) -> tuple[int, int] | None:
        """A descriptor of the entry's file and the offset of its body; None if there is no entry. The digest is not
        checked, because a reader may need only a part of a large entry."""
        path = self.path(parts)
        handle = self._open(path) if self._usable() else None
        if handle is None:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return handle, _DIGEST().digest_size

    def holds(self, parts: tuple[str, ...]) -> bool:
        """Whether there is an entry; damage is found when it is read."""
        return self._usable() and self.path(parts).is_file()

    def path(self, parts: tuple[str, ...]) -> Path:
        key = _DIGEST()
        for part in parts:
            data = part.encode()
            key.update(len(data).to_bytes(8, "little") + data)  # lengths first: ("ab", "c") is not ("a", "bc")
        return self.folder / key.hexdigest()

    def entries(self) -> list[Path]:
        """Regular files of this cache; other files in the folder are ignored."""
        found = []
        with contextlib.suppress(OSError), os.scandir(self.folder) as listing:
            found = [Path(e.path) for e in listing if len(e.name) == 64 and e.is_file(follow_symlinks=False)]
        return found

    def size(self) -> int:
        total = 0
        for path in self.entries():
            with contextlib.suppress(OSError):
                total += path.lstat().st_size
        return total

    def _usable(self) -> bool:
        """Whether only this user can write root and folder. Links are followed."""
        try:
            found = [folder.stat() for folder in (self.root, self.folder)]
        except OSError:
            return False
        return all(stat.S_ISDIR(about.st_mode) and _trusted(about) for about in found)

    def _open(self, path: Path) -> int | None:
        """A descriptor of a regular file that no other user can have written, or None."""
        how = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            handle = os.open(path, how)
        except OSError:
            return None
        about = os.fstat(handle)
        if stat.S_ISREG(about.st_mode) and _trusted(about):
            return handle
        os.close(handle)
        return None

    def get(self, parts: tuple[str, ...]) -> bytes | None:
        """The entry for this key; None if it is missing or damaged."""
        path = self.path(parts)
        handle = self._open(path) if self._usable() else None
        if handle is None:
            return None
        try:
            with os.fdopen(handle, "rb") as file:
                data = file.read()
        except OSError:
            return None
        digest, body = data[:32], data[32:]
        if len(digest) == 32 and _digest(path, body) == digest:
            with contextlib.suppress(OSError):
                os.utime(path)  # `_trim` evicts by this time
            return body
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def put(self, parts: tuple[str, ...], body: bytes) -> None:
        """Store an entry under this key, replacing an old one."""
        path = self.path(parts)
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            if not self._usable():
                return
            handle, name = tempfile.mkstemp(prefix="new-", dir=self.folder)
        except OSError:
            return  # a read-only home is no reason to fail
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_digest(path, body) + body)
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
                about = path.lstat()
                aged.append((about.st_mtime_ns, about.st_size, path))
        total = sum(size for _, size, _ in aged)
        for _, size, path in sorted(aged):
            if total <= self.limit:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size


def _digest(path: Path, body: bytes) -> bytes:
    """The digest of key and body: an entry copied to another key's name is rejected."""
    return _DIGEST(path.name.encode() + b"\0" + body).digest()


def _limit() -> int:
    given = os.environ.get("TILEWISE_CACHE_LIMIT")
    if not given:
        return DEFAULT_LIMIT
    if not given.isascii() or not given.isdigit():
        raise UsageError(f"TILEWISE_CACHE_LIMIT={given!r} must be a whole number of bytes, 268435456 for example")
    return int(given)
