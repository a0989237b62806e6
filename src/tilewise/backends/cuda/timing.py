"""Time on the card by CUDA events: of the work on the device, not of the call on the host."""

from __future__ import annotations

from typing import Any


class Stopwatch:
    """Events on a stream: `mark` between the parts, then `laps()` in seconds."""

    def __init__(self, stream: Any) -> None:
        from cuda.core import EventOptions

        self._stream = stream
        self._options = EventOptions(timing_enabled=True)
        self._events: list[Any] = []
        self.mark()

    def mark(self) -> None:
        self._events.append(self._stream.record(options=self._options))

    def laps(self) -> list[float]:
        """Waits for the last mark; seconds between each mark and the one before."""
        self._events[-1].sync()
        return [(after - before) / 1e3 for before, after in zip(self._events, self._events[1:], strict=False)]
