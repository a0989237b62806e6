"""The lexer's regular expression, and literals."""

from __future__ import annotations

import tracemalloc

import pytest

from tilewise.emulator.source.conditional import evaluate_condition
from tilewise.emulator.source.lexer import PIECE, Token, tokenize
from tilewise.emulator.source.literal import character_value, string_bytes
from tilewise.emulator.source.preprocess import Preprocessor
from tilewise.emulator.source.source import Source
from tilewise.errors import KernelError, LimitError

SOURCE = Source("a.cu", "")


@pytest.mark.parametrize("text", ["//" + "\\\n" * 10**6, "1'" * 10**6 + "1", "0x" + "f" * 10**6], ids=lambda t: t[:2])
def test_long_tokens_take_constant_memory(text):
    """A backtracking expression took 250 bytes per character: a gigabyte for a file, in one call of C."""
    tracemalloc.start()
    try:
        piece = PIECE.match(text)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert piece is not None
    assert piece.group() == text
    assert taken < 10 * len(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\033[1m\0"', b"\x1b[1m\0"), (r'"\1018\x41g"', b"A8Ag"), (r'"\v\f\?\\n\""', b'\v\f?\\n"'),
        (r'"\0333"', b"\x1b3"), (r'"\u00e9"', "é".encode()),
    ],
)  # fmt: skip
def test_escape_sequences_are_decoded_as_in_c(text, value):
    assert string_bytes(SOURCE, Token("string", text, 1, 1)) == value


def test_a_character_may_be_octal():
    texts = (r"'\033'", r"'\0'", r"'\101'", r"'\377'")
    assert [character_value(SOURCE, Token("char", text, 1, 1)) for text in texts] == [27, 0, 65, -1]


def test_a_wrong_escape_in_a_condition_is_refused():
    with pytest.raises(KernelError, match=r"\\u is followed by 4 hexadecimal digits"):
        evaluate_condition(SOURCE, [Token("char", r"'\u12'", 1, 1)], Token("punct", "#", 1, 1), 10)


@pytest.mark.parametrize("text", [
    "#define S(x) #x\n#define T(x) S(x x x x)\nconst char* s = " + "T(" * 14 + "abc" + ")" * 14 + ";\n",
    "#define J(a, b) a##b\n#define L(x) J(x, x)\nint " + "L(" * 40 + "xxxxxxxx" + ")" * 40 + ";\n",
])  # fmt: skip
def test_texts_that_double_themselves_are_refused(text):
    """The first one doubles the escapes of its quotes, too."""
    source = Source("a.cu", text)
    with pytest.raises(LimitError, match="# and ## make more than 8 MiB of text"):
        Preprocessor(source).process(tokenize(source))
