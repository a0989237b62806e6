"""Pages are let go before the end: the phases of the last tile need fewer and fewer of them.

To let go of everything at the end would take as long as a tile's phases do; meanwhile the card would do nothing.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from tilewise.scale.panels import Phase
from tilewise.scale.pinning import Pages
from tilewise.scale.queues import Queues
from tilewise.scale.staging import Side

AT_ONCE = 2  # chunks that are let go while a band is multiplied: it takes less time than that


class LettingGo:
    """What the thread that multiplies does between two bands."""

    def __init__(self, queues: Queues, sides: tuple[Side, Side], last: list[Phase]) -> None:
        """`last`: the phases of the last tile."""
        self._queues, self._sides, self._last = queues, sides, last
        self._over: dict[int, Any] = {}
        self._left: deque[tuple[int, Pages, int]] | None = None

    def over(self, phase: Phase, event: Any) -> None:
        """A phase is over after `event`."""
        self._over[self._number(phase)] = event

    def step(self, phase: Phase) -> None:
        """A band of this phase has been queued: let go of chunks that nothing needs from the phase before it on."""
        number = self._number(phase)
        if number < 0:
            return
        if self._left is None:
            self._left = self._chunks()
        for _ in range(AT_ONCE):
            if not self._left or self._left[0][0] > number - 2:
                return
            needed, pages, chunk = self._left.popleft()
            if needed in self._over:
                self._queues.sync(self._over[needed])
                pages.let_go(chunk)

    def _number(self, phase: Phase) -> int:
        """Of a phase of the last tile; -1 stands for everything before."""
        return self._last.index(phase) if phase.tile == self._last[-1].tile else -1

    def _chunks(self) -> deque[tuple[int, Pages, int]]:
        """(the last phase that needs it, whose it is, its number) of every chunk that is pinned."""
        last: dict[tuple[Pages, int], int] = {}
        for side, parts in zip(
            self._sides, ([p.part_m for p in self._last], [p.part_n for p in self._last]), strict=True
        ):
            if side.pages is not None:
                for chunk, needed in side.pages.last_needed([side.reach(part) for part in parts]).items():
                    last[side.pages, chunk] = max(needed, last.get((side.pages, chunk), -1))
        return deque(sorted(((needed, *chunk) for chunk, needed in last.items()), key=lambda found: found[0]))
