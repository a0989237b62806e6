"""The emulator's English sentences in the reader's language.

The emulator writes a sentence where it finds the fault, with names and numbers in it. A language's file lists the same
sentence with placeholders beside its translation, as gettext does. A sentence without a translation stays English."""

from __future__ import annotations

import re
from functools import lru_cache, partial

from tilewise.i18n.messages import PLACEHOLDER, engine_messages, filled

# what a placeholder matches, where that is not any text; numbers separate sentences that begin alike
NUMBER = r"-?[\d,.]+"
SIZES = r"[\d ×]+"
NAME = r"[^\s;:,()]+(?:\([^\s]*\))?"
FORMS = {
    **dict.fromkeys(("line", "other_line", "count", "size", "most", "rows", "cols", "across", "down"), NUMBER),
    **dict.fromkeys(("lda", "ldb", "ldc", "rows_a", "rows_b", "seconds", "status", "one", "two", "true"), NUMBER),
    **dict.fromkeys(("grid", "block_size", "most_grid"), SIZES),
    **dict.fromkeys(("name", "other"), rf"(?:{NAME}|the target|the source|its output)"),
    "bytes": r"\d+ bytes?",
    "place": r"[^\n]+?:\d+:\d+",
    "headline": r"[^\n]+",
    "call": r"[\w:]+(?:\[\])?",
    "access": "read|write|load|store",
    "verb": "reads|writes",
    "op": r"[-+*]",
    "spec": r"%\S+",
    "token": r"\S+",
    "direction": r"cudaMemcpy\w+",
    "other_direction": r"cudaMemcpy\w+",
}  # fmt: skip
SENTENCES = frozenset({  # placeholders whose value is translated as well
    "rest", "headline", "doing", "reading", "where", "block", "problem", "access", "verb", "reason", "covers",
    "condition", "side", "other_side",
})  # fmt: skip


def translated(text: str, language: str) -> str:
    """The sentence in that language, or itself where there is no translation."""
    return translation(text, language) or text


def translation(text: str, language: str) -> str | None:
    for pattern, sentence in _patterns(language):
        match = pattern.fullmatch(text)
        if match is not None:
            return filled(sentence, language, partial(_value, match, language))
    return None


def _value(match: re.Match[str], language: str, name: str) -> str:
    return translated(match[name], language) if name in SENTENCES else match[name]


@lru_cache(maxsize=8)
def _patterns(language: str) -> list[tuple[re.Pattern[str], str]]:
    """Every sentence as a pattern, those with the most literal text first: they are the most specific."""
    pairs = sorted(engine_messages(language).items(), key=lambda pair: -len(PLACEHOLDER.sub("", pair[0])))
    return [(re.compile(_pattern(english), re.DOTALL), sentence) for english, sentence in pairs]


def _pattern(text: str) -> str:
    out, at = [], 0
    for match in PLACEHOLDER.finditer(text):
        out.append(re.escape(text[at : match.start()]))
        out.append(f"(?P<{match[1]}>{FORMS.get(match[1], '.+')})")
        at = match.end()
    return "".join(out) + re.escape(text[at:])
