"""Random programs have the same output and status as under g++ and under clang."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from seeds import next_seed

sys.path.insert(0, str(Path(__file__).parent))
import compared_programs
from compared_programs import compare, difference, many

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here to compare with")


@pytest.fixture(scope="session")
def clang(tmp_path_factory):
    """The clang of the wheel ziglang, 100 MB: of this Python, or installed here if TILEWISE_INSTALL_CLANG is set."""
    python = sys.executable
    if find_spec("ziglang") is None:
        if not os.environ.get("TILEWISE_INSTALL_CLANG"):
            pytest.skip("pip install ziglang, or TILEWISE_INSTALL_CLANG=1, to compare with clang")
        folder = tmp_path_factory.mktemp("clang")
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        python = str(folder / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "ziglang"], check=True)
    return f"{python} -m ziglang c++"


@needs_compiler
def test_random_programs_print_what_a_compiler_prints(tmp_path):
    start = next_seed() % (1 << 30)
    assert compare(range(start, start + 2), tmp_path) == []


@needs_compiler
def test_a_difference_is_detected(tmp_path):
    """Clocks are deterministic here: a program that prints one differs."""
    text = '#include <cstdio>\n#include <ctime>\nint main() { printf("%ld\\n", (long)time(0)); return 3; }\n'
    assert "line 1 of the output" in difference(text, tmp_path)
    assert "status" in difference("int main() {\n#ifdef __CUDACC__\n return 3;\n#endif\n}\n", tmp_path)
    assert "refused" in difference("#include <csetjmp>\nint main() { jmp_buf b; return setjmp(b); }\n", tmp_path)


@pytest.mark.slow
@needs_compiler
def test_a_thousand_programs_print_what_a_compiler_prints():
    start = next_seed() % (1 << 30)
    assert many(1000, 2, 3600.0, start) == (1000, []), f"seeds from {start}"


@pytest.mark.slow
def test_a_thousand_programs_print_what_clang_prints(clang, monkeypatch):
    monkeypatch.setattr(compared_programs, "COMPILER", clang)
    start = next_seed() % (1 << 30)
    assert many(1000, 2, 3600.0, start) == (1000, []), f"seeds from {start}"
