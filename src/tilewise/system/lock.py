"""A lock file, so that one process at a time makes an output; it names its owner.

On local disks and on NFS with a lock daemon (NFSv4 has one) the system holds the lock and drops it when the process
ends. On a file system without locks, the file's existence is the lock: it is taken over if its process ran on this
machine and has ended; otherwise the user has to remove it.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from tilewise.errors import FileError
from tilewise.system.files import here

TRIES = 100  # when other processes remove the file at the same moment
WINDOWS = os.name == "nt"  # there a file must be closed before it is removed


class BusyError(FileError):
    """Another process is making the same output."""


class Lock:
    """The lock file `path`, for the output that messages call `name`."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self._file = -1

    def take(self) -> None:
        """Take the lock, or raise BusyError naming its owner."""
        for _ in range(TRIES):
            fresh = False
            try:
                self._file = here().create(self.path)
                fresh = True
            except FileExistsError:
                try:
                    self._file = here().reopen(self.path)
                except FileNotFoundError:
                    continue
            try:
                got = here().lock(self._file)
                if got is None:
                    got = fresh or self._abandoned()
                if got and self._still_there():
                    self._sign()
                    return
                owner = self._owner()
            except BaseException:  # Ctrl-C here must not leak the lock
                self.drop()
                raise
            self.drop()
            if not got:
                raise BusyError(f"{self.name} is being made by {owner}: wait for it, or give another output")
        raise BusyError(f"{self.name} is being made by others at this moment: wait for them, or give another output")

    def remove(self) -> None:
        """Release the lock and remove its file."""
        if self._file >= 0:
            if not WINDOWS:
                here().remove(self.path)
                self.drop()
            else:
                self.drop()
                with contextlib.suppress(OSError):
                    here().remove(self.path)

    def drop(self) -> None:
        # cleared first: an exception between the two must not lead to a second close
        file, self._file = self._file, -1
        if file >= 0:
            here().close(file)

    def _still_there(self) -> bool:
        """Whether the locked file still has the name: its last owner may have removed it."""
        try:
            named, mine = os.stat(self.path, follow_symlinks=False), os.fstat(self._file)
        except FileNotFoundError:
            return False
        return (named.st_dev, named.st_ino) == (mine.st_dev, mine.st_ino)

    def _sign(self) -> None:
        text = json.dumps({"pid": os.getpid(), "host": platform.node(), "since": time.time()})
        with contextlib.suppress(OSError):  # a full disk is reported by the first write of the output
            here().truncate(self._file, 0)
            here().write_at(self._file, memoryview(text.encode()), 0)

    def _signed(self) -> dict[str, Any]:
        memory = bytearray(4096)
        try:
            count = here().read_at(self._file, memoryview(memory), 0)
            found = json.loads(bytes(memory[:count]).decode())
            return {"pid": int(found["pid"]), "host": str(found["host"]), "since": float(found["since"])}
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return {}

    def _owner(self) -> str:
        found = self._signed()
        if not found:
            return "another process"
        with contextlib.suppress(OverflowError, ValueError, OSError):
            since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(found["since"]))
            elsewhere = "" if found["host"] == platform.node() else f" on {found['host'][:80]!r}"
            return f"process {found['pid']}{elsewhere}, since {since}"
        return "another process"

    def _abandoned(self) -> bool:
        """Without locks: whether the process that made the file ran on this machine and is gone."""
        found = self._signed()
        if not found or found["host"] != platform.node() or WINDOWS:
            return False
        try:
            os.kill(found["pid"], 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            return False
        return False
