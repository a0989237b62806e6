"""The journal of finished tiles: a file beside the product, a record per line, each with a checksum.

The first record describes the job: fingerprints of the operands, semiring, schedule. A tile's record is written after
its bytes are synced, and has their checksum, by which a resumed job verifies the tile; a truncated last line is
dropped.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tilewise.errors import FileError
from tilewise.system.files import fill, here, put

VERSION = 3


class Journal:
    """The journal of one product. The caller holds the output's lock."""

    def __init__(self, path: Path, job: dict[str, Any]) -> None:
        self.path, self.job = path, {"version": VERSION, **job}
        self._file, self._end = -1, 0
        self._lock = threading.Lock()

    @staticmethod
    def peek(path: Path) -> dict[str, Any]:
        """The job record of an earlier run; empty if there is none."""
        try:
            records, _ = _records(_whole(path))
        except OSError:
            return {}
        job = records[0].get("job") if records else None
        return job if isinstance(job, dict) else {}

    def open(self) -> list[dict[str, Any]] | None:
        """The records after the first; None if there is no journal. FileError for another job's journal."""
        if not self.path.exists() and not self.path.is_symlink():
            return None
        with self._disk():
            data = _whole(self.path)
            records, good = _records(data)
            self._file, self._end = here().reopen(self.path), good
            if good < len(data):
                here().truncate(self._file, good)  # a truncated line is dropped
        if not records:
            return None
        self._same_job(records[0])
        return records[1:]

    def begin(self) -> None:
        """Start a new journal for this job."""
        self.close()
        with self._disk():
            here().remove(self.path)
            self._file, self._end = here().create(self.path), 0
            self.append({"job": self.job})
            here().sync_folder(self.path.parent)

    def append(self, record: dict[str, Any]) -> None:
        """Append a record and sync it. The data that it describes must be on disk already."""
        line = _encoded(record)
        with self._lock, self._disk():
            put(self._file, memoryview(line), self._end)
            here().sync(self._file)
            self._end += len(line)

    def close(self) -> None:
        if self._file >= 0:
            here().close(self._file)
            self._file = -1

    @contextlib.contextmanager
    def _disk(self) -> Iterator[None]:
        try:
            yield
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{self.path} cannot be written: {error.strerror or error}") from None

    def _same_job(self, first: dict[str, Any]) -> None:
        theirs, mine = first.get("job", {}), json.loads(json.dumps(self.job))
        if theirs == mine:
            return
        again = "pass --restart to start over"
        if not isinstance(theirs, dict):
            raise FileError(f"{self.path} is no journal of a product: {again}")
        for role in ("M", "N"):
            before, now = theirs.get(role, {}), mine.get(role, {})
            if not isinstance(before, dict):
                continue
            same_place = before.get("file", before.get("zarr")) == now.get("file", now.get("zarr"))
            if same_place and before != now:
                name = now.get("file", now.get("zarr", role))
                raise FileError(
                    f"{name} has changed since its product was started, so finished tiles are void: {again}"
                )
        differs = ", ".join(sorted(key for key in {*theirs, *mine} if theirs.get(key) != mine.get(key)))
        raise FileError(
            f"another product was started under this name and differs in {differs}: run that command again, or {again}"
        )


def _whole(path: Path) -> bytes:
    file = here().open(path)
    try:
        data = bytearray(os.fstat(file).st_size)
        return bytes(data[: fill(file, memoryview(data), 0)])
    finally:
        here().close(file)


def _records(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """The records up to the first damaged one, and their size in bytes."""
    records, good = [], 0
    for line in data.split(b"\n")[:-1]:  # the part after the last newline is truncated
        record = _decoded(line)
        if record is None:
            break
        records.append(record)
        good += len(line) + 1
    return records, good


def _encoded(record: dict[str, Any]) -> bytes:
    text = json.dumps(record, sort_keys=True)
    return f"{zlib.crc32(text.encode()):08x} {text}\n".encode()


def _decoded(line: bytes) -> dict[str, Any] | None:
    seal, _, text = line.partition(b" ")
    try:
        record = json.loads(text)
        whole = int(seal, 16) == zlib.crc32(text)
    except (ValueError, RecursionError):
        return None
    return record if whole and isinstance(record, dict) else None
