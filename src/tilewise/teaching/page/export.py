"""One self-contained HTML file: template, style, scripts, languages and packed scenes put together."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

from tilewise.i18n.messages import LANGUAGES, words
from tilewise.system.output import write_whole
from tilewise.system.resources import shipped

STYLES = ("style.css", "panes.css", "lecture.css")
SCRIPTS = (
    "words.js",
    "trace.js",
    "replay.js",
    "svg.js",
    "matrices.js",
    "shared.js",
    "threads.js",
    "listing.js",
    "counters.js",
    "caption.js",
    "findings.js",
    "traffic.js",
    "warps.js",
    "roofline.js",
    "lens.js",
    "story.js",
    "pane.js",
    "align.js",
    "controls.js",
    "live.js",
    "main.js",
)
NOT_OF_PAGES = ("said.", "check.", "verdict.", "run.", "grade.", "learn.", "table.")  # sentences of commands only


def resource(name: str) -> str:
    return shipped(f"teaching/page/{name}").read_text(encoding="utf-8")


def _of_page(sentences: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in sentences.items() if not key.startswith(NOT_OF_PAGES)}


def html(settings: dict[str, Any], packed: list[str], title: str, language: str) -> str:
    """The file's text. `settings` is what the page is told beside the scenes."""
    connect = "connect-src 'self'" if settings.get("live") else "connect-src 'none'"
    script = "\n".join(f"// {name}\n{resource('script/' + name)}" for name in SCRIPTS)
    spoken = {language: _of_page(words(language)) for language in LANGUAGES}
    parts = {
        "LANGUAGE": language,
        "TITLE": escape(title),
        "CONNECT": connect,
        "STYLE": "\n".join(resource(name) for name in STYLES),
        "SETTINGS": _embedded({**settings, "languages": LANGUAGES, "words": spoken}),
        "SCENES": _embedded(packed),
        "SCRIPT": f"(() => {{\n'use strict';\n{script}\n}})();",
    }
    marks = re.compile(f"@@({'|'.join(parts)})@@")
    return marks.sub(lambda mark: parts[mark[1]], resource("template.html"))  # in one pass: what is put in is not read


def _embedded(value: Any) -> str:
    """JSON that may stand in a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def write(path: Path, text: str) -> None:
    """Whole or not at all."""
    write_whole(path, text)
