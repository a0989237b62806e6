"""A budget stops the call it was given for, and nothing after it."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time

import pytest

from seeds import next_seed, sample_size
from tilewise.emulator import budget
from tilewise.emulator.limits import Limits
from tilewise.errors import LimitError


def watchdogs():
    return [thread for thread in threading.enumerate() if thread.name == "tilewise budget"]


def run_forever():
    while True:
        sum(range(1000))


def busy(seconds):
    """In its own frame: what CPython 3.13 raises at a backward jump skips the `with` of the same frame."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def assert_no_later_stop(seconds=0.6):
    """A watchdog that was left behind would stop this loop."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))
    assert not watchdogs()


def test_a_budget_used_up_while_it_is_entered(monkeypatch):
    """A busy machine is slow to start the watchdog; `Exhausted` is raised inside the call, not before."""
    start = threading.Thread.start

    def slow(thread):
        start(thread)
        for _ in range(100):
            time.sleep(0.001)

    monkeypatch.setattr(threading.Thread, "start", slow)
    with pytest.raises(LimitError, match=r"0\.01 s were used up"), budget.within(Limits(seconds=0.01)):
        run_forever()
    monkeypatch.undo()
    assert_no_later_stop()


def test_budgets_used_up_as_their_call_ends(monkeypatch):
    monkeypatch.setattr(budget, "FOREIGN_POLLS", 1)  # `busy` is outside the package
    seed = next_seed() % 10**9
    print("seed", seed)
    chance, stopped = random.Random(seed), 0

    def call():
        with budget.within(Limits(seconds=0.01)):
            busy(chance.uniform(0.005, 0.04))

    for _ in range(sample_size(60)):
        try:
            call()
        except LimitError:
            stopped += 1
    assert stopped > 0
    assert_no_later_stop()


def test_a_watchdog_left_behind_does_not_stop_the_thread(monkeypatch):
    """`Exhausted` raised as `__exit__` begins, before `close`: it is not raised again."""
    monkeypatch.setattr(budget.Budget, "close", lambda self: (_ for _ in ()).throw(budget.Exhausted()))

    def call():
        with budget.within(Limits(seconds=0.05)):
            pass

    with pytest.raises(LimitError):
        call()
    monkeypatch.undo()
    assert_no_later_stop()
    with pytest.raises(LimitError, match=r"0\.03 s were used up"), budget.within(Limits(seconds=0.03)):
        run_forever()  # the next call has a budget of its own
    assert_no_later_stop()


def test_a_budget_whose_call_was_left_without_its_exit_is_not_shared(monkeypatch):
    monkeypatch.setattr(budget, "FOREIGN_POLLS", 1)

    entered = budget.within(Limits(seconds=60))

    def left():
        entered.__enter__()

    left()
    with pytest.raises(LimitError, match=r"0\.03 s were used up"), budget.within(Limits(seconds=0.03)):
        busy(5)
    entered._budget.close()  # its watchdog would be taken for one that another test left behind, for a minute


def test_waiting_for_a_pipe_counts_as_time(tmp_path):
    """Time waiting for a pipe counts; time without a core, and waiting for a terminal, does not."""
    (tmp_path / "waits.cu").write_text('#include <stdio.h>\nint main() { int n; scanf("%d", &n); return n; }\n')
    program = subprocess.Popen(
        [sys.executable, "-m", "tilewise", "run", "--limit-time", "1", str(tmp_path / "waits.cu")],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    _, said = program.communicate(timeout=60) if program.wait(60) else ("", "")
    assert program.returncode == 4
    assert "took longer than 1 s: --limit-time raises it" in said


def test_a_call_ends_under_a_profiler():
    """Coverage, cProfile and debuggers set one. A withdrawn exception made CPython 3.11 loop forever under it."""
    program = """
import sys
from tilewise.emulator import budget
from tilewise.emulator.limits import Limits
sys.setprofile(lambda *event: None)
for _ in range(3):
    with budget.within(Limits(seconds=60)):
        sum(range(10))
print(sum(range(10)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "45\n", done.stderr
