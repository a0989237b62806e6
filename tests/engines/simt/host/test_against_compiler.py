"""Programs drawn at random print the same bytes and end with the same status as under g++."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilewise.engines.simt.host.process import run_program

sys.path.insert(0, str(Path(__file__).parent))
from generated_programs import Draw

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here to compare with")


def agrees(seed: int, folder: Path) -> None:
    source = folder / f"p{seed}.cu"
    source.write_text(Draw(seed).program())
    built = folder / f"p{seed}"
    flags = ["-x", "c++", "-std=c++17", "-O1", "-fwrapv", "-ffp-contract=off", "-fsigned-char", "-w"]
    subprocess.run(["g++", *flags, str(source), "-o", str(built)], check=True)
    real = subprocess.run([str(built)], capture_output=True, timeout=20)
    ours = run_program(source, capture=True)
    assert ours.ended == "exit", f"seed {seed}: {ours.message}"
    assert ours.output == real.stdout.decode(), f"seed {seed}"
    assert ours.status == real.returncode, f"seed {seed}"


def test_programs_drawn_at_random_print_what_a_compiler_prints(tmp_path):
    start = time.time_ns() % (1 << 30)
    for seed in range(start, start + 6):
        agrees(seed, tmp_path)


@pytest.mark.slow
def test_a_thousand_programs_print_what_a_compiler_prints(tmp_path):
    start = time.time_ns() % (1 << 30)
    for seed in range(start, start + 1000):
        agrees(seed, tmp_path)
