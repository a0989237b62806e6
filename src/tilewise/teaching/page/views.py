"""`tw.trace` and `tw.Trace`: a traced launch with its views, as text, as a page and as a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec

from tilewise.i18n.messages import check_language
from tilewise.teaching.page.export import in_frame, page_html, title_of
from tilewise.teaching.page.payload import Scene
from tilewise.teaching.page.picture import draw_phase
from tilewise.teaching.trace import trace as trace_data
from tilewise.teaching.trace.table import draw
from tilewise.teaching.trace.trace_data import TraceData

P = ParamSpec("P")


@dataclass(frozen=True, repr=False)
class Trace(TraceData):
    """A launch with its events, and its views: text, page and picture.

    >>> isinstance(tw.trace("tiled_edges", shape=(3, 3, 3), tile=2), tw.Trace)
    True
    """

    failing: Trace | None = None

    def text(self, width: int = 80, phases: tuple[int, ...] | None = None, lang: str = "en") -> str:
        """Threads × phases, tiles, partial sums, barriers and counters, in `width` columns."""
        return draw(self, width, phases, lang)

    def __repr__(self) -> str:
        return self.text()

    def to_html(self, lang: str = "en") -> str:
        """The page to step through, as the text of one self-contained HTML file."""
        return page_html((Scene(self, title_of(self)),), check_language(lang))

    def to_svg(self, phase: int = 0, block: int | None = None, lang: str = "en") -> str:
        """One phase of a recorded block as a picture."""
        return draw_phase(self, phase, self.blocks[0] if block is None else block, lang)

    def _repr_html_(self) -> str:
        return in_frame(self.to_html())


def _with_views(data: TraceData) -> Trace:
    failing = None if data.failing is None else _with_views(data.failing)
    return Trace(**{**vars(data), "failing": failing})


def _returning_views(function: Callable[P, TraceData]) -> Callable[P, Trace]:
    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Trace:
        return _with_views(function(*args, **kwargs))

    call.__module__ = __name__
    call.__annotations__ = {**function.__annotations__, "return": "Trace"}
    return call


trace = _returning_views(trace_data)
