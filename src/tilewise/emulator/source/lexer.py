"""CUDA C++ text to tokens, each with its place. Comments, line splices and a notebook's %%magic lines disappear."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tilewise.emulator.source.source import Source

PUNCTUATORS = (
    "<<<", "<<=", ">>=", "...", "->*",
    "::", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
    "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##",
)  # fmt: skip
SINGLE = "+-*/%&|^~!=<>?:;,.(){}[]#@\\$`"
MAGIC = re.compile(r"(?:%%?[a-z]|!\s*(?:nvcc|nvprof|ncu|nsys|nvidia|\./|pip|apt|cat|ls|cd|rm|mkdir|git|python))[^\n]*")
ALTERNATIVE = {"and": "&&", "or": "||", "not": "!", "bitand": "&", "bitor": "|", "xor": "^"}  # C++'s alternative tokens
STRING_PREFIXES = ("u8", "u", "U", "L", "R")
QUOTES = ('"', "'")
SEPARATORS = frozenset({"newline", "splice", "space", "comment", "comments"})  # between tokens
MULTILINE = frozenset({"newline", "splice", "comment", "comments", "quote", "name"})  # may contain newlines


class Token(NamedTuple):
    """`kind` is one of name, number, string, char, punct, newline, end. `origin` is the macro it came from;
    `hidden` are macros that are not expanded in it."""

    kind: str
    text: str
    line: int
    column: int
    spaced: bool = False
    origin: str = ""
    hidden: frozenset[str] = frozenset()

    def at(self, other: Token) -> Token:
        """This token at the position of `other`: a macro's expansion is reported where the macro is used."""
        return Token(self.kind, self.text, other.line, other.column, self.spaced, self.origin, self.hidden)

    def hiding(self, macros: frozenset[str], origin: str) -> Token:
        """This token as part of an expansion in which `macros` are not expanded again."""
        kind, text, line, column, spaced, _, hidden = self
        return Token(kind, text, line, column, spaced, origin, hidden | macros if hidden else macros)


PIECE = re.compile(
    r"(?P<newline>\n)|(?P<splice>\\[ \t]*(?:\n|\Z))|(?P<space>[^\S\n]+|[\u200b\ufeff\x00]+)"
    r"|(?P<comment>//(?:\\\n|[^\n])*+)|(?P<comments>/\*)|(?P<name>[^\W\d]\w*)|(?P<quote>[\"'])"
    r"|(?P<number>0[xX](?:[pP][+-]|[\w.]|'(?=\w))*+|\.?\d(?:[eEpP][+-]|[\w.]|'(?=\w))*+)|(?P<punct>"
    + "|".join(re.escape(p) for p in (*PUNCTUATORS, *SINGLE))
    + ")"
)


def tokenize(source: Source) -> list[Token]:
    """All tokens, with a `newline` token at each line end (for the preprocessor) and a final `end`."""
    text = source.text
    out: list[Token] = []
    i, line, start = 0, 1, 0  # offset, line number, offset of the line
    spaced = True
    while i < len(text):
        column = i - start + 1
        if column == 1 and text[i] in "%!" and (magic := MAGIC.match(text, i)):
            i = magic.end()
            continue
        piece = PIECE.match(text, i)
        if piece is None:
            raise source.error(f"a character that is no CUDA C: {text[i]!r}", line, column)
        kind, begin, i, lexeme = str(piece.lastgroup), i, piece.end(), piece.group()
        if kind == "comments":
            close = text.find("*/", i)
            if close < 0:
                raise source.error("this comment is never closed", line, column, 2)
            i = close + 2
        elif kind == "newline":
            out.append(Token(kind, lexeme, line, column))
        elif kind == "quote" or (kind == "name" and lexeme in STRING_PREFIXES and text[i : i + 1] in QUOTES):
            first = begin if kind == "quote" else i
            end = _raw_string(source, first, line, column) if lexeme == "R" else -1
            i = end if end >= 0 else _quoted(source, first, line, column)
            out.append(Token("string" if text[first] == '"' else "char", text[first:i], line, column, spaced))
        elif kind == "name" and lexeme in ALTERNATIVE:
            out.append(Token("punct", ALTERNATIVE[lexeme], line, column, spaced))
        elif kind in ("name", "number", "punct"):
            out.append(Token(kind, lexeme, line, column, spaced))
        spaced = kind in SEPARATORS
        if kind in MULTILINE and (breaks := text.count("\n", begin, i)):
            line, start = line + breaks, text.rfind("\n", begin, i) + 1
        elif kind == "splice":  # at the end of the file
            line, start = line + 1, i
    out.append(Token("newline", "\n", line, i - start + 1))
    out.append(Token("end", "", line, i - start + 1))
    return out


def _quoted(source: Source, i: int, line: int, column: int) -> int:
    """The offset behind the string or character whose quote is at `i`."""
    text, quote = source.text, source.text[i]
    j = i + 1
    while j < len(text) and text[j] != quote:
        if text[j] == "\n":
            break
        j += 2 if text[j] == "\\" else 1
    if j >= len(text) or text[j] != quote:
        raise source.error("this string is never closed", line, column)
    return j + 1


def _raw_string(source: Source, j: int, line: int, column: int) -> int:
    """The offset behind the raw string whose quote is at `j`; -1 if it is an ordinary string."""
    text = source.text
    open_ = text.find("(", j)
    if open_ < 0 or open_ - j > 17:
        return -1
    close = text.find(f"){text[j + 1 : open_]}" + '"', open_)
    if close < 0:
        raise source.error("this raw string is never closed", line, column)
    return close + open_ - j + 1


def closing(parts: Sequence[str], opened: int, pair: str = "[]") -> int:
    """Index of the bracket that closes the one at `opened`, among tokens' texts or characters; the length if none."""
    depth = 0
    for i in range(opened, len(parts)):
        depth += (parts[i] == pair[0]) - (parts[i] == pair[1])
        if depth == 0:
            return i
    return len(parts)


def split(tokens: list[Token], separator: str) -> list[list[Token]]:
    """The tokens between separators that are inside no bracket."""
    out: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token.text, 0)
        if depth == 0 and token.text == separator:
            out.append([])
        else:
            out[-1].append(token)
    return out
