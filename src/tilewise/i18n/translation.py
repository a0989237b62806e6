"""The engine's English sentences in the reader's language, found by their form: the words under "said." in each file.

A sentence of the engine is written where the fault is found, with its names and numbers in it; "said." in en.json has
that form with placeholders, and the same key in the other languages says it there. What has no form stays English."""

from __future__ import annotations

import re
from functools import lru_cache

from tilewise.i18n.messages import PLACEHOLDER, words

PREFIX = "said."
# what a placeholder may be, where that is not just anything; numbers keep sentences apart that begin alike
NUMBER = r"-?[\d,.]+"
SIZES = r"[\d(), x]+"
NAME = r"[^\s;:,()]+(?:\([^\s]*\))?"
FORMS = {
    **dict.fromkeys(("line", "other_line", "count", "size", "most", "rows", "cols", "across", "down"), NUMBER),
    **dict.fromkeys(("lda", "ldb", "ldc", "rows_a", "rows_b", "seconds", "status", "one", "two", "true"), NUMBER),
    **dict.fromkeys(("by", "bx"), NUMBER),
    **dict.fromkeys(("grid", "block_size"), SIZES),
    **dict.fromkeys(("name", "other"), rf"(?:{NAME}|the target|the source|its output)"),
    "bytes": r"\d+ bytes?",
    "place": r"[^\n]+?:\d+:\d+",
    "headline": r"[^\n]+",
    "call": r"[\w:]+(?:\[\])?",
    "access": "read|write|load|store",
    "verb": "reads|writes",
    "op": r"[-+*]",
    "spec": r"%\S+",
    "direction": r"cudaMemcpy\w+",
    "other_direction": r"cudaMemcpy\w+",
}  # fmt: skip
SENTENCES = frozenset({  # placeholders that hold a sentence of their own
    "rest", "headline", "doing", "reading", "where", "block", "problem", "access", "verb", "reason", "covers",
    "condition", "side", "other_side",
})  # fmt: skip


def translated(text: str, language: str) -> str:
    """The sentence in that language; itself where there are no words for it."""
    if language == "en":
        return text
    return _said(text, language) or text


def known(text: str) -> bool:
    """Whether there are words for it."""
    return _found(text) is not None


def _said(text: str, language: str) -> str:
    found = _found(text)
    if found is None:
        return ""
    key, values = found
    for name in SENTENCES & values.keys():
        values[name] = translated(values[name], language)
    return PLACEHOLDER.sub(lambda m: values[m[1]], words(language)[key])


def _found(text: str) -> tuple[str, dict[str, str]] | None:
    for key, form in _forms():
        match = form.fullmatch(text)
        if match is not None:
            return key, match.groupdict()
    return None


@lru_cache(maxsize=1)
def _forms() -> list[tuple[str, re.Pattern[str]]]:
    """Every form, those with most words of their own first: they say most."""
    said = [(key, text) for key, text in words("en").items() if key.startswith(PREFIX)]
    said.sort(key=lambda item: -len(PLACEHOLDER.sub("", item[1])))
    return [(key, re.compile(_pattern(text), re.DOTALL)) for key, text in said]


def _pattern(text: str) -> str:
    out, at = [], 0
    for match in PLACEHOLDER.finditer(text):
        out.append(re.escape(text[at : match.start()]))
        out.append(f"(?P<{match[1]}>{FORMS.get(match[1], '.+')})")
        at = match.end()
    return "".join(out) + re.escape(text[at:])
