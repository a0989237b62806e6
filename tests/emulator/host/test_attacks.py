"""Programs that attack the process they run in: each is refused or reported, and none ends it by a signal.

The sandbox is disabled: the checks in compiled code must suffice."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from attacks import HEAD, SURFACES

from tilewise.emulator.host.options import NATIVE, OFF, WASM, Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(8)  # each program is compiled in a process, 0.2 to 2 s

ALWAYS = 3  # attacks of each surface in the default run; the others are slow
BESIDE = ("leak", "not-copied-back")  # findings unrelated to an attack
CASES = [
    pytest.param(text, id=f"{surface}-{i}", marks=() if i < ALWAYS or text.startswith("//ok") else pytest.mark.slow)
    for surface, texts in SURFACES.items()
    for i, text in enumerate(texts)
]


@pytest.mark.parametrize("target", [NATIVE, *([WASM] if find_spec("wasmtime") else [])])
@pytest.mark.parametrize("text", CASES)
def test_an_attack_is_reported_and_does_no_harm(tmp_path, text, target):
    path = tmp_path / "hostile.cu"
    path.write_text(HEAD + text + "\n")
    report = run_program(path, options=Options(seconds=10, wall=20, sandbox=OFF, target=target), capture=True)
    assert report.ended in ("exit", "abort", "crash", "refused", "limit"), report.message
    assert "ESCAPED" not in report.output
    assert report.status != 77
    assert "line 0:" not in report.message
    if text.startswith("//ok"):
        assert (report.ended, report.status, report.findings) == ("exit", 0, []), report.message
    elif not text.startswith("//quiet"):
        told = [f.kind.value for f in report.findings if f.kind.value not in BESIDE]
        assert told or report.ended in ("refused", "limit"), report.output
