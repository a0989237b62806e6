"""Faults from outside, one function each: a command is killed, stopped, starved or loses its workers, and run again.
Each gives back the bytes of C.npy at the end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import tilewise as tw

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(tw.__file__).parents[1])}


def command(folder, *more, before=None, arguments=("multiply", "A.npy", "B.npy", "-o", "C.npy", "--memory", "140MB")):
    arguments = [sys.executable, "-m", "tilewise", *arguments, *more]
    return subprocess.Popen(
        arguments, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=before
    )


def _end(process, seconds=300):
    _, err = process.communicate(timeout=seconds)
    return process.returncode, err.decode()


def _begun(folder, process):
    end = time.monotonic() + 60
    while not (folder / ".C.npy.tilewise").exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.002)


def kill(folder, chance):
    """kill -9 of a real process, a few times over, then the last one in peace."""
    for _ in range(chance.randint(1, 3)):
        process = command(folder)
        _begun(folder, process)
        time.sleep(chance.random() * 0.8)
        process.kill()
        _end(process)
    code, err = _end(command(folder))
    assert code == 0, err
    return (folder / "C.npy").read_bytes()


def _killed(folder, chance, arguments, place, seconds):
    """kill -9 of another command, a few times over; nothing under its name, or the whole of an earlier one."""
    for _ in range(chance.randint(1, 3)):
        process = command(folder, arguments=arguments)
        end = time.monotonic() + 60
        while not (folder / place).exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.002)
        time.sleep(chance.random() * seconds)
        process.kill()
        _end(process)
    code, err = _end(command(folder, arguments=arguments))
    assert code == 0, err


_closed = {}


def kill_closure(folder, chance):
    """A closure in a file, killed: it begins again, and its bytes are those of one in memory. Then C.npy, as ever."""
    arguments = ("closure", "W.npy", "-o", "D.npy", "--memory", "200MB")
    if folder not in _closed:
        rng = np.random.default_rng(1)
        W = np.where(rng.random((900, 900)) < 0.02, rng.integers(1, 9, (900, 900)), np.inf).astype(np.float32)
        np.save(folder / "W.npy", W)
        _closed[folder] = tw.closure(W)
    _killed(folder, chance, arguments, ".D.npy.tilewise", 1.0)
    np.testing.assert_array_equal(np.load(folder / "D.npy"), _closed[folder])
    assert not (folder / ".D.npy.tilewise").exists()
    (folder / "D.npy").unlink()
    return kill(folder, chance)


def kill_store(folder, chance):
    """A product into a Zarr array, killed; then the same bytes as ever."""
    import zarr

    arguments = ("multiply", "A.npy", "B.npy", "-o", "C.zarr", "--memory", "200MB")
    _killed(folder, chance, arguments, ".C.zarr.tilewise", 1.0)
    made = zarr.open(str(folder / "C.zarr"), mode="r")[:]
    assert not (folder / ".C.zarr.tilewise").exists()
    shutil.rmtree(folder / "C.zarr")
    np.save(folder / "C.npy", made)
    return (folder / "C.npy").read_bytes()


def container(folder, chance):
    """A limit of the container (cgroup 2): killed by it or refused or right, and right without it."""
    group = Path("/sys/fs/cgroup") / f"tilewise-torture-{os.getpid()}"
    group.mkdir(exist_ok=True)
    try:
        (group / "memory.max").write_text(str(int(chance.uniform(60e6, 400e6))))
        process = command(folder, before=lambda: (group / "cgroup.procs").write_text(str(os.getpid())))
        _end(process)
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()
    code, err = _end(command(folder))
    assert code == 0, err
    return (folder / "C.npy").read_bytes()


def has_cgroups():
    group = Path("/sys/fs/cgroup") / f"tilewise-asks-{os.getpid()}"
    try:
        group.mkdir()
        found = (group / "memory.max").exists()
        group.rmdir()
    except OSError:
        return False
    return found


def stop_and_go_on(folder, chance):
    """SIGSTOP, a second run that is refused, SIGCONT."""
    process = command(folder)
    _begun(folder, process)
    time.sleep(chance.random() * 0.3)
    process.send_signal(signal.SIGSTOP)
    if process.poll() is None and (folder / ".C.npy.tilewise").exists():
        code, err = _end(command(folder, "--restart"))
        assert code == 2, err
        assert f"process {process.pid}" in err, err
    process.send_signal(signal.SIGCONT)
    code, err = _end(process)
    assert code == 0, err
    return (folder / "C.npy").read_bytes()


def low_memory(folder, chance):
    """A limit of the process: it fits, or is refused; then without the limit."""
    import resource

    limit = int(chance.uniform(150e6, 900e6))
    process = command(folder, before=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    _end(process)
    code, err = _end(command(folder))
    assert code == 0, err
    return (folder / "C.npy").read_bytes()


def worker_death(folder, chance):
    """A Dask worker is killed; Dask makes another, or the command fails and leaves no output."""
    arguments = [sys.executable, "-m", "tilewise", "multiply", "A.npy", "B.npy", "-o", "C.npy", "--cluster", "local"]
    process = subprocess.Popen(
        arguments,
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    _begun(folder, process)
    time.sleep(chance.uniform(0.5, 4.0))
    workers = [pid for pid in _children(process.pid) if b"spawn" in _arguments(pid) or b"forkserver" in _arguments(pid)]
    if workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(workers), signal.SIGKILL)
    code, _ = _end(process)
    if code != 0:
        assert not (folder / "C.npy").exists()
        code, err = _end(command(folder))
        assert code == 0, err
    return (folder / "C.npy").read_bytes()


def scheduler_death(folder, chance):
    """The Dask scheduler is killed: a sentence and no output, and the next command is right."""
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file",
         "s.json"],
        cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    worker = None
    try:
        end = time.monotonic() + 60
        while not (folder / "s.json").exists() and time.monotonic() < end:
            time.sleep(0.05)
        address = json.loads((folder / "s.json").read_text())["address"]
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"],
            cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        process = command(folder, arguments=("multiply", "A.npy", "B.npy", "-o", "C.npy", "--cluster", address))
        _begun(folder, process)
        time.sleep(chance.uniform(0.0, 4.0))
        scheduler.kill()
        code, err = _end(process)
        if code != 0:
            assert not (folder / "C.npy").exists()
            assert "error: " in err, err
            assert "report it" not in err, err
            code, err = _end(command(folder))
            assert code == 0, err
    finally:
        for child in filter(None, (scheduler, worker)):
            child.kill()
            child.wait()
        (folder / "s.json").unlink(missing_ok=True)
        shutil.rmtree(folder / "dask-scratch-space", ignore_errors=True)
    return (folder / "C.npy").read_bytes()


def _children(pid):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            if parent == pid:
                found += [int(entry.name), *_children(int(entry.name))]
    return found


def _arguments(pid):
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


OUTSIDE = {
    "kill -9": (kill, 5),
    "kill -9 of a closure": (kill_closure, 3),
    "SIGSTOP, a second run, SIGCONT": (stop_and_go_on, 3),
    "limit of memory": (low_memory, 2),
}
if find_spec("zarr") and find_spec("distributed"):
    OUTSIDE |= {
        "kill -9 of a product into Zarr": (kill_store, 3),
        "Dask worker killed": (worker_death, 1),
        "Dask scheduler killed": (scheduler_death, 1),
    }
if has_cgroups():
    OUTSIDE["limit of the container"] = (container, 2)
