"""How commands print text and JSON that may contain bytes of an untrusted file."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from tilewise.system.terminal import UNPRINTED, plain

__all__ = ["json_text", "plain", "print_json", "say"]


def json_text(document: Any, indent: int | None = 2) -> str:
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    return UNPRINTED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_json(document: Any, indent: int | None = 2) -> None:
    sys.stdout.write(json_text(document, indent) + "\n")


def say(text: str) -> None:
    click.echo(plain(text))
