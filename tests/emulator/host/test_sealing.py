"""While a program runs no page of its process is both writable and executable."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tilewise.emulator.host.runtime.sealing import MAPS, writable_code

PROGRAM = r"""#include <cstdio>
#include <unistd.h>
__global__ void k(int* a) { a[threadIdx.x] = threadIdx.x; printf("%d", (int)threadIdx.x); }
int main() {
  sleep(1);
  int *d, h[4]; cudaMalloc(&d, 16); k<<<1, 4>>>(d); cudaMemcpy(h, d, 16, cudaMemcpyDeviceToHost); cudaFree(d);
  sleep(2);
  printf(" %d\n", h[3]);
}
"""
# the runtime's `sleep` prints the mappings of the process; a compiled kernel (interpret = 0) needs new stubs
INSIDE = """
import sys
from tilewise.emulator.host.options import Options
from tilewise.emulator.host.running import build, execute
from tilewise.emulator.host.runtime.sealing import writable_code
from tilewise.emulator.host.runtime.session import FUNCTIONS
FUNCTIONS["sleep"] = lambda s, n: print("mapped", n, writable_code(), file=sys.stderr, flush=True) or 0
session, text = build(sys.argv[1], Options(interpret=0.0), lambda document: print(document["ended"], file=sys.stderr))
execute(session, text, [], "./program", lambda: None)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell what is mapped")
def test_no_page_is_both_writable_and_executable(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text(PROGRAM)
    done = subprocess.run([sys.executable, "-c", INSIDE, str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr.split("\n")[:3] == ["mapped 1 []", "mapped 2 []", "exit"]
    assert done.stdout == "0123 3\n"


def test_writable_code_is_detected(tmp_path, monkeypatch):
    rows = tmp_path / "maps"
    rows.write_text("1000-3000 rwxp 0 0:0 0\n4000-5000 rw-p 0 0:0 0\n5000-6000 r-xp 0 0:0 0 /lib/x\n")
    monkeypatch.setattr("tilewise.emulator.host.runtime.sealing.MAPS", str(rows))
    assert writable_code() == [(0x1000, 0x3000)]
    assert MAPS == "/proc/self/maps"
