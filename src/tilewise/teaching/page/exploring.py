"""`tw.explore`: the page of a kernel, with what it computes or was recorded for it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from tilewise.emulator import budget
from tilewise.emulator.limits import DEFAULT
from tilewise.i18n.messages import check_language
from tilewise.system.output import write_whole
from tilewise.teaching.page.export import in_frame, page_html, title_of
from tilewise.teaching.page.payload import Scene
from tilewise.teaching.page.picture import save_phases
from tilewise.teaching.page.recording import (
    COURSE,
    SHARE_OF_VARIANTS,
    failing_order,
    record,
    record_tiles,
    record_variants,
    record_walk,
    with_defaults,
)
from tilewise.teaching.page.variants import drops_of
from tilewise.teaching.page.views import Trace


@dataclass(frozen=True, repr=False)
class Page:
    """Scenes to be written: the kernel, then its variants, or the two kernels compared."""

    scenes: tuple[Scene, ...]
    language: str = "en"
    compare: bool = False
    drops: tuple[str, ...] = field(default=())
    compute: dict[str, Any] | None = None  # modules of the kernel: see `compute.modules_of`
    live: dict[str, Any] | None = None  # the editor's first text and its settings, on a page with a server

    @property
    def trace(self) -> Trace:
        return cast(Trace, self.scenes[0].trace)

    @cached_property
    def html(self) -> str:
        """The whole file as text."""
        return page_html(self.scenes, self.language, self.compare, self.drops, self.live, self.compute)

    def save(self, path: str | Path) -> Path:
        write_whole(Path(path), self.html)
        return Path(path)

    def svg(self, phase: int = 0) -> str:
        """One phase of the first recorded block as an SVG for slides."""
        return self.trace.to_svg(phase, lang=self.language)

    def save_svgs(self, folder: str | Path) -> list[Path]:
        """Every phase of every recorded block: block-x0-y0-phase-1.svg and so on."""
        return save_phases(self.trace, Path(folder), self.language)

    def _repr_html_(self) -> str:
        return in_frame(self.html)

    def __repr__(self) -> str:
        return f"Page({', '.join(s.title for s in self.scenes if not s.drops)}; {len(self.scenes)} scenes)"


def explore(
    kernel: str | Path | Trace | None = None,
    *,
    compare: str | Path | None = None,
    lang: str = "en",
    what_if: bool = True,
    blocks: Sequence[Sequence[int]] | str | None = None,
    **settings: Any,
) -> Page:
    """The page of a kernel (a file, a text, a rung's name; the lecture notes' kernel by default) or of a `Trace`.

    `settings` are those of `tw.trace`. `what_if` adds the kernel as WebAssembly, so that the page runs it at any shape
    up to 64x64x64, at other tile widths and without any boundary check or barrier; of a kernel that cannot be compiled
    so, recorded runs without each of them and at other tile widths. `compare`: a second
    kernel beside the first. `blocks` None records every block of a small grid, else the corners and the middle, and
    the page says so.

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
    from tilewise.teaching.page.compute import modules_of  # lazily: `trace` does not load the compiler

    compute = modules_of(kernel, first, drops, settings, until)
    recorded = (scene, *failing_order(scene), *record_walk(kernel))
    if compute is not None:
        return Page(recorded, lang, drops=tuple(d.name for d in drops), compute=compute)
    variants = record_variants(scene, drops, settings, until)
    names = tuple(s.drops[0] for s in variants if not s.schedule)
    return Page((*recorded, *variants, *record_tiles(kernel, scene, settings, until)), lang, drops=names)


__all__ = ["Page", "explore", "title_of"]
