"""Untrusted text and bytes for a terminal: control characters are escaped."""

from __future__ import annotations

import codecs
import os
import re
import stat

# C0 but for tab and newline, DEL, C1, and the bidirectional controls
UNPRINTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
KEPT = "\b\r"  # in a program's output: they move within a line, as progress bars do


def plain(text: str) -> str:
    """Untrusted text with control characters escaped."""
    return UNPRINTED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def is_terminal(descriptor: int) -> bool:
    """Whether a descriptor may be a terminal: any character device. By fstat, which a sandbox allows; isatty needs
    ioctl."""
    try:
        return stat.S_ISCHR(os.fstat(descriptor).st_mode)
    except OSError:
        return False


class Shown:
    """A program's output for a terminal: UTF-8, with control characters and invalid bytes escaped."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def __call__(self, data: bytes, final: bool = False) -> bytes:
        """The bytes to show now; an incomplete character waits for its rest."""
        text = self._decoder.decode(data, final)
        return UNPRINTED.sub(lambda found: found[0] if found[0] in KEPT else plain(found[0]), text).encode()
