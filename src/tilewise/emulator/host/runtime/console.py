"""stdout and stderr of a program: buffered, counted against the limit, in order.

A terminal gets its control characters made visible (`system.terminal`); a file or a pipe gets the bytes as they are."""

from __future__ import annotations

import os
import shutil
import threading
import time

from tilewise.errors import LimitError
from tilewise.system.terminal import Shown, is_terminal

BUFFER = 1 << 16
FLUSH_INTERVAL = (
    0.02  # seconds for which what is printed may wait though the program asked for it, where nobody looks on
)


class Console:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.count = 0  # bytes printed, and written to files
        self.buffer = bytearray()
        self.ended_line = True
        self._shown = {descriptor: Shown() for descriptor in (1, 2) if is_terminal(descriptor)}
        self._watched = os.isatty(1)
        self._sent = 0.0
        self._width = shutil.get_terminal_size().columns
        self._status = 0  # characters of a line that the next output replaces
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
        """So many bytes more: what goes to a file counts as what is printed does."""
        self.count += count
        if self.count > self.limit:
            raise LimitError(f"the program has printed or written more than {self.limit} bytes (--limit-output)")

    def flush_requested(self) -> None:
        """std::flush, std::endl, fflush: into a file or a pipe it is sent by and by, not a word at a time."""
        if self._watched or time.monotonic() - self._sent > FLUSH_INTERVAL:
            self.flush()
            self._sent = time.monotonic()

    def flush(self) -> None:
        data, self.buffer = bytes(self.buffer), bytearray()
        self._send(1, data)

    def close(self) -> None:
        """Everything that is left, a character that was cut off included."""
        self.flush()
        for descriptor, shown in self._shown.items():
            _write(descriptor, shown(b"", final=True))

    def status(self, text: str) -> None:
        """A line on stderr, a terminal, for as long as the program prints nothing; none beside a line left open."""
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
        """What removes the line, on a terminal without control sequences (TERM=dumb) too."""
        width, self._status = self._status, 0
        return b"\r" + b" " * width + b"\r" if width else b""


def _write(descriptor: int, data: bytes) -> None:
    while data:
        try:
            sent = os.write(descriptor, data)
        except BrokenPipeError:
            return
        data = data[sent:]
