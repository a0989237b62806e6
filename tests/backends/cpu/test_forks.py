"""A fork at any moment: the child multiplies and compiles, whatever other threads of its parent were doing."""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import random
import sys
import threading
import time
import types

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed
from tilewise.system.forks import PATIENCE
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
    seed = next_seed() % 10**9
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


@pytest.mark.slow  # one fork of these takes 4 s; the two below meet a compilation and an import at a known moment
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forks beside threads are what is tested
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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_waits_for_an_import_that_wants_what_forks_take(monkeypatch, tmp_path):
    """Logging's lock, which its own hook takes at a fork, and LLVM's."""
    (tmp_path / "slowly_imported.py").write_text(
        "import logging, sys, time\n"
        "from tilewise.system.llvm_lock import LLVM\n"
        "sys.started.set()\n"
        "time.sleep(0.2)\n"
        "logging.getLogger('tilewise.slowly')\n"
        "with LLVM:\n"
        "    whole = True\n"
    )
    monkeypatch.setattr(tw, "__path__", [*tw.__path__, str(tmp_path)])
    monkeypatch.setattr(sys, "started", threading.Event(), raising=False)
    thread = threading.Thread(target=lambda: importlib.import_module("tilewise.slowly_imported"))
    thread.start()
    assert sys.started.wait(30)
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        os._exit(0 if hasattr(sys.modules["tilewise.slowly_imported"], "whole") else 1)
    assert time.monotonic() - start < PATIENCE / 2
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
    del sys.modules["tilewise.slowly_imported"]


def test_a_module_that_another_thread_is_importing_is_none_yet(monkeypatch):
    """A product beside a thread that imports torch, or NumPy's masked arrays."""
    for name in ("torch", "cupy", "jax", "numpy.ma", "scipy.sparse", "zarr", "dask.array"):
        half = types.ModuleType(name)
        half.__spec__ = importlib.machinery.ModuleSpec(name, None)
        half.__spec__._initializing = True
        monkeypatch.setitem(sys.modules, name, half)
    for kind in (float, np.float32):
        x = np.asarray([[3.0]], kind).view(type("Own", (np.ndarray,), {}))  # a class that was never met
        assert tw.matmul(x, x) == 9
        assert tw.closure(x, semiring="max_min") is not None
