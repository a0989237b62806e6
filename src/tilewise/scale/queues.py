"""The interface of a card that streaming needs: memory, asynchronous streams, events between them.

`cuda_queues` implements it on a real card; a test implements it with threads, so that the order of operations can be
tested on a machine without a card.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tilewise.algebra.dtypes import DType
from tilewise.core.problem import Problem

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Queues(Protocol):
    """Work is queued on streams in order; an event is a point in a stream that others can wait for."""

    def enter(self) -> None:
        """Make the card current for the calling thread."""

    def memory(self, nbytes: int) -> int:
        """The address of fresh memory on the card, freed by `close`."""

    def pinned(self, nbytes: int) -> Bytes:
        """Pinned host memory, freed by `close`."""

    def pin(self, address: int, nbytes: int) -> bool:
        """Pin whole pages of the host, until `unpin` or `close`; False where the driver refuses."""

    def unpin(self) -> None:
        """Unpin the pages of `pin`; no copy may still read them."""

    def stream(self, urgent: bool = False) -> Any:
        """A stream; an urgent one has the higher priority."""

    def record(self, stream: Any) -> Any:
        """The event of everything queued so far."""

    def wait(self, stream: Any, event: Any) -> None:
        """What is queued from now on starts after the event."""

    def sync(self, event: Any) -> None:
        """Return when the event has happened."""

    def copy_in(self, host: Bytes, address: int, stream: Any) -> None:
        """Queue a copy to the card."""

    def copy_pitched_in(
        self, host: int, pitch: int, width: int, count: int, address: int, pitch_to: int, stream: Any
    ) -> None:
        """Queue a 2-D copy from pinned memory: rows `pitch` bytes apart there and `pitch_to` on the card."""

    def copy_out(self, address: int, pitch: int, width: int, rows: int, host: Bytes, stream: Any) -> None:
        """Queue a 2-D copy from the card: rows `pitch` bytes apart there and contiguous here."""

    def multiply(self, problem: Problem, M: int, N: int, P: int, stream: Any) -> None:
        """Queue a product of matrices at these addresses, laid out as the problem says."""

    def round(self, sums: int, lead: int, rows: int, cols: int, kinds: tuple[DType, DType], stream: Any) -> None:
        """Queue the rounding of rows of sums to the product's dtype, in place."""

    def close(self) -> None:
        """Wait for everything and free it."""
