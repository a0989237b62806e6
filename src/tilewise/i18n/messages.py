"""Messages of pages and commands: one JSON file per language, with the same keys and placeholders in all of them."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from typing import Any

from tilewise.errors import UsageError
from tilewise.system.resources import shipped

LANGUAGES = {"en": "English", "vi": "Tiếng Việt", "pt": "Português"}
current = "en"  # the running command's language, for errors that are printed where its options are not known
PLACEHOLDER = re.compile(r"\{(\w+)\}")
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
    return PLACEHOLDER.sub(lambda m: str(values[m[1]]), text)


def counted(language: str, key: str, count: int, **values: object) -> str:
    """The message for one or for many of something."""
    return say(language, f"{key}.{'one' if count == 1 else 'many'}", count=count, **values)
