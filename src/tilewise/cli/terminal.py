"""What reaches a terminal: text in which a stranger's bytes are shown, never obeyed."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import click

UNPRINTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def json_text(document: Any, indent: int | None = 2) -> str:
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    return UNPRINTED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_json(document: Any, indent: int | None = 2) -> None:
    sys.stdout.write(json_text(document, indent) + "\n")


def plain(text: str) -> str:
    """Text that may hold bytes of a stranger's file: what a terminal would obey is shown instead."""
    return UNPRINTED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def say(text: str) -> None:
    click.echo(plain(text))
