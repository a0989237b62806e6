"""File operations, one implementation per system: positional reads and writes, no links followed, everything synced.

Everything that changes a file goes through `here()`, so that tests can replace it by another system, or by one that
records every change and replays the changes up to any point.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tilewise.errors import FileError


class Files:
    """With calls that every system has; a file is a descriptor."""

    binary = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0) | getattr(os, "O_CLOEXEC", 0)
    no_link = getattr(os, "O_NOFOLLOW", 0)

    def __init__(self) -> None:
        self._seeking = threading.Lock()

    def open(self, path: Path) -> int:
        """Open a file for reading. Anything but a regular file is refused; opening a FIFO does not block."""
        file = os.open(path, os.O_RDONLY | self.binary | getattr(os, "O_NONBLOCK", 0))
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise FileError(f"{path} is {kind_of(path)}, not a file")
        return file

    def create(self, path: Path) -> int:
        """Create a file, which must not exist."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | self.no_link | self.binary, 0o666)

    def reopen(self, path: Path) -> int:
        """Open an existing file for reading and writing; a link is not followed."""
        file = os.open(path, os.O_RDWR | self.no_link | self.binary)
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
            os.close(file)
            raise FileError(f"{path} is no file of its own (a device, a folder, or a link): remove it")
        return file

    def close(self, file: int) -> None:
        os.close(file)

    def read_at(self, file: int, memory: memoryview, offset: int) -> int:
        with self._seeking:
            os.lseek(file, offset, os.SEEK_SET)
            with io.FileIO(file, "rb", closefd=False) as stream:
                return int(stream.readinto(memory) or 0)

    def write_at(self, file: int, memory: memoryview, offset: int) -> int:
        with self._seeking:
            os.lseek(file, offset, os.SEEK_SET)
            return os.write(file, memory)

    def truncate(self, file: int, count: int) -> None:
        os.ftruncate(file, count)

    def reserve(self, file: int, count: int) -> None:
        """Allocate the file's whole size now, where the system can: a disk that is too small fails before the work."""
        self.truncate(file, count)

    def sync(self, file: int) -> None:
        """Return when written data would survive a crash."""
        os.fsync(file)

    def sync_folder(self, folder: Path) -> None:
        """The same for the names in a folder; on systems that cannot sync folders a rename is durable by itself."""

    def replace(self, source: Path, target: Path) -> None:
        """Rename atomically."""
        os.replace(source, target)

    def remove(self, path: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def make_folder(self, path: Path) -> None:
        """Make a folder for this user alone; FileExistsError if the name is taken."""
        os.mkdir(path, 0o700)

    def remove_folder(self, path: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(path)

    def lock(self, file: int) -> bool | None:
        """Whether this process got the lock; None if the file system has no locks."""
        return None


class PosixFiles(Files):
    """Linux and macOS."""

    def read_at(self, file: int, memory: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(file, [memory], offset)
        found = os.pread(file, len(memory), offset)
        memory[: len(found)] = found
        return len(found)

    def write_at(self, file: int, memory: memoryview, offset: int) -> int:
        return os.pwrite(file, memory, offset)

    def reserve(self, file: int, count: int) -> None:
        if hasattr(os, "posix_fallocate") and count:
            try:
                os.posix_fallocate(file, 0, count)
                return
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                    raise
        self.truncate(file, count)

    def sync(self, file: int) -> None:
        if sys.platform == "darwin":  # fsync there stops at the drive's own cache
            import fcntl

            with contextlib.suppress(OSError):
                fcntl.fcntl(file, fcntl.F_FULLFSYNC)
                return
        os.fdatasync(file) if hasattr(os, "fdatasync") else os.fsync(file)

    def sync_folder(self, folder: Path) -> None:
        handle = os.open(folder, os.O_RDONLY | self.binary)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EBADF, errno.EOPNOTSUPP, errno.EACCES):
                raise  # some network file systems cannot sync folders; other errors are real
        finally:
            os.close(handle)

    def lock(self, file: int) -> bool | None:
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            return None  # ENOLCK, EOPNOTSUPP: a network file system without a lock daemon
        return True


class WindowsFiles(Files):
    """Windows: no positional calls, no O_NOFOLLOW, and a file that is open elsewhere cannot be replaced at once."""

    patience = 2.0  # seconds that a virus scanner or an indexer may hold a file that is to be replaced

    def replace(self, source: Path, target: Path) -> None:
        end = time.monotonic() + self.patience
        while True:
            try:
                os.replace(source, target)
                return
            except PermissionError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def lock(self, file: int) -> bool | None:
        import msvcrt

        locking: Any = msvcrt
        os.lseek(file, LOCKED_BYTE, os.SEEK_SET)
        try:
            locking.locking(file, locking.LK_NBLCK, 1)
        except OSError:
            return False
        return True


LOCKED_BYTE = 1 << 20  # past the text that names the lock's owner, which other processes read

_here: Files = WindowsFiles() if sys.platform == "win32" else PosixFiles()


def here() -> Files:
    """The files of the system this runs on."""
    return _here


def use(files: Files) -> Files:
    """Replace the system, for tests; returns the one before."""
    global _here
    before, _here = _here, files
    return before


def kind_of(path: Path) -> str:
    """A name for the kind of file at a path."""
    mode = os.stat(path).st_mode
    for test, name in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    ):
        if test(mode):
            return name
    return "a file"


def fill(file: int, memory: memoryview, offset: int) -> int:
    """Read until the memory is full or the file ends; the number of bytes read."""
    done = 0
    while done < len(memory):
        count = here().read_at(file, memory[done:], offset + done)
        if count == 0:
            break
        done += count
    return done


def put(file: int, memory: memoryview, offset: int) -> None:
    """Write all of it."""
    done = 0
    while done < len(memory):
        done += here().write_at(file, memory[done:], offset + done)
