"""Limits of the machine, the container and the process, read from what each writes."""

from __future__ import annotations

import mmap
import resource
import subprocess
import sys

import pytest

from tilewise.errors import TooLargeError
from tilewise.system import memory


def system(root, cgroup, files, free_kb=10**9):
    (root / "proc" / "self").mkdir(parents=True)
    (root / "proc" / "self" / "cgroup").write_text(cgroup)
    (root / "proc" / "self" / "statm").write_text("5000 2000 1 1 0 1 0")
    (root / "proc" / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable: {free_kb} kB\n")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_cgroup_2_has_the_least_of_its_levels(tmp_path):
    limits = {"a/b/memory.max": "max", "a/memory.max": "500000000", "a/b/memory.current": "120000000"}
    files = {f"sys/fs/cgroup/{name}": text for name, text in limits.items()}
    files["sys/fs/cgroup/a/b/memory.stat"] = "anon 5\ninactive_file 20000000\n"
    root = system(tmp_path, "0::/a/b\n", files)
    assert memory.total(root) == (500_000_000, "the container's limit, memory.max")
    assert memory.available(root) == (400_000_000, "the container's limit, memory.max")
    assert memory.usual_budget(root) == 375_000_000


def test_cgroup_1(tmp_path):
    place = "sys/fs/cgroup/memory/docker/x"
    files = {f"{place}/memory.limit_in_bytes": "300000000", f"{place}/memory.usage_in_bytes": "50000000"}
    files["sys/fs/cgroup/memory/memory.limit_in_bytes"] = "9223372036854771712"
    root = system(tmp_path, "12:cpu,cpuacct:/docker/x\n5:memory:/docker/x\n", files)
    assert memory.total(root)[0] == 300_000_000
    assert memory.available(root)[0] == 250_000_000


def test_a_container_whose_path_is_not_there_has_the_mount_s_own_limit(tmp_path):
    root = system(tmp_path, "0::/../../gone\n", {"sys/fs/cgroup/memory.max": "100000000"})
    assert memory.total(root)[0] == 100_000_000


@pytest.mark.parametrize("cgroup", ["", "garbage", "0::/a\n", "1:name=systemd:/\n"])
def test_no_limit_is_none(tmp_path, cgroup):
    root = system(tmp_path, cgroup, {"sys/fs/cgroup/a/memory.max": "max\n"}, free_kb=123)
    assert memory.total(root)[1] in ("the machine's memory", "the process's limit, ulimit -v")
    assert memory.available(root) == (123 * 1024, "the machine's free memory")


def test_the_sentence_has_both_numbers(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda root=None: (100 * 2**20, "the container's limit, memory.max"))
    memory.check_room(10**7, "W.npy")
    with pytest.raises(
        TooLargeError, match=r"W.npy needs 90 MB of memory, and 71\.3 MB are available \(the container's"
    ):
        memory.check_room(9 * 10**7, "W.npy")


def test_windows_through_its_own_call(monkeypatch):
    class Kernel:
        def GlobalMemoryStatusEx(self, status):
            status._obj.total, status._obj.free = 16 * 10**9, 7 * 10**9
            return 1

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(memory.ctypes, "windll", type("Dll", (), {"kernel32": Kernel()})(), raising=False)
    assert memory._physical() == 16 * 10**9
    assert memory._free(None) == 7 * 10**9


def test_pages_are_the_system_s():
    assert memory.PAGE == mmap.PAGESIZE
    if sys.platform == "linux":
        assert memory.resident() > 10**6


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say how many addresses are in use")
def test_growth_is_limited_for_a_while():
    with memory.growth_limited(1 << 28):
        assert len(bytes(1 << 20)) == 1 << 20
        with pytest.raises(MemoryError):
            bytes(1 << 30)
    assert len(bytes(1 << 29)) == 1 << 29


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no getrusage")
def test_without_proc_the_most_memory_so_far_is_counted(tmp_path):
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (0 if sys.platform == "darwin" else 10)
    assert most <= memory.resident(tmp_path) <= most + (64 << 20)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux says which pages were written")
def test_pages_of_libraries_return_to_the_system_and_come_back():
    """LLVM's, when kernels are loaded: tens of MB. Another kernel is loaded afterwards, and compiled."""
    program = (
        "import numpy as np, tilewise as tw\n"
        "from tilewise.system.memory import release_library_pages, resident\n"
        "x = np.full((70, 70), 2.0)\n"
        "tw.matmul(x, x)\n"
        "before = resident()\n"
        "assert release_library_pages()\n"
        "assert before - resident() > 10 * 10**6, (before, resident())\n"
        "assert (tw.matmul(x, x) == 280).all()\n"
        "assert (tw.matmul(x, x, semiring=tw.Semiring('own', add=tw.maximum, mul=tw.minimum, zero=-1.0)) == 2).all()\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_pages_stay_where_the_system_does_not_report_written_ones(monkeypatch):
    monkeypatch.setattr(memory, "_libc", lambda: None)
    assert not memory.release_library_pages()
