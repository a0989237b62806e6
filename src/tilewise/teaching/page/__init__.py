"""The learners' page: a traced run as one HTML file to step through, as pictures, as a notebook's output."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from tilewise.core.machine import KNOWN_CARDS
from tilewise.emulator import budget
from tilewise.emulator.limits import DEFAULT
from tilewise.i18n.messages import check_language
from tilewise.teaching.page.export import html, write
from tilewise.teaching.page.payload import SCHEMA, Scene
from tilewise.teaching.page.recording import (
    COURSE,
    SHARE_OF_VARIANTS,
    failing_order,
    record,
    record_tiles,
    record_variants,
    with_defaults,
)
from tilewise.teaching.page.variants import drops_of
from tilewise.teaching.trace import Trace


@dataclass(frozen=True, repr=False)
class Page:
    """Scenes, ready to be written: the kernel as it is first, then its variants, or the kernels compared."""

    scenes: tuple[Scene, ...]
    language: str = "en"
    compare: bool = False
    left_out: int = 0  # variants that would have made the file too large
    drops: tuple[str, ...] = field(default=())
    live: dict[str, Any] | None = None  # what an editor begins with, where a server runs what it holds

    @property
    def trace(self) -> Trace:
        return self.scenes[0].trace

    @cached_property
    def html(self) -> str:
        """The whole file as text."""
        settings: dict[str, Any] = {
            "schema": SCHEMA,
            "lang": self.language,
            "compare": self.compare,
            "drops": list(self.drops),
            "leftOut": self.left_out,
            "scenes": [{"drops": list(s.drops), "tile": s.tile, "schedule": s.schedule} for s in self.scenes],
            "tile": self.trace.run.tile,
            "cards": cards(),
            "live": self.live,
        }
        title = " / ".join(dict.fromkeys(s.title for s in self.scenes if not s.drops))
        return html(settings, [s.packed for s in self.scenes], f"{title} – tilewise", self.language)

    def save(self, path: str | Path) -> Path:
        write(Path(path), self.html)
        return Path(path)

    def svg(self, phase: int = 0, block: int | None = None) -> str:
        """One phase of one block as a picture for slides; the first recorded block where none is named."""
        from tilewise.teaching.page.picture import draw_phase

        return draw_phase(self.trace, phase, self.trace.blocks[0] if block is None else block, self.language)

    def save_svgs(self, folder: str | Path) -> list[Path]:
        """Every phase of every recorded block: block-0-0-phase-1.svg and so on."""
        from tilewise.teaching.page.picture import save_phases

        return save_phases(self.trace, Path(folder), self.language)

    def _repr_html_(self) -> str:
        """In a notebook: the page in a frame of its own."""
        return (
            f'<iframe title="tilewise" srcdoc="{escape(self.html)}" loading="lazy" '
            'style="width:100%;height:860px;border:1px solid #8888;border-radius:8px"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Page({', '.join(s.title for s in self.scenes if not s.drops)}; {len(self.scenes)} scenes)"


def explore(
    kernel: str | Path | Trace | None = None,
    *,
    compare: str | Path | None = None,
    lang: str = "en",
    what_if: bool = True,
    blocks: Sequence[tuple[int, int]] | str | None = None,
    **settings: Any,
) -> Page:
    """The page of a kernel (a file, a text, a rung's name; the lecture notes' own where nothing is said) or of a
    `Trace` already made.

    `settings` are those of `tw.trace`. A kernel brings its variants (`what_if`): each boundary check and each barrier
    left out, for a missing barrier an order of threads that really fails, and the other tile widths. `compare` puts a
    second kernel beside the first. `blocks` None records every block where that stays small, else the corners and the
    middle, and the page says so.

    >>> tw.explore("tiled_edges", shape=(3, 3, 3), tile=2, what_if=False).save("page.html")
    PosixPath('page.html')
    """
    check_language(lang)
    if isinstance(kernel, Trace):
        return Page((Scene(kernel, title_of(kernel)),), lang)
    with budget.within(settings.get("limits") or DEFAULT):
        return _explored(COURSE if kernel is None else kernel, compare, lang, what_if, blocks, settings)


def _explored(
    kernel: str | Path, compare: str | Path | None, lang: str, what_if: bool, blocks: Any, settings: dict[str, Any]
) -> Page:
    started = time.monotonic()
    settings = with_defaults(kernel, settings)
    first = record(kernel, blocks, settings)
    scene = Scene(first, title_of(first))
    if compare is not None:
        second = record(compare, blocks, settings)
        return Page((scene, Scene(second, title_of(second))), lang, compare=True)
    if not what_if:
        return Page((scene, *failing_order(scene)), lang)
    drops = drops_of(first)
    until = started + SHARE_OF_VARIANTS * (settings.get("limits") or DEFAULT).seconds
    variants, left_out = record_variants(scene, drops, settings, until)
    alone = tuple(s.drops[0] for s in variants if len(s.drops) == 1 and not s.schedule)
    scenes = (scene, *failing_order(scene), *variants, *record_tiles(kernel, scene, settings, until))
    return Page(scenes, lang, drops=alone, left_out=left_out)


def cards() -> list[dict[str, Any]]:
    """The cards whose rooflines the page draws."""
    return [
        {"key": key, "name": card.name, "flops": 2 * card.step_rate("float32"), "bandwidth": card.bandwidth}
        for key, card in KNOWN_CARDS.items()
    ]


def title_of(trace: Trace) -> str:
    run = trace.run
    parts = [run.entry if run.file == "<text>" else Path(run.file).name]
    if run.shape:
        parts.append("×".join(map(str, run.shape)))
    if run.tile:
        parts.append(f"TILE_WIDTH {run.tile}")
    return " · ".join(parts)


__all__ = ["Page", "explore", "title_of"]
