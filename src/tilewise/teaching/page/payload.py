"""Traces in the page's format: JSON of events, deflated, in base64."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tilewise.i18n.messages import LANGUAGES
from tilewise.teaching.trace import TraceData
from tilewise.teaching.trace.findings_text import sentence_of, wrong_cells_of

SCHEMA = 1


@dataclass(frozen=True)
class Scene:
    """One run on the page: of a kernel, or of its variant without `drops`."""

    trace: TraceData
    title: str
    drops: tuple[str, ...] = ()
    changed: tuple[int, ...] = ()  # lines that differ from the original kernel
    tile: int | None = None  # a TILE_WIDTH other than the first scene's
    walk: bool = False  # the notes' 4×4 example, step by step
    schedule: bool = False  # thread by thread, in an order that gives a wrong P

    @cached_property
    def packed(self) -> str:
        """Deflated JSON in base64, which the page unpacks by the browser's DecompressionStream."""
        return packed(scene_json(self))


def packed(document: Any) -> str:
    """As deflated JSON in base64."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def scene_json(scene: Scene) -> dict[str, Any]:
    document = scene.trace.to_json()
    for found, finding in zip(scene.trace.findings, document["findings"], strict=True):
        finding["touches"] = finding["touches"][:8]  # the events have them all
        finding["sentences"] = {
            language: f"{sentence_of(found, language)} {wrong_cells_of(found, language)}".strip()
            for language in LANGUAGES
        }
    made: dict[str, Any] = {
        "title": scene.title,
        "drops": list(scene.drops),
        "changed": list(scene.changed),
        "trace": document,
    }
    if scene.schedule:
        made |= {"schedule": True, "wrong": [list(cell) for cell in scene.trace.wrong]}
    return made
