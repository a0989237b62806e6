"""A product of the caller's arrays within a memory budget: sources and a target → Schedule → the executor."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tilewise.algebra.semiring import Semiring
from tilewise.errors import DeviceError
from tilewise.scale import host
from tilewise.scale.files import problem_of
from tilewise.scale.schedule import Schedule, make_schedule
from tilewise.scale.sources import Source, ZarrSource
from tilewise.scale.targets import Target


@dataclass(frozen=True)
class Streamed:
    """A product that waits to be streamed: planned, and its operands at hand."""

    schedule: Schedule
    device: str
    M: Source
    N: Source

    def run(self, P: Target, progress: host.Progress | None = None) -> None:
        if self.device == "cpu":
            host.stream(self.schedule, self.M, self.N, P, progress=progress)
        else:
            from tilewise.scale import card

            card.stream(self.schedule, self.M, self.N, P, device=self.device, progress=progress)


def streamed(
    M: Source,
    N: Source,
    semiring: str | Semiring,
    memory: int | None,
    device: str,
    precision: str = "high",
    grain: tuple[int, int] | None = None,
) -> Streamed:
    """The schedule for these operands; without a budget, a quarter of what the device has free."""
    problem = problem_of(M, N, semiring, precision)
    grain = grain or (64, 64)
    if device == "cpu":
        decoded = sum(2 * x.chunk_bytes for x in (M, N) if isinstance(x, ZarrSource))
        level = host.host_level(problem, files=decoded > 0)
        room = memory if memory is not None else host_memory() // 4
        return Streamed(make_schedule(problem, level, room, spare=decoded, grain=grain), device, M, N)
    if not device.startswith("cuda"):
        raise DeviceError(f"device={device!r} has no memory to stream through: use 'cpu' or 'cuda'")
    from tilewise.arrays.card import memory as card_memory
    from tilewise.scale import card

    room = memory if memory is not None else int(0.8 * card_memory(device)[0])
    return Streamed(card.card_schedule(problem, M, N, device, room, grain), device, M, N)


def host_memory() -> int:
    """Bytes of this machine's memory."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 * 10**9
