"""No process stays behind when a command is ended: by SIGTERM, by SIGKILL, by a terminal that closes."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

import tilewise

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found by /proc")

MARK = "TILEWISE_STARTED_BY_TEST"
KERNEL = """
#define TILE_WIDTH 2
__global__ void mine(float* A, float* B, float* C, int Width) {
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y, Col = blockIdx.x * TILE_WIDTH + threadIdx.x;
    float sum = 0;
    for (int i = 0; i < Width; ++i) sum += A[Row * Width + i] * B[i * Width + Col];
    while (sum == sum) sum += 1;
    C[Row * Width + Col] = sum;
}
"""
FINE = KERNEL.replace("while (sum == sum) sum += 1;", "")
PROGRAM = f"""{FINE}
int main() {{
    float *a, h[16] = {{0}};
    cudaMalloc(&a, sizeof h);
    cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice);
    mine<<<dim3(2, 2), dim3(2, 2)>>>(a, a, a, 4);
    volatile int go = 1;
    while (go) {{}}
}}
"""
ASSIGNMENT = 'title = "t"\n[points]\nproduct = 1\nprogram = 1\n'


class Command:
    """A command in a new session, and all its descendants, whatever their present parent."""

    def __init__(self, folder: Path, *arguments: str, terminal: bool = False, code: str = "") -> None:
        self.mark, self.file = uuid.uuid4().hex, arguments[1]
        source = str(Path(tilewise.__file__).parents[1])
        environment = {**os.environ, MARK: self.mark, "PYTHONPATH": source}
        where = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.terminal = -1
        if terminal:
            self.terminal, theirs = pty.openpty()
            where = dict.fromkeys(where, theirs)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code or RUN, *arguments],
            cwd=folder,
            env=environment,
            start_new_session=True,
            **where,
        )
        if terminal:
            os.close(theirs)

    def alive(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, IndexError):
                if entry.name.isdigit() and f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes():
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    found += [int(entry.name)] if state != "Z" else []
        return found

    def wait(self, processes: int, seconds: float = 20.0) -> list[int]:
        """Those that are alive, as soon as so many run the file (or none is alive)."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.alive()
            if not found if processes == 0 else sum(map(self.runs, found)) >= processes:
                return found
            time.sleep(0.02)
        raise AssertionError(f"{len(self.alive())} processes are alive, not {processes}")

    def runs(self, number: int) -> bool:
        with contextlib.suppress(OSError):
            return self.file.encode() in Path(f"/proc/{number}/cmdline").read_bytes()
        return False

    def end(self) -> None:
        for number in self.alive():
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        if self.terminal >= 0:
            os.close(self.terminal)


# a session's leader gets its terminal as its own when it opens it
RUN = """
import fcntl, os, sys, termios
if os.isatty(0):
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.argv[0] = "tilewise"
from tilewise.__main__ import main
main()
"""

COMMANDS = {  # arguments, and how many processes run the file at the same time
    "run": (["run", "endless.cu", "--limit-time", "60"], 2),
    "check": (["check", "endless.cu", "--limit", "seconds=60"], 3),
    "trace": (["trace", "kernel.cu", "--shape", "4x4x4", "--limit", "seconds=60", "--limit", "steps=100000000"], 2),
    "live": (["explore", "fine.cu", "--live", "--no-open"], 2),
    "watch": (["explore", "fine.cu", "--watch", "--no-open"], 2),
    "grade": (["grade", "endless.cu", "--assignment", "t.toml"], 2),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "endless.cu").write_text(PROGRAM)
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "fine.cu").write_text(FINE)
    (tmp_path / "t.toml").write_text(ASSIGNMENT)
    return tmp_path


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("name", "by"),
    [(name, "SIGKILL") for name in COMMANDS] + [(name, by) for name in ("live", "run") for by in ("SIGTERM", "SIGHUP")],
)
def test_nothing_is_left_of_a_command_whose_first_process_is_ended(folder, name, by):
    arguments, processes = COMMANDS[name]
    command = Command(folder, *arguments)
    try:
        command.wait(processes)
        if name in ("live", "watch"):
            assert command.process.stdout.readline().startswith(b"http://127.0.0.1:")
        os.kill(command.process.pid, getattr(signal, by))
        assert command.process.wait(10) == -getattr(signal, by)
        command.wait(0, 3.0)
    finally:
        command.end()


@pytest.mark.parametrize("name", ["live", "check"])
def test_nothing_is_left_of_a_command_whose_terminal_is_closed(folder, name):
    arguments, processes = COMMANDS[name]
    command = Command(folder, *arguments, terminal=True)
    try:
        command.wait(processes)
        os.close(command.terminal)
        command.terminal = -1
        command.wait(0, 3.0)
    finally:
        command.end()


WITHOUT_PRCTL = """
import os, sys, time
sys.platform = PLATFORM
from tilewise.system.parent import forked
if forked() == 0:
    time.sleep(60)
    os._exit(0)
time.sleep(0.3)
os._exit(0)
"""


@pytest.mark.parametrize("platform", [sys.platform, "another"])
def test_a_child_ends_with_its_parent_on_every_system(tmp_path, platform):
    command = Command(tmp_path, "-", "x", code=WITHOUT_PRCTL.replace("PLATFORM", repr(platform)))
    try:
        assert command.process.wait(20) == 0
        command.wait(0, 3.0)
    finally:
        command.end()


def test_a_child_whose_parent_has_ended_before_it_looks_ends_at_once():
    from tilewise.system.parent import end_with

    child = os.fork()
    if child == 0:
        end_with(os.getpid())  # not its parent's number: as if that had ended
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 128 + signal.SIGTERM
