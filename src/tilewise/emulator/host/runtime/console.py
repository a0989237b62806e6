"""stdout and stderr of a program: buffered, limited, in order.

For a terminal control characters are made visible (`system.terminal`); a file or a pipe gets the bytes unchanged."""

from __future__ import annotations

import os
import shutil
import threading
import time

from tilewise.errors import LimitError
from tilewise.system.terminal import Shown, is_terminal

BUFFER = 1 << 16
FLUSH_INTERVAL = 0.02  # seconds between flushes to a file or pipe that the program requests


class Console:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.count = 0  # bytes printed or written to files
        self.buffer = bytearray()
        self.ended_line = True
        self._shown = {descriptor: Shown() for descriptor in (1, 2) if is_terminal(descriptor)}
        self._watched = os.isatty(1)
        self._sent = 0.0
        self._width = shutil.get_terminal_size().columns
        self._status = 0  # length of the status line, which the next output erases
        self._sending = threading.Lock()

    def write(self, data: bytes) -> None:
        if data:
            self.ended_line = data.endswith(b"\n")
        room = self.limit - self.count
        self.buffer += data if len(data) <= room else data[: max(0, room)]
        self.spend(len(data))
        if len(self.buffer) >= BUFFER or (self._watched and b"\n" in data):  # line by line, as C does for a terminal
            self.flush()

    def error(self, data: bytes) -> None:
        self.flush()
        self._send(2, data)
        self.spend(len(data))

    def spend(self, count: int) -> None:
        """Count bytes, printed or written to a file, against the limit."""
        self.count += count
        if self.count > self.limit:
            raise LimitError(f"the program has printed or written more than {self.limit} bytes (--limit-output)")

    def flush_requested(self) -> None:
        """std::flush, std::endl, fflush."""
        if self._watched or time.monotonic() - self._sent > FLUSH_INTERVAL:
            self.flush()
            self._sent = time.monotonic()

    def flush(self) -> None:
        data, self.buffer = bytes(self.buffer), bytearray()
        self._send(1, data)

    def close(self) -> None:
        """Write everything that is left, an incomplete character included."""
        self.flush()
        for descriptor, shown in self._shown.items():
            _write(descriptor, shown(b"", final=True))

    def status(self, text: str) -> None:
        """Show a line on stderr, a terminal, until the next output; not after output without a newline."""
        with self._sending:
            if self.ended_line or not self._watched:
                text = text[: self._width - 1]
                _write(2, self._cleared() + text.encode("utf-8", "replace"))
                self._status = len(text)

    def _send(self, descriptor: int, data: bytes) -> None:
        shown = self._shown.get(descriptor)
        with self._sending:
            if self._status:
                _write(2, self._cleared())
            _write(descriptor, shown(data) if shown is not None else data)

    def _cleared(self) -> bytes:
        """Characters that erase the status line, also on a terminal without control sequences (TERM=dumb)."""
        width, self._status = self._status, 0
        return b"\r" + b" " * width + b"\r" if width else b""


def _write(descriptor: int, data: bytes) -> None:
    while data:
        try:
            sent = os.write(descriptor, data)
        except BrokenPipeError:
            return
        data = data[sent:]
