"""What reaches a terminal: text and bytes of a stranger's in which control characters are shown, never obeyed."""

from __future__ import annotations

import codecs
import os
import re
import stat

# C0 but for tab and newline, DEL, C1, and what turns the direction of text
UNPRINTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
KEPT = "\b\r"  # of a program's own output: they move within its line, as progress bars do


def plain(text: str) -> str:
    """Text that may hold bytes of a stranger's file: what a terminal would obey is shown instead."""
    return UNPRINTED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def is_terminal(descriptor: int) -> bool:
    """Whether it may be one: any character device. By fstat, which a sandbox allows; isatty needs ioctl."""
    try:
        return stat.S_ISCHR(os.fstat(descriptor).st_mode)
    except OSError:
        return False


class Shown:
    """The bytes that a program prints as a terminal gets them: UTF-8, with controls and bytes that are none shown."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def __call__(self, data: bytes, final: bool = False) -> bytes:
        """What can be shown of them now; the beginning of a character waits for its end."""
        text = self._decoder.decode(data, final)
        return UNPRINTED.sub(lambda found: found[0] if found[0] in KEPT else plain(found[0]), text).encode()
