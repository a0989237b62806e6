"""A fork at any moment: the child multiplies and compiles, whatever other threads of its parent were doing."""

from __future__ import annotations

import os
import random
import threading
import time

import numpy as np
import pytest

import tilewise as tw
from tilewise.system.llvm_lock import LLVM

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")


def fresh(number):
    """A semiring that nothing was compiled for yet."""
    return tw.Semiring(
        f"own_{number}", add=tw.maximum, mul=lambda x, y: x + y + number % 97 - number % 89, zero=-np.inf
    )


def forked(number):
    """A child that works; its exit code, or −1 if it hangs."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            x = np.full((130, 130), 2.0)
            right = (tw.matmul(x, x) == x @ x).all() and (tw.matmul(x, x, semiring=f"{'min_plus'}") == 4).all()
            tw.matmul(x, x, semiring=fresh(10**6 + number))
            code = 0 if right else 2
        finally:
            os._exit(code)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -1


def fork_often(count, monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / "cache"))
    seed = time.time_ns() % 10**9
    chance = random.Random(seed)
    print("seed", seed)
    stop = threading.Event()

    def compiles():
        number = 0
        while not stop.is_set():
            number += 1
            x = np.ones((40, 40))
            tw.matmul(x, x, semiring=fresh(number))

    def multiplies():
        x = np.ones((300, 300), np.float32)
        while not stop.is_set():
            tw.matmul(x, x)

    threads = [threading.Thread(target=work, daemon=True) for work in (compiles, multiplies, multiplies)]
    for thread in threads:
        thread.start()
    codes = []
    try:
        for number in range(count):
            time.sleep(chance.random() * 0.05)
            codes.append(forked(number))
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert codes == [0] * count


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forks beside threads are what is tested
def test_forks_at_random_moments_under_load(monkeypatch, tmp_path):
    fork_often(2, monkeypatch, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_500_forks_at_random_moments_under_load(monkeypatch, tmp_path):
    fork_often(500, monkeypatch, tmp_path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_waits_for_a_compilation_in_another_thread():
    held, go = threading.Event(), threading.Event()

    def compiling():
        with LLVM:
            held.set()
            go.wait(10)

    thread = threading.Thread(target=compiling)
    thread.start()
    held.wait(10)
    threading.Timer(0.3, go.set).start()
    start = time.monotonic()
    assert forked(0) == 0
    assert time.monotonic() - start > 0.2
    thread.join()
