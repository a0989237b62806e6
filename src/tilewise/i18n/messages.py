"""Messages of pages and commands: one JSON file per language, with the same keys and placeholders in all of them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tilewise.errors import UsageError
from tilewise.system.resources import shipped

LANGUAGES = {
    "en": "English", "vi": "Tiếng Việt", "pt": "Português", "es": "Español (sin revisar)", "zh": "中文（未校对）",
    "hi": "हिन्दी (असमीक्षित)",
}  # fmt: skip
REVIEWED = ("en", "vi", "pt")  # reviewed by a reader; the others lack engine sentences, tutorial and exercises
current = "en"  # the running command's language, for errors that are printed where its options are not known
PLACEHOLDER = re.compile(r"\{(\w+)((?:\|[^{}|]*)*)\}")  # {count}, or {count|thread|threads}: the form for that count
SINGULAR_BELOW_TWO = ("pt", "hi")  # CLDR's "one" covers 0 there as well; vi and zh have a single form
ENGINE = "engine"  # in a language's file: the emulator's English sentences with their translations


@lru_cache(maxsize=8)
def _file(language: str) -> dict[str, Any]:
    check_language(language)
    text = shipped(f"i18n/languages/{language}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def messages(language: str) -> dict[str, str]:
    """All messages of a language by key."""
    return {key: text for key, text in _file(language).items() if key != ENGINE}


def engine_messages(language: str) -> dict[str, str]:
    """The emulator's sentences in English, with placeholders, and what each is in that language."""
    found: dict[str, str] = _file(language).get(ENGINE, {})
    return found


def check_language(language: str) -> str:
    if language not in LANGUAGES:
        known = ", ".join(f"{code} ({name})" for code, name in LANGUAGES.items())
        raise UsageError(f"language {language!r} is not known; there are {known}")
    return language


def chosen_language(requested: str | None) -> str:
    """The requested language, else the locale's where there is a file for it, else English; `current` from now on."""
    global current
    current = check_language(requested) if requested is not None else _of_locale()
    return current


def _of_locale() -> str:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name)
        if value:
            code = value.replace("-", "_").partition("_")[0].partition(".")[0].lower()
            return code if code in LANGUAGES else "en"
    return "en"


def say(language: str, key: str, /, **values: object) -> str:
    """A message with its placeholders filled. A key that a language lacks is an error, never a blank."""
    text = _file(language).get(key)
    if text is None:
        raise UsageError(f"the language {language!r} has no sentence for {key!r}")
    return filled(text, language, {name: str(value) for name, value in values.items()}.__getitem__)


def filled(text: str, language: str, value_of: Callable[[str], str]) -> str:
    """The text with each {name} replaced, and each {name|one|many} by the form that the number `name` has."""

    def value(match: re.Match[str]) -> str:
        forms = match[2].split("|")[1:]
        if not forms:
            return value_of(match[1])
        return forms[0 if is_one(language, value_of(match[1])) else -1]

    return PLACEHOLDER.sub(value, text)


def is_one(language: str, number: str) -> bool:
    """Whether a noun after this number is in the singular."""
    if language in SINGULAR_BELOW_TWO and number.isascii() and number.replace(".", "", 1).isdigit():
        return float(number) < 2
    return number == "1"
