"""Which work of the card is ordered, by a vector clock of each stream, of each event and of the host.

Two accesses of the same bytes in different streams race if one stores and neither clock has seen the other's work.
A copy's bytes are known. A kernel is given pointers, and may use a part of what is behind them: it is compared only
with copies of the whole allocation."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

Clock = dict[int, int]  # for each stream, how much of its work has ended
MAX_ACCESSES = 64  # the latest of an allocation


@dataclass(frozen=True)
class Access:
    """Bytes that a stream's work reads or stores to."""

    first: int
    end: int
    stores: bool
    stream: int
    line: int
    kernel: bool = False
    number: int = 0  # of the work in its stream

    def conflicts(self, other: Access) -> bool:
        overlap = self.first < other.end and other.first < self.end
        if self.kernel or other.kernel:
            copy, kernel = (other, self) if self.kernel else (self, other)
            overlap = not copy.kernel and copy.first <= kernel.first and kernel.end <= copy.end
        return overlap and (self.stores or other.stores)


@dataclass
class StreamOrder:
    streams: dict[int, Clock] = field(default_factory=lambda: {0: {}})
    events: dict[int, Clock] = field(default_factory=dict)
    host: Clock = field(default_factory=dict)
    separate: set[int] = field(default_factory=set)  # cudaStreamNonBlocking: not ordered with the default stream
    accesses: dict[int, deque[Access]] = field(default_factory=dict)  # by the allocation's address

    def start(self, stream: int) -> Clock:
        """Work begins in a stream after what the host and the stream have waited for."""
        clock = self.streams.setdefault(stream, {})
        before = [self.host]
        if stream == 0:
            before += [c for other, c in self.streams.items() if other and other not in self.separate]
        elif stream not in self.separate:
            before.append(self.streams[0])
        _join(clock, before)
        clock[stream] = clock.get(stream, 0) + 1
        return clock

    def add(self, block: int, access: Access) -> Access | None:
        """Record an access of the work that `start` began; an earlier one that races with it."""
        clock = self.streams[access.stream]
        made = Access(**{**access.__dict__, "number": clock[access.stream]})
        earlier = self.accesses.setdefault(block, deque(maxlen=MAX_ACCESSES))
        found = next((e for e in earlier if e.number > clock.get(e.stream, 0) and e.conflicts(made)), None)
        earlier.append(made)
        if found is not None:  # reported once: what follows is taken to be ordered
            clock[found.stream] = found.number
        return found

    def record(self, event: int, stream: int) -> None:
        self.events[event] = dict(self.start(stream))

    def wait(self, stream: int, event: int) -> None:
        _join(self.streams.setdefault(stream, {}), [self.events.get(event, {})])

    def host_waits(self, *clocks: Clock) -> None:
        """For these, or for all streams."""
        _join(self.host, clocks or self.streams.values())


def _join(clock: Clock, others: Iterable[Clock]) -> None:
    for other in others:
        for stream, number in other.items():
            clock[stream] = max(clock.get(stream, 0), number)
