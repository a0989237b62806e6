"""stdout and stderr of a program: buffered, counted against the limit, in order."""

from __future__ import annotations

import os
import time

from tilewise.errors import LimitError

BUFFER = 1 << 16
PATIENCE = 0.02  # seconds for which what is printed may wait though the program asked for it, where nobody looks on


class Console:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.count = 0
        self.buffer = bytearray()
        self.ended_line = True
        self._watched = os.isatty(1)
        self._sent = 0.0

    def write(self, data: bytes) -> None:
        self.count += len(data)
        if data:
            self.ended_line = data.endswith(b"\n")
        if self.count > self.limit:
            self.buffer += data[: max(0, len(data) - (self.count - self.limit))]
            raise LimitError(f"the program has printed more than {self.limit} bytes (--limit-output)")
        self.buffer += data
        if len(self.buffer) >= BUFFER:
            self.flush()

    def error(self, data: bytes) -> None:
        self.count += len(data)
        self.flush()
        _write(2, data)
        if self.count > self.limit:
            raise LimitError(f"the program has printed more than {self.limit} bytes (--limit-output)")

    def asked(self) -> None:
        """std::flush, std::endl, fflush: into a file or a pipe it is sent by and by, not a word at a time."""
        if self._watched or time.monotonic() - self._sent > PATIENCE:
            self.flush()
            self._sent = time.monotonic()

    def flush(self) -> None:
        data, self.buffer = bytes(self.buffer), bytearray()
        _write(1, data)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        try:
            sent = os.write(descriptor, data)
        except BrokenPipeError:
            return
        data = data[sent:]
