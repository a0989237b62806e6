"""The `Trace` that `trace` gives back: what was recorded, and its views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.teaching.trace.recorded import Recorded
from tilewise.teaching.trace.table import draw


@dataclass(frozen=True, repr=False)
class Trace(Recorded):
    """A launch with its events, and its views: text, page and picture."""

    failing: Trace | None = None  # the same launch in an order of threads that gives a wrong P, where one was found

    def text(self, width: int = 80, phases: tuple[int, ...] | None = None, lang: str = "en") -> str:
        """Threads × phases, tiles, partial sums, barriers and counters, in `width` columns."""
        return draw(self, width, phases, lang)

    def __repr__(self) -> str:
        return self.text()

    def to_html(self, lang: str = "en") -> str:
        """The page to step through, as the text of one self-contained HTML file."""
        return str(self._page(lang).html)

    def to_svg(self, phase: int = 0, block: int | None = None, lang: str = "en") -> str:
        """One phase of a recorded block as a picture."""
        return str(self._page(lang).svg(phase, block))

    def _repr_html_(self) -> str:
        return str(self._page("en")._repr_html_())

    def _page(self, lang: str) -> Any:
        import tilewise  # the page stands above this room and is reached by its public name

        return tilewise.explore(self, lang=lang)
