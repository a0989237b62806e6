"""stdout and stderr of a program: buffered, counted against the limit, in order."""

from __future__ import annotations

import os

from tilewise.errors import LimitError

BUFFER = 1 << 16


class Console:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.count = 0
        self.buffer = bytearray()
        self.ended_line = True

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
