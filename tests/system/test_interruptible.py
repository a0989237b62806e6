"""Ctrl-C while a kernel is compiled: it raises at once, and the compilation completes in the background."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from seeds import next_seed
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.backends.cuda import builders
from tilewise.errors import EngineError
from tilewise.planning import precompile as warming
from tilewise.system.interruptible import interruptible
from tilewise.system.llvm_lock import LLVM

TEXT = "define i64 @seven() {{ ret i64 {} }}"


def interrupt():
    os.kill(os.getpid(), signal.SIGINT) if os.name == "posix" else _thread.interrupt_main()


class Compiling:
    """A compiler that continues only on a signal; Ctrl-C is sent as soon as it has started."""

    def __init__(self, work):
        self.work, self.count, self.ended = work, 0, False
        self.begun, self.go_on = threading.Event(), threading.Event()
        threading.Thread(target=lambda: self.begun.wait(60) and interrupt()).start()

    def __call__(self, *arguments, **how):
        self.count += 1
        self.begun.set()
        assert self.go_on.wait(60)
        made = self.work(*arguments)
        self.ended = True
        return made


@pytest.fixture(autouse=True)
def default_sigint(tmp_path, monkeypatch):
    """SIGINT with Python's handler, and a cache for this test; threads are joined at the end."""
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / "cache"))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    end = time.monotonic() + 60  # not by join: a start that was interrupted may not have marked its thread as started
    while any(thread.name.startswith("tilewise compiles") for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def compiling(monkeypatch):
    made = Compiling(compile.object_code)
    monkeypatch.setattr(compile, "object_code", made)
    return made


def test_what_was_being_compiled_is_kept(compiling):
    text = TEXT.format(next_seed() % 10**9)
    with pytest.raises(KeyboardInterrupt):
        compile.load(text, host_target(), ("seven",))
    compiling.go_on.set()
    assert compile.load(text, host_target(), ("seven",))["seven"]  # waits for the one behind
    assert compiling.count == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_waits_for_a_compilation_that_was_left_alone(compiling):
    with pytest.raises(KeyboardInterrupt):
        compile.load(TEXT.format(1), host_target(), ("seven",))
    threading.Timer(0.2, compiling.go_on.set).start()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            again = compile.load(TEXT.format(2), host_target(), ("seven",))["seven"]
            code = 0 if again and compiling.ended else 2
        finally:
            os._exit(code)
    assert compiling.ended
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_work_that_waits_for_its_turn_and_is_left_alone_is_never_begun():
    done, go = [], threading.Event()

    def holds():
        with LLVM:
            held.set()
            go.wait(30)

    held = threading.Event()
    holder = threading.Thread(target=holds)
    holder.start()
    held.wait(30)
    threading.Timer(0.1, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: done.append(1), LLVM)
    go.set()
    holder.join()
    for thread in threading.enumerate():
        if thread.name == "tilewise compiles":
            thread.join(30)
    assert not done


def test_errors_come_back_and_other_threads_work_themselves():
    with pytest.raises(EngineError, match="LLVM refused"):
        compile.load("define void @f() { no such thing }", host_target(), ("f",))
    where = []
    thread = threading.Thread(target=lambda: interruptible(lambda: where.append(threading.current_thread()), LLVM))
    thread.start()
    thread.join()
    assert where == [thread]


def test_without_a_thread_to_be_had_it_works_itself(monkeypatch):
    def refuses(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuses)
    assert interruptible(threading.current_thread, LLVM) is threading.main_thread()


def test_the_kernels_of_a_card_are_left_alone_too(monkeypatch):
    made = Compiling(lambda source, arch: b"")
    monkeypatch.setattr(builders, "compile_source", made)
    monkeypatch.setattr(warming, "prefetched", lambda source, arch: False)
    monkeypatch.setattr(warming, "build_rest", lambda problem, arch: False)
    waited_for = threading.Timer(20, made.go_on.set)  # then the test fails, and ends
    waited_for.start()
    with pytest.raises(KeyboardInterrupt):
        warming.build_missing(["a", "b"], None, "sm_80")
    assert not made.ended
    waited_for.cancel()
    made.go_on.set()


@pytest.mark.skipif(os.name != "posix", reason="no signals here")
def test_a_program_that_ends_meanwhile_ends_well(tmp_path):
    """It waits for the compilation: no crash, no hang, and the code is kept."""
    program = (
        "import os, signal, threading\n"
        "from tilewise.backends.cpu.runtime import compile\n"
        "from tilewise.backends.cpu.runtime.target import host_target\n"
        "real = compile.object_code\n"
        "def interrupted(*given):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(*given)\n"
        "compile.object_code = interrupted\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"compile.load({TEXT.format(1)!r}, host_target(), ('seven',))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ran.returncode == -signal.SIGINT
    assert ran.stderr.rstrip().endswith("KeyboardInterrupt")
    assert len(list((tmp_path / "cache" / "llvm").iterdir())) == 1
