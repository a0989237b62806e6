"""The words of pages and commands: one JSON file a language, the same keys and placeholders in all of them."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache

from tilewise.errors import UsageError
from tilewise.system.resources import shipped

LANGUAGES = {"en": "English", "vi": "Tiếng Việt", "pt": "Português"}
spoken = "en"  # by the command that runs: for errors, which are told where nobody knows of its options
PLACEHOLDER = re.compile(r"\{(\w+)\}")


@lru_cache(maxsize=8)
def words(language: str) -> dict[str, str]:
    """All sentences of a language by key."""
    check_language(language)
    text = shipped(f"i18n/languages/{language}.json").read_text(encoding="utf-8")
    found: dict[str, str] = json.loads(text)
    return found


def check_language(language: str) -> str:
    if language not in LANGUAGES:
        known = ", ".join(f"{code} ({name})" for code, name in LANGUAGES.items())
        raise UsageError(f"language {language!r} is not known; there are {known}")
    return language


def chosen_language(asked: str | None) -> str:
    """The language asked for, else the locale's where it is one of ours, else English; it is spoken from now on."""
    global spoken
    spoken = check_language(asked) if asked is not None else _of_locale()
    return spoken


def _of_locale() -> str:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name)
        if value:
            code = value.replace("-", "_").partition("_")[0].partition(".")[0].lower()
            return code if code in LANGUAGES else "en"
    return "en"


def say(language: str, key: str, /, **values: object) -> str:
    """A sentence with its placeholders filled. A key that a language lacks is an error, never a blank."""
    sentence = words(language).get(key)
    if sentence is None:
        raise UsageError(f"the language {language!r} has no sentence for {key!r}")
    return PLACEHOLDER.sub(lambda m: str(values[m[1]]), sentence)


def counted(language: str, key: str, count: int, **values: object) -> str:
    """The sentence for one or for many of something."""
    return say(language, f"{key}.{'one' if count == 1 else 'many'}", count=count, **values)


def gaps() -> list[str]:
    """What is missing or differs between the languages: keys, placeholders, empty sentences."""
    english = words("en")
    out = []
    for language in LANGUAGES:
        mine = words(language)
        out += [f"{language}: {key} is missing" for key in english if key not in mine]
        out += [f"{language}: {key} is not in en" for key in mine if key not in english]
        for key, sentence in mine.items():
            if not sentence.strip():
                out.append(f"{language}: {key} is empty")
            elif sorted(set(PLACEHOLDER.findall(sentence))) != sorted(set(PLACEHOLDER.findall(english.get(key, "")))):
                out.append(f"{language}: {key} has other placeholders than en")
    return out
