"""Programs that attack the process they run in: each is refused or reported, and none ends it by a signal.

The sandbox is disabled: the checks in compiled code must suffice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from attacks import COMPILING, HEAD, SURFACES
from forged_addresses import ATTACKS, program

from tilewise.emulator.host.options import NATIVE, OFF, WASM, Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(8)  # each program is compiled in a process, 0.2 to 2 s

ALWAYS = 3  # attacks of each surface in the default run; the others are slow
TARGETS = [NATIVE, *([WASM] if find_spec("wasmtime") else [])]
BESIDE = ("leak", "not-copied-back")  # findings unrelated to an attack
GREEDY = """
import json, sys
from tilewise.emulator.host import running
from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program
running.read_unit = lambda *_: "a" * (10 << 30)
report = run_program(sys.argv[1], [], Options(), fork=True)
print(json.dumps([report.ended, report.message]))
"""
CASES = [
    pytest.param(text, id=f"{surface}-{i}", marks=() if i < ALWAYS or text.startswith("//ok") else pytest.mark.slow)
    for surface, texts in SURFACES.items()
    for i, text in enumerate(texts)
]


def ran(folder, text, target):
    path = folder / "hostile.cu"
    path.write_text(text)
    report = run_program(path, options=Options(seconds=10, wall=20, sandbox=OFF, target=target), capture=True)
    assert report.ended in ("exit", "abort", "crash", "refused", "limit"), report.message
    assert "ESCAPED" not in report.output
    assert report.status != 77
    assert "line 0:" not in report.message
    return report, [f.kind.value for f in report.findings if f.kind.value not in BESIDE]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("access", "place"), ATTACKS)
def test_an_access_through_a_forged_address_is_reported(tmp_path, access, place, target):
    report, told = ran(tmp_path, program(access, place), target)
    assert told, report.message


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", CASES)
def test_an_attack_is_reported_and_does_no_harm(tmp_path, text, target):
    report, told = ran(tmp_path, HEAD + text + "\n", target)
    if text.startswith("//ok"):
        assert (report.ended, report.status, report.findings) == ("exit", 0, []), report.message
    elif not text.startswith("//quiet"):
        assert told or report.ended in ("refused", "limit"), report.output


@pytest.mark.slow  # up to the limit of time each; tests/cli/test_limits.py has drawn ones in the default run
@pytest.mark.parametrize("text", COMPILING, ids=range(len(COMPILING)))
def test_a_text_that_takes_endless_time_to_compile_ends_at_its_limits(tmp_path, text):
    path = tmp_path / "hostile.cu"
    path.write_text(HEAD + text + "\n")
    options = Options(seconds=4, wall=60, memory=1 << 30, sandbox=OFF, target=TARGETS[-1])
    report = run_program(path, options=options, capture=True)
    assert report.ended in ("exit", "abort", "crash", "refused", "limit"), report.message
    assert "sent no report" not in report.message  # it ended itself


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say how many addresses are in use")
def test_a_step_of_the_front_end_that_takes_all_memory_ends_at_the_limit(tmp_path):
    """A text of ten gigabytes, made by one call of C; the program's process is a fork of the script's."""
    path = tmp_path / "p.cu"
    path.write_text("int main() { return 0; }\n")
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", GREEDY, str(path)], capture_output=True, text=True, env=alone)
    ended, message = json.loads(done.stdout)
    assert ended == "limit", message
    assert "2.15 GB of memory were used up" in message
