"""Which tiles are finished: one line each in a file beside the product, every line with its own checksum.

The first line says which job it is: operands by size, time and samples, algebra, schedule. A tile's line is written
after its bytes have reached the disk, so a line that can be read is true; a last line that was cut off is dropped. The
lines carry a checksum of the tile's bytes too, and on the way back tiles are read and held against it.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from pathlib import Path
from typing import Any

from tilewise.errors import FileError

VERSION = 1


class Journal:
    """The journal of one product; locked while a process works on it."""

    def __init__(self, path: Path, job: dict[str, Any]) -> None:
        self.path, self.job = path, {"version": VERSION, **job}
        self._file: int = -1

    @staticmethod
    def peek(path: Path) -> dict[str, Any]:
        """The job an earlier run began here; empty where there is none."""
        try:
            with path.open("rb") as file:
                first = _unsealed(file.readline().rstrip(b"\n"))
        except OSError:
            return {}
        return dict(first.get("job", {})) if first else {}

    def open(self) -> dict[int, int] | None:
        """Finished tiles and their checksums; None where nothing was begun. Refuses another job's journal."""
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise FileError(f"{self.path} cannot be written: {error.strerror or error}") from None
        self._lock()
        with os.fdopen(os.dup(self._file), "rb") as file:
            lines = file.read().split(b"\n")
        records, good = [], 0
        for line in lines[:-1]:  # what follows the last newline was cut off
            record = _unsealed(line)
            if record is None:
                break
            records.append(record)
            good += len(line) + 1
        os.ftruncate(self._file, good)
        os.lseek(self._file, 0, os.SEEK_END)
        if not records:
            return None
        self._same_job(records[0])
        return {int(r["tile"]): int(r["checksum"]) for r in records[1:]}

    def begin(self) -> None:
        """A fresh journal for this job."""
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        self._append({"job": self.job})

    def finished(self, tile: int, checksum: int) -> None:
        """The tile's bytes are on the disk: say so, durably."""
        self._append({"tile": tile, "checksum": checksum})

    def remove(self) -> None:
        """The product is whole; what led to it is no longer needed."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self.close()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _append(self, record: dict[str, Any]) -> None:
        try:
            os.write(self._file, _sealed(record))
            os.fsync(self._file)
        except OSError as error:
            raise FileError(
                f"{self.path} cannot be written: {error.strerror or error}; finished tiles are kept"
            ) from None

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # a system without it
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise FileError(f"{self.path} is in use: another run is making the same product") from None

    def _same_job(self, first: dict[str, Any]) -> None:
        theirs, mine = first.get("job", {}), json.loads(json.dumps(self.job))
        if theirs == mine:
            return
        again = f"remove {self.path}, or pass --restart, to begin anew"
        for role in ("M", "N"):
            before, now = theirs.get(role, {}), mine.get(role, {})
            same_place = before.get("file", before.get("zarr")) == now.get("file", now.get("zarr"))
            if before != now and same_place:
                name = now.get("file", now.get("zarr", role))
                raise FileError(f"{name} has changed since its product was begun, so finished tiles are void: {again}")
        differs = ", ".join(sorted(key for key in {*theirs, *mine} if theirs.get(key) != mine.get(key)))
        raise FileError(
            f"another product was begun under this name and differs in {differs}: run that command again, or {again}"
        )


def _sealed(record: dict[str, Any]) -> bytes:
    text = json.dumps(record, sort_keys=True)
    return f"{zlib.crc32(text.encode()):08x} {text}\n".encode()


def _unsealed(line: bytes) -> dict[str, Any] | None:
    seal, _, text = line.partition(b" ")
    try:
        record = json.loads(text)
        whole = int(seal, 16) == zlib.crc32(text)
    except ValueError:
        return None
    return record if whole and isinstance(record, dict) else None
