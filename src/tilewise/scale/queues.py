"""What streaming asks of a card: memory, streams that run in the background, events between them.

`cuda_queues` answers with a real card; a test answers with threads, so that the order of things can be tested on a
machine without one.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tilewise.algebra.dtypes import DType
from tilewise.core.problem import Problem

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Queues(Protocol):
    """Work is queued on streams in order; an event is a place in a stream that others can wait for."""

    def enter(self) -> None:
        """Make the card current for the calling thread."""

    def memory(self, nbytes: int) -> int:
        """The address of fresh memory on the card, freed by `close`."""

    def pinned(self, nbytes: int) -> Bytes:
        """Memory of the host that the card reads and writes by itself, freed by `close`."""

    def pin(self, address: int, nbytes: int) -> bool:
        """Let the card read whole pages of the host by itself, until `unpin` or `close`; False where it is refused."""

    def unpin(self) -> None:
        """Let go of what `pin` has pinned, which no copy may still read."""

    def stream(self, urgent: bool = False) -> Any:
        """A stream; what is urgent goes first where two could run."""

    def record(self, stream: Any) -> Any:
        """The event of everything queued so far."""

    def wait(self, stream: Any, event: Any) -> None:
        """What is queued from now on starts after the event."""

    def sync(self, event: Any) -> None:
        """Return when the event has happened."""

    def copy_in(self, host: Bytes, address: int, stream: Any) -> None:
        """Queue a copy to the card."""

    def copy_lines_in(
        self, host: int, pitch: int, width: int, count: int, address: int, pitch_to: int, stream: Any
    ) -> None:
        """Queue a copy of lines of pinned memory, `pitch` bytes apart there and `pitch_to` on the card."""

    def copy_out(self, address: int, pitch: int, width: int, rows: int, host: Bytes, stream: Any) -> None:
        """Queue a copy of rows from the card, `pitch` bytes apart there and side by side here."""

    def multiply(self, problem: Problem, M: int, N: int, P: int, stream: Any) -> None:
        """Queue a product of matrices at these addresses, laid out as the problem says."""

    def round(self, sums: int, lead: int, rows: int, cols: int, kinds: tuple[DType, DType], stream: Any) -> None:
        """Queue the rounding of rows of sums to the product's dtype, each row to where it begins."""

    def close(self) -> None:
        """Wait for everything and free it."""
