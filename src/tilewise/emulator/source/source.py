"""A source file as text: encodings, byte-order mark, line ends; positions in it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tilewise.errors import FileError, KernelError, UsageError
from tilewise.system.files import here

ENCODINGS = ("gb18030", "cp949", "cp1251")
MAX_BYTES = 8 << 20
SPAN = 10_000_000  # line L of included file F is numbered F * SPAN + L


class Span(NamedTuple):
    """A range of columns in one line."""

    line: int
    column: int
    length: int = 1


@dataclass(frozen=True)
class Place:
    """Where in the source: line and column count from 1; `text` is the line itself, `length` the caret's width."""

    file: str
    line: int
    column: int
    length: int = 1
    text: str = ""

    def caret(self) -> str:
        """The line with carets under the range."""
        lead = "".join(ch if ch == "\t" else " " for ch in self.text[: self.column - 1])
        width = max(1, min(self.length, len(self.text) - self.column + 1))
        return f"{self.text}\n{lead}{'^' * width}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Source:
    """The text of one file with its lines; positions are (line, column), both from 1."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self.text = text
        self.lines = text.split("\n")

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def place(self, line: int, column: int, length: int = 1) -> Place:
        return Place(self.name, line, column, length, self.line(line))

    def error(self, message: str, line: int, column: int, length: int = 1) -> KernelError:
        return KernelError(message, self.name, line, column, self.line(line), length)


def decode(data: bytes) -> str:
    """Text of a file: UTF-8, UTF-16 with a byte-order mark, else the encoding under which the bytes above 127 are most
    plausibly letters of its script, else Latin-1. Only comments and strings can differ."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    high = [b for b in data if b >= 0x80]
    runs = re.findall(rb"[\x80-\xff]+", data)
    in_latin = len(re.findall(rb"[A-Za-z][\x80-\xff]{1,2}(?![\x80-\xff])", data))
    if 2 * in_latin > len(runs):  # accented letters in Latin text
        return data.decode("latin-1")
    best, best_score = data.decode("latin-1"), 0.45
    for encoding in ENCODINGS:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        score = _plausible(text, encoding) / max(1, len(high))
        if score > best_score:
            best, best_score = text, score
    return best


def _plausible(text: str, encoding: str) -> float:
    """How many of the bytes above 127 became letters that are common in the encoding's script."""
    if encoding == "gb18030":
        return 1.96 * sum("\u4e00" <= ch <= "\u9fa5" or "\u3000" <= ch <= "\u3002" or ch == "\uff0c" for ch in text)
    if encoding == "cp949":
        return 2.0 * sum("\uac00" <= ch <= "\ud7a3" for ch in text)
    return 0.9 * sum("\u0430" <= ch <= "\u044f" for ch in text) + 0.5 * sum("А" <= ch <= "Я" for ch in text)


def read_source(kernel: str | Path) -> Source:
    """A `Source` from a path, or from the text itself where it contains a line end or `__global__`."""
    if isinstance(kernel, str) and ("\n" in kernel or "__global__" in kernel):
        return Source("<text>", kernel)
    if not isinstance(kernel, str | os.PathLike):
        raise UsageError(f"a kernel is a path or CUDA text, not {type(kernel).__name__}")
    path = Path(kernel)
    try:
        with os.fdopen(here().open(path), "rb") as file:  # refuses a FIFO or a device, which would never end
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise FileError(f"{path}: larger than {MAX_BYTES >> 20} MiB, which is no kernel source")
    except OSError as error:
        if isinstance(error, FileError):
            raise
        missing = isinstance(error, FileNotFoundError)
        raise FileError(f"{path} does not exist" if missing else f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise FileError(f"{str(kernel)!r}: {error}") from error
    return Source(str(path), decode(data))
