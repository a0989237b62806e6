"""A time limit counts what a process computes, not how long the machine made it wait."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tilewise.system.timing import CLOCK, Elapsed


def test_waiting_counts_a_fraction():
    elapsed = Elapsed()
    time.sleep(0.25)
    assert 0.25 / CLOCK <= elapsed.seconds() < 0.2


def test_computing_counts_whole():
    elapsed, start = Elapsed(), time.process_time()
    while time.process_time() - start < 0.1:
        pass
    assert elapsed.seconds() >= 0.1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a clock of another process")
def test_the_clock_of_another_process():
    text = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\nimport sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        elapsed = Elapsed(child.pid)
        child.stdout.readline()
        used = elapsed.seconds()
        time.sleep(0.2)
        assert 0.1 < used <= elapsed.seconds() < used + 0.2
        child.stdin.close()


def test_a_process_without_a_clock_is_measured_by_the_wall(monkeypatch):
    monkeypatch.delattr(time, "clock_gettime")
    elapsed = Elapsed(1)
    time.sleep(0.05)
    assert elapsed.seconds() >= 0.05
