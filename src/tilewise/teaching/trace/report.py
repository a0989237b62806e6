"""The `Report` that `check` gives back: what was judged, and its text for people."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from tilewise.teaching.trace.judged import Judged
from tilewise.teaching.trace.report_text import report_text


@dataclass(frozen=True, repr=False)
class Report(Judged):
    """What `check` gives back."""

    def text(self, width: int = 80, lang: str = "en") -> str:
        """What `tilewise check` prints."""
        return report_text(self, width, lang=lang)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """In a notebook: the text that `tilewise check` prints."""
        return f"<pre>{escape(repr(self))}</pre>"
