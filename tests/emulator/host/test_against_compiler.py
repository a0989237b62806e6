"""Random programs have the same output and status as under g++."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from seeds import next_seed

sys.path.insert(0, str(Path(__file__).parent))
from compared_programs import compare, difference, many

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here to compare with")


def test_random_programs_print_what_a_compiler_prints(tmp_path):
    start = next_seed() % (1 << 30)
    assert compare(range(start, start + 2), tmp_path) == []


def test_a_difference_is_detected(tmp_path):
    """Clocks are deterministic here: a program that prints one differs."""
    text = '#include <cstdio>\n#include <ctime>\nint main() { printf("%ld\\n", (long)time(0)); return 3; }\n'
    assert "line 1 of the output" in difference(text, tmp_path)
    assert "status" in difference("int main() {\n#ifdef __CUDACC__\n return 3;\n#endif\n}\n", tmp_path)
    assert "refused" in difference("#include <csetjmp>\nint main() { jmp_buf b; return setjmp(b); }\n", tmp_path)


@pytest.mark.slow
def test_a_thousand_programs_print_what_a_compiler_prints():
    start = next_seed() % (1 << 30)
    assert many(1000, 2, 3600.0, start) == (1000, []), f"seeds from {start}"
