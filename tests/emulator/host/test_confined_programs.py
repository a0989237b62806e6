"""Programs in the sandbox, and how the parent handles reports of the untrusted process.

A program that has gained control of its process is simulated by a runtime function: it runs in the program's thread,
in the sandbox, and can do what machine code there could."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

import tilewise as tw
from tilewise.emulator.check.program_child import Report
from tilewise.emulator.host.options import NATIVE, Options, strangers_target
from tilewise.emulator.host.process import run_program
from tilewise.emulator.host.program_report import ANNOUNCED, not_run, received
from tilewise.system import sandbox
from tilewise.teaching.course.assignment import Assignment
from tilewise.teaching.course.grading import grade_text

pytestmark = pytest.mark.drawn(4)  # each program is compiled in a process, 0.2 to 2 s

confined = pytest.mark.skipif(bool(sandbox.missing()), reason=f"no sandbox here: {sandbox.missing()}")
GAINED = """
import os, sys, ctypes, socket, json
from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program
from tilewise.emulator.host.runtime.session import FUNCTIONS
from tilewise.emulator.host import running

def trier(refused):
    def tries(action):
        try:
            action()
            refused.append("done")
        except Exception as error:
            refused.append(type(error).__name__)
    return tries

def gained(s, *arguments):
    report = s.report.descriptor
    {attack}
    return 0
FUNCTIONS["fopen"] = gained
came = run_program(sys.argv[1], [], Options(), fork=True)
print(json.dumps([came.ended, came.status, came.ok, came.message, came.sandbox]))
"""
OVERRUN = '#include <cstdio>\nint main() {{ int a[2]; {before} fopen("x", "r"); return 0; }}\n'
FORGED = json.dumps(
    {"status": 0, "ended": "exit", "message": "", "findings": [], "notes": [], "launches": [], "sandbox": "seccomp"}
)
NO_SANDBOX = "import tilewise.system.sandbox as s\ns.missing = lambda: 'this system has none'\n"
KERNEL = """
#include <cstdio>
__global__ void product(float* M, float* N, float* P, int Width) {
  int Row = blockIdx.y * blockDim.y + threadIdx.y, Col = blockIdx.x * blockDim.x + threadIdx.x;
  if (Row < Width && Col < Width) {
    float sum = 0;
    for (int k = 0; k < Width; k++) sum += M[Row * Width + k] * N[k * Width + Col];
    P[Row * Width + Col] = sum;
  }
}
int main() {
  const int n = 4; float h[n * n], *a, *b, *c;
  for (int i = 0; i < n * n; i++) h[i] = i;
  cudaMalloc(&a, sizeof h); cudaMalloc(&b, sizeof h); cudaMalloc(&c, sizeof h);
  cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); cudaMemcpy(b, h, sizeof h, cudaMemcpyHostToDevice);
  product<<<dim3((n + 3) / 4, (n + 3) / 4), dim3(4, 4)>>>(a, b, c, n);
  cudaMemcpy(h, c, sizeof h, cudaMemcpyDeviceToHost);
  printf("%g\\n", h[0]);
  cudaFree(a); cudaFree(b); cudaFree(c);
}
"""


def ran_by(attack, folder, before=""):
    """How a program ends whose call of fopen is the attack, run by a fresh process."""
    (folder / "program.cu").write_text(OVERRUN.format(before=before))
    (folder / "script.py").write_text(GAINED.format(attack=attack))
    command = [sys.executable, str(folder / "script.py"), str(folder / "program.cu")]
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # so that the program is a fork of it
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env=alone)
    assert ran.stdout, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@confined
def test_a_program_runs_in_the_sandbox(tmp_path):
    (tmp_path / "p.cu").write_text("int main() { return 3; }\n")
    report = run_program(tmp_path / "p.cu", [], Options(), capture=True)
    assert (report.ended, report.status) == ("exit", 3)
    assert "seccomp" in report.sandbox
    assert "seccomp" in report.to_json()["sandbox"]


@confined
def test_no_path_can_be_opened(tmp_path):
    attacks = [
        'open("/etc/passwd")', 'open("{folder}/written", "w")', 'os.listdir("/")', 'os.stat("/etc/passwd")',
        'os.rename("{folder}/program.cu", "{folder}/written")', 'os.link("{folder}/program.cu", "{folder}/written")',
    ]  # fmt: skip
    tried = "; ".join(f"tries(lambda: {attack.format(folder=tmp_path)})" for attack in attacks)
    ended, _, _, message, _ = ran_by(
        f"refused = []; tries = trier(refused); {tried}; raise Exception(refused)", tmp_path
    )
    assert (ended, message) == ("failed", f"Exception: {['PermissionError'] * len(attacks)}")
    assert not (tmp_path / "written").exists()


@confined
@pytest.mark.parametrize(
    "attack", ['os.system("touch {folder}/written")', "socket.socket()", "os.kill(os.getppid(), 15)"]
)
def test_a_process_that_starts_connects_or_signals_is_killed(attack, tmp_path):
    ended, status, ok, message, _ = ran_by(attack.format(folder=tmp_path), tmp_path)
    assert (ended, status, ok) == ("failed", 4, False)
    assert "a system call that the sandbox forbids" in message
    assert not (tmp_path / "written").exists()


@confined
@pytest.mark.parametrize("forged", [FORGED, ""], ids=["a good one", "none"])
def test_a_forged_report_after_a_fault_is_ineffective(forged, tmp_path):
    attack = f"os.write(report, {forged.encode()!r}); os._exit(0)"
    ended, status, ok, _, _ = ran_by(attack, tmp_path, before="a[2] = 1;")
    assert (ended, status, ok) == ("failed", 4, False)


def test_a_report_is_compared_with_the_exit_status():
    def of(text, code=0, late=False):
        return received("p.cu", code, text if isinstance(text, bytes) else text.encode(), late, Options())

    assert of(FORGED).ok
    assert of(ANNOUNCED + FORGED.encode()).ended == "failed"  # a fault was announced, but is not in the report
    assert of(FORGED, code=7).ended == "failed"  # the process ended with another status
    malformed = [
        "{", "[]", "7", b"\xff\xfe", "[" * 100_000, FORGED.replace('"findings": []', '"findings": [{}]'),
        FORGED.replace('"exit"', '"fine"'), FORGED.replace('"launches": []', '"launches": [7]'),
        FORGED.replace('"status": 0', '"status": "x"'), FORGED.replace('"notes": []', '"notes": 7'),
    ]  # fmt: skip
    assert [of(text).ended for text in malformed] == ["failed"] * len(malformed)
    assert of(b"", late=True).ended == "limit"
    assert "sandbox forbids" in of(b"", code=-signal.SIGSYS).message
    assert "longer than 20 s" in of(b"", code=-signal.SIGXCPU).message  # in one long call of C


def test_a_captured_program_does_not_see_secrets_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    (tmp_path / "p.cu").write_text(
        '#include <cstdio>\n#include <cstdlib>\nint main() { puts(getenv("SECRET_TOKEN") ? "there" : "not there"); }\n'
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    (tmp_path / "sitecustomize.py").write_text(
        f"import os\nopen({str(tmp_path / 'seen')!r}, 'w').write(os.environ.get('SECRET_TOKEN', 'none'))\n"
    )
    with monkeypatch.context() as own:
        own.setattr("tilewise.emulator.host.process.subprocess", subprocess)  # a new interpreter, not a warm one
        run_program(tmp_path / "p.cu", [], Options(), capture=True)
    assert (tmp_path / "seen").read_text() == "none"


@pytest.fixture
def no_sandbox(tmp_path, monkeypatch):
    """Simulates a system without one, by a module that the program's new interpreter imports first."""
    monkeypatch.setattr("tilewise.emulator.host.process.subprocess", subprocess)
    (tmp_path / "sitecustomize.py").write_text(NO_SANDBOX)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


@pytest.fixture
def no_webassembly(monkeypatch):
    for module in ("tilewise.teaching.trace.program_run", "tilewise.teaching.course.programs"):
        monkeypatch.setattr(f"{module}.strangers_target", lambda: NATIVE)


def test_without_a_sandbox_check_judges_the_kernels_and_says_that_main_was_not_run(
    no_sandbox, no_webassembly, tmp_path
):
    path = tmp_path / "product.cu"
    path.write_text(KERNEL)
    report = tw.check(path)
    assert report.program is None
    assert "this system has none" in report.not_judged["main"]
    assert [run.entry for run in report.runs if run.entry == "product"]
    assert "main was not run" in " ".join(report.text().split())
    assert tw.check(path, unsafe=True).program.status == 0


def test_without_a_sandbox_a_program_earns_points_only_with_unsafe(no_sandbox, no_webassembly, tmp_path):
    path = tmp_path / "product.cu"
    path.write_text(KERNEL)
    points = {"product": 2.0, "program": 3.0}
    careful = grade_text(KERNEL, Assignment(points=points), 1, "a", str(path))
    assert [(item.name, item.points) for item in careful.items] == [("product", 2.0), ("program", 0.0)]
    assert "--unsafe" in careful.items[1].values["message"]
    trusting = grade_text(KERNEL, Assignment(points=points, unsafe=True), 1, "a", str(path))
    assert [item.points for item in trusting.items] == [2.0, 3.0]


@pytest.mark.skipif(strangers_target() == NATIVE, reason="wasmtime is an extra: tilewise[wasm]")
def test_without_a_sandbox_of_the_system_strangers_run_as_webassembly(no_sandbox, tmp_path):
    path = tmp_path / "product.cu"
    path.write_text(KERNEL)
    program = tw.check(path).program
    assert (program.ended, program.sandbox) == ("exit", "WebAssembly")
    graded = grade_text(KERNEL, Assignment(points={"product": 2.0, "program": 3.0}), 1, "a", str(path))
    assert [item.points for item in graded.items] == [2.0, 3.0]


def test_nothing_is_imported_in_the_sandbox(tmp_path):
    """In a new interpreter, with a kernel whose faults need explanations: their modules are imported before."""
    text = KERNEL.replace("Row < Width && Col < Width", "true").replace("dim3(4, 4)", "dim3(5, 5)")
    (tmp_path / "own.cu").write_text(text)
    command = [sys.executable, "-m", "tilewise", "run", "--json", str(tmp_path / "own.cu")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    report = json.loads(ran.stderr[ran.stderr.index("{") :])
    assert report["ended"] == "exit", report["message"]
    assert report["findings"]


def test_a_fault_found_after_the_report_is_not_announced_in_it():
    """The watch reports that a limit is reached while the program's thread finds a fault."""
    reader, writer = os.pipe()
    report = Report(writer)
    report.announce()
    kept = os.dup(writer)  # the pipe stays open, as if writing took longer
    report(not_run(4, "limit", "too long"))
    report.descriptor = kept
    report.announce()
    os.close(kept)
    with os.fdopen(reader, "rb") as pipe:
        assert received("p.cu", 4, pipe.read(), False, Options()).ended == "limit"


def test_where_descriptors_are_not_inherited_main_is_not_run_and_kernels_are_judged(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "fork")  # Windows
    path = tmp_path / "product.cu"
    path.write_text(KERNEL)
    report = tw.check(path)
    assert "programs run on Linux and macOS" in report.not_judged["main"]
    assert [run.entry for run in report.runs if run.entry == "product"]
    assert run_program(path, options=Options(), capture=True).exit_code == 2
