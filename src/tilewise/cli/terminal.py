"""How commands print text and JSON that may contain bytes of an untrusted file, and the options of those reports."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from tilewise.system.terminal import UNPRINTED, plain

__all__ = ["json_text", "plain", "print_json", "report_options", "say"]


def json_text(document: Any, indent: int | None = 2) -> str:
    try:
        text = json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:  # NaN and infinities, which JSON lacks
        from tilewise.teaching.trace.strict_json import strict

        text = json.dumps(strict(document), indent=indent, ensure_ascii=False)
    return UNPRINTED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_json(document: Any, indent: int | None = 2) -> None:
    sys.stdout.write(json_text(document, indent) + "\n")


def say(text: str) -> None:
    click.echo(plain(text))


def report_options(
    *forms: str, language_of: str = "messages", json_help: str = "Print one JSON document on stdout."
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add --format (if there are `forms`), --json and --lang; the command gets the chosen `form` and `language`."""

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        @wraps(function)
        def call(as_json: bool, lang: str | None, form: str = "text", **rest: Any) -> int:
            from tilewise.i18n.messages import chosen_language

            return function(form="json" if as_json else form, language=chosen_language(lang), **rest)

        same = "The same as --format json." if forms else json_help
        call = click.option("--lang", help=f"Language of the {language_of}: en, vi or pt; default: the locale's.")(call)
        call = click.option("--json", "as_json", is_flag=True, help=same)(call)
        if forms:
            choice = click.Choice(forms)
            call = click.option("--format", "form", type=choice, default=forms[0], show_default=True)(call)
        return call

    return decorate
