"""Randomly mutated programs are refused with a message or lowered, without internal errors."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from lowered_programs import lowered
from seeds import next_seed
from tilewise.errors import TilewiseError

sys.path.insert(0, str(Path(__file__).parent))
from generated_programs import Draw

WORDS = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ";",
    ",",
    "*",
    "&",
    "::",
    "=",
    "<<<",
    ">>>",
    "template",
    "struct",
    "int",
    "const",
    "auto",
    "return",
    "0",
    "operator",
    "new",
    "delete",
    "<<",
    "...",
    "#if",
]
NAMES = [
    "x",
    "a",
    "b",
    "k",
    "p",
    "q",
    "v",
    "s",
    "f",
    "total",
    "table",
    "Point",
    "twice",
    "change",
    "std::vector<int>",
    "3.5",
    "-1",
    '"t"',
    "&k",
    "*p",
    "v.size()",
    "p.z[1]",
    "q.y",
]


def spoilt(text: str, draw: random.Random) -> str:
    words = text.split(" ")
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(words))
        how = draw.randrange(4)
        if how == 0:
            del words[at]
        elif how == 1:
            words[at] = draw.choice(NAMES if draw.random() < 0.8 else WORDS)
        elif how == 2:
            words.insert(at, draw.choice(WORDS))
        else:
            other = draw.randrange(len(words))
            words[at], words[other] = words[other], words[at]
    return " ".join(words)


def try_seeds(seeds, folder):
    for seed in seeds:
        draw = random.Random(seed)
        path = folder / "spoilt.cu"
        path.write_text(spoilt(Draw(seed).program(), draw))
        try:
            lowered(path)
        except TilewiseError:
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error


def test_spoilt_programs_are_refused_or_lowered(tmp_path):
    start = next_seed() % (1 << 30)
    try_seeds(range(start, start + 12), tmp_path)


@pytest.mark.slow
def test_ten_thousand_spoilt_programs(tmp_path):
    start = next_seed() % (1 << 30)
    try_seeds(range(start, start + 10_000), tmp_path)


@pytest.mark.parametrize("cut_off", ["::", "unsigned ::", "const ::"])
def test_a_file_that_ends_inside_a_declarations_name_still_defines_main(tmp_path, cut_off):
    path = tmp_path / "cut.cu"
    path.write_text("int main() { return 0; }\n" + cut_off)
    assert "main" in lowered(path)


@pytest.mark.parametrize("cut_off", ["int a = ::"])
def test_a_file_that_ends_inside_a_name_is_refused(tmp_path, cut_off):
    path = tmp_path / "cut.cu"
    path.write_text("int main() { return 0; }\n" + cut_off)
    with pytest.raises(TilewiseError, match=r"cut\.cu:2:9"):
        lowered(path)


@pytest.mark.parametrize(
    "text",
    [
        '#include <stdio.h>\nint main() { printf("%d\\n", {1}); }',
        "auto f(int x) { return {x, x}; }\nint main() { f(1); }",
        "struct V { int x; auto operator+(const V& o) const { return {x + o.x}; } };\nint main() { V a{1}; a + a; }",
        "int main() { auto f = [](int x) { return {x}; }; return f(1); }",
    ],
)
def test_braces_without_a_type_are_refused(tmp_path, text):
    path = tmp_path / "braces.cu"
    path.write_text(text)
    with pytest.raises(TilewiseError, match="a list in braces needs a type here"):
        lowered(path)
