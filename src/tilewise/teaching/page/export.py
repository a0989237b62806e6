"""Assembles the self-contained HTML file from template, styles, scripts, messages and packed scenes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from tilewise.i18n.messages import LANGUAGES, messages
from tilewise.system.resources import shipped
from tilewise.teaching.page.payload import SCHEMA, Scene
from tilewise.teaching.trace.trace_data import TraceData

STYLES = ("style.css", "panes.css", "lecture.css")
SCRIPTS = (
    "messages", "trace", "replay", "machine", "ordered", "judge", "computed",
    "svg", "cells", "matrices", "shared", "threads", "listing", "counters", "caption",
    "findings", "traffic", "warps", "memory", "time", "roofline", "lens", "story", "predict", "pane", "flights",
    "align", "controls", "editor", "live", "main",
)  # fmt: skip
NOT_OF_PAGES = (
    "check.", "verdict.", "run.", "grade.", "learn.", "hover.", "hint.", "table.", "kind.", "finding.", "wrong.",
)  # fmt: skip


def resource(name: str) -> str:
    return shipped(f"teaching/page/{name}").read_text(encoding="utf-8")


def _of_page(sentences: dict[str, str], computes: bool) -> dict[str, str]:
    """The messages of a page; one that computes makes the sentences of its findings."""
    kept = ("finding.", "wrong.together", "wrong.first") if computes else ()
    return {key: text for key, text in sentences.items() if key.startswith(kept) or not key.startswith(NOT_OF_PAGES)}


def page_html(
    scenes: Sequence[Scene], language: str, compare: bool = False, drops: Sequence[str] = (),
    live: dict[str, Any] | None = None, compute: dict[str, Any] | None = None,
) -> str:  # fmt: skip
    """The file's text; its parameters are the fields of `Page`."""
    settings = {
        "schema": SCHEMA,
        "lang": language,
        "compare": compare,
        "drops": list(drops),
        "scenes": [{"drops": list(s.drops), "tile": s.tile, "schedule": s.schedule, "walk": s.walk} for s in scenes],
        "tile": scenes[0].trace.run.tile,
        "cards": cards(),
        "live": live,
        "compute": compute,
        "languages": LANGUAGES,
        "messages": {code: _of_page(messages(code), compute is not None) for code in LANGUAGES},
    }
    script = "\n".join(f"// {name}\n{resource(f'script/{name}.js')}" for name in SCRIPTS)
    title = " / ".join(dict.fromkeys(s.title for s in scenes if not s.drops))
    parts = {
        "LANGUAGE": language,
        "TITLE": escape(f"{title} – tilewise"),
        "WASM": " 'wasm-unsafe-eval'" if compute else "",
        "CONNECT": "connect-src 'self'" if live else "connect-src 'none'",
        "STYLE": "\n".join(resource(name) for name in STYLES),
        "SETTINGS": _embedded(settings),
        "SCENES": _embedded([s.packed for s in scenes]),
        "SCRIPT": f"(() => {{\n'use strict';\n{script}\n}})();",
    }
    marks = re.compile(f"@@({'|'.join(parts)})@@")
    return marks.sub(lambda mark: parts[mark[1]], resource("template.html"))  # one pass: inserted text is not searched


def in_frame(html: str) -> str:
    """The page in an iframe, for a notebook."""
    return (
        f'<iframe title="tilewise" srcdoc="{escape(html)}" loading="lazy" '
        'style="width:100%;height:860px;border:1px solid #8888;border-radius:8px"></iframe>'
    )


DRAWN = ("t4", "a100", "rtx4090", "h100", "h200")  # one card of each kind: more rooflines would overlap


def cards() -> list[dict[str, Any]]:
    """The cards for the page's rooflines."""
    from tilewise.core.machine import KNOWN_CARDS  # lazy: takes 10 ms, which a trace as text does not need

    return [
        {"key": key, "name": card.name, "flops": 2 * card.step_rate("float32"), "bandwidth": card.bandwidth}
        for key, card in KNOWN_CARDS.items()
        if key in DRAWN
    ]


def title_of(trace: TraceData) -> str:
    run = trace.run
    parts = [run.entry if run.file == "<text>" else Path(run.file).name]
    if run.shape:
        parts.append("×".join(map(str, run.shape)))
    if run.tile:
        parts.append(f"TILE_WIDTH {run.tile}")
    return " · ".join(parts)


def _embedded(value: Any) -> str:
    """JSON that can be embedded in a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
