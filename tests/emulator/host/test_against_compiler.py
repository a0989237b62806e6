"""Programs drawn at random print the same bytes and end with the same status as under g++."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from seeds import next_seed
from tilewise.emulator.host.process import run_program

sys.path.insert(0, str(Path(__file__).parent))
from compared_programs import compare, difference, many, under_compiler
from generated_programs import Draw

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here to compare with")


def test_a_program_drawn_at_random_prints_what_a_compiler_prints(tmp_path):
    seed = next_seed() % (1 << 30)
    source = tmp_path / "drawn.cu"
    source.write_text(Draw(seed).program())
    ours = run_program(source, capture=True)
    assert ours.ended == "exit", f"seed {seed}: {ours.message}"
    assert (ours.output, ours.status) == under_compiler(source), f"seed {seed}"


def test_programs_drawn_at_random_print_what_a_compiler_prints(tmp_path):
    start = next_seed() % (1 << 30)
    assert compare(range(start, start + 2), tmp_path) == []


def test_a_difference_is_seen(tmp_path):
    """Clocks stand still here and run there: a program that prints one differs."""
    text = '#include <cstdio>\n#include <ctime>\nint main() { printf("%ld\\n", (long)time(0)); return 3; }\n'
    assert "line 1 of the output" in difference(text, tmp_path)
    assert "status" in difference("int main() {\n#ifdef __CUDACC__\n return 3;\n#endif\n}\n", tmp_path)
    assert "refused" in difference('#include <regex>\nint main() { std::regex pattern("a"); return 0; }\n', tmp_path)


@pytest.mark.slow
def test_a_thousand_programs_print_what_a_compiler_prints():
    start = next_seed() % (1 << 30)
    assert many(1000, 2, 3600.0, start) == (1000, []), f"seeds from {start}"
