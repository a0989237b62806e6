"""CUDA C++ text to tokens, each with its place. Comments, line splices and a notebook's %%magic lines disappear."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tilewise.engines.simt.frontend.source import Source

PUNCTUATORS = (
    "<<<", "<<=", ">>=", "...", "->*",
    "::", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
    "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##",
)  # fmt: skip
SINGLE = "+-*/%&|^~!=<>?:;,.(){}[]#@\\$`"
MAGIC = re.compile(r"(?:%%?[a-z]|!\s*(?:nvcc|nvprof|ncu|nsys|nvidia|\./|pip|apt|cat|ls|cd|rm|mkdir|git|python))[^\n]*")
SPELT = {"and": "&&", "or": "||", "not": "!"}  # C++ has words for these
STRING_PREFIXES = ("u8", "u", "U", "L", "R")


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is one of name, number, string, char, punct, newline, end. `origin` is the macro it came from;
    `hidden` are macros it may not expand any more."""

    kind: str
    text: str
    line: int
    column: int
    spaced: bool = False
    origin: str = ""
    hidden: frozenset[str] = frozenset()

    def at(self, other: Token) -> Token:
        """This token, standing where `other` stands: what a macro expands to is shown where it was used."""
        return replace(self, line=other.line, column=other.column)


def tokenize(source: Source) -> list[Token]:
    """All tokens, with a `newline` token at each line end (the preprocessor needs them) and `end` at the last."""
    text = source.text
    out: list[Token] = []
    i, n = 0, len(text)
    line, start = 1, 0
    spaced = True
    while i < n:
        ch = text[i]
        column = i - start + 1
        if ch == "\n":
            out.append(Token("newline", "\n", line, column))
            i += 1
            line, start, spaced = line + 1, i, True
            continue
        if ch.isspace() or ch in "\u200b\ufeff\x00":
            i += 1
            spaced = True
            continue
        end = _passed_over(source, i, line, column) if ch in "\\/%!" else i
        kind = ""
        if end > i:
            spaced = True
        else:
            kind, word, end = _token(source, i, line, column)
            out.append(Token(kind, word, line, column, spaced))
            spaced = False
        if kind in ("", "string", "char") and (breaks := text.count("\n", i, end)):
            line, start = line + breaks, text.rfind("\n", i, end) + 1
        i = end
    out.append(Token("newline", "\n", line, i - start + 1))
    out.append(Token("end", "", line, i - start + 1))
    return out


def _passed_over(source: Source, i: int, line: int, column: int) -> int:
    """The end of a comment, of a line spliced by a backslash or of a notebook's magic that starts at i; i where none
    does."""
    text, n = source.text, len(source.text)
    ch = text[i]
    if ch == "\\":
        j = i + 1
        while j < n and text[j] in " \t":
            j += 1
        return j + 1 if j >= n or text[j] == "\n" else i
    if ch in "%!":
        magic = MAGIC.match(text, i) if column == 1 else None
        return magic.end() if magic else i
    if text.startswith("//", i):
        while i < n and text[i] != "\n":
            i += 2 if text.startswith("\\\n", i) else 1
        return i
    if text.startswith("/*", i):
        close = text.find("*/", i + 2)
        if close < 0:
            raise source.error("this comment is never closed", line, column, 2)
        return close + 2
    return i


def _token(source: Source, i: int, line: int, column: int) -> tuple[str, str, int]:
    """The kind, the text and the end of the token that starts at i."""
    text, n = source.text, len(source.text)
    ch, j = text[i], i + 1
    if ch.isalpha() or ch == "_":
        while j < n and (text[j].isalnum() or text[j] == "_"):
            j += 1
        word = text[i:j]
        if j < n and text[j] in "\"'" and word in STRING_PREFIXES:
            end = _raw_string(source, i, j, line, column) if word == "R" else -1
            if end < 0:
                end = _quoted(source, j, line, column)
            return "string" if text[j] == '"' else "char", text[j:end], end
        return ("punct", SPELT[word], j) if word in SPELT else ("name", word, j)
    if ch.isdigit() or (ch == "." and j < n and text[j].isdigit()):
        end = _number_end(text, i)
        return "number", text[i:end], end
    if ch in "\"'":
        end = _quoted(source, i, line, column)  # which may go on after a backslash at the end of its line
        return "string" if ch == '"' else "char", text[i:end], end
    punct = next((p for p in PUNCTUATORS if text.startswith(p, i)), "")
    if not punct and ch not in SINGLE:
        raise source.error(f"a character that is no CUDA C: {ch!r}", line, column)
    return "punct", punct or ch, i + len(punct or ch)


def _number_end(text: str, i: int) -> int:
    j, n = i + 1, len(text)
    while j < n and (
        text[j].isalnum()
        or text[j] in "._"
        or (text[j] in "+-" and text[j - 1] in "eEpP" and text[i : i + 2].lower() != "0x")
        or (text[j] in "+-" and text[j - 1] in "pP")
        or (text[j] == "'" and j + 1 < n and text[j + 1].isalnum())
    ):
        j += 1
    return j


def _quoted(source: Source, i: int, line: int, column: int) -> int:
    text, quote = source.text, source.text[i]
    j = i + 1
    while j < len(text) and text[j] != quote:
        if text[j] == "\n":
            break
        j += 2 if text[j] == "\\" else 1
    if j >= len(text) or text[j] != quote:
        raise source.error("this string is never closed", line, column)
    return j + 1


def _raw_string(source: Source, i: int, j: int, line: int, column: int) -> int:
    text = source.text
    open_ = text.find("(", j)
    if open_ < 0 or open_ - j > 17:
        return -1
    close = text.find(f"){text[j + 1 : open_]}" + '"', open_)
    if close < 0:
        raise source.error("this raw string is never closed", line, column)
    return close + open_ - j + 1
