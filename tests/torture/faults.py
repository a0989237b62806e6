"""The faults, one function each: given a folder with A.npy and B.npy, something goes wrong and the product is made
again. Each gives back the bytes of C.npy at the end."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from crashes import Recorder, play

import tilewise as tw
from tilewise.errors import FileError, TilewiseError
from tilewise.scale.files import FileProduct
from tilewise.scale.schedule import Level
from tilewise.system import files
from tilewise.system.files import PosixFiles
from tilewise.system.lock import BusyError

LEVEL = Level("test", 1e9, 5e8, 1e11)
MEMORY = 150_000


class Stop(BaseException):
    """As abrupt as a signal."""


def job(folder, **how):
    return FileProduct(folder / "A.npy", folder / "B.npy", folder / "C.npy", memory=MEMORY, level=LEVEL, **how)


def again(folder):
    """The product after whatever happened; where it is refused with a hint, the hint is taken."""
    try:
        job(folder).run()
    except FileError as error:
        if "--restart" not in str(error):
            raise
        job(folder).run(restart=True)
    return (folder / "C.npy").read_bytes()


class Failing(PosixFiles):
    """Everything that changes a file fails from some point on, or once."""

    def __init__(self, after, code, once):
        super().__init__()
        self.left, self.code, self.once = after, code, once

    def _count(self):
        self.left -= 1
        if self.left < 0 and not (self.once and self.left < -1):
            if self.code is None:
                raise Stop
            raise OSError(self.code, os.strerror(self.code))

    def create(self, path):
        self._count()
        return super().create(path)

    def write_at(self, file, memory, offset):
        self._count()
        return super().write_at(file, memory, offset)

    def sync(self, file):
        self._count()
        super().sync(file)

    def replace(self, source, target):
        self._count()
        super().replace(source, target)


def _failing(folder, chance, code, once):
    before = files.use(Failing(chance.randrange(700), code, once))
    try:
        job(folder).run()
    except (TilewiseError, OSError, Stop):
        pass
    finally:
        files.use(before)
    return again(folder)


def full_disk(folder, chance):
    return _failing(folder, chance, errno.ENOSPC, once=False)


def failing_disk(folder, chance):
    return _failing(folder, chance, errno.EIO, once=True)


def read_only(folder, chance):
    return _failing(folder, chance, errno.EROFS, once=False)


def stopped(folder, chance):
    return _failing(folder, chance, None, once=True)


def recorded(folder):
    """Everything that an undisturbed run does to files; the folder is as before."""
    before = files.use(Recorder(folder))
    try:
        job(folder).run()
        return files.here().log
    finally:
        files.use(before)
        clear(folder)


def clear(folder):
    """Only the operands stay, untouched: copies would have other times."""
    shutil.rmtree(folder / ".C.npy.tilewise", ignore_errors=True)
    (folder / "C.npy").unlink(missing_ok=True)


_records = {}


def crash(folder, chance):
    """The machine stops at a random point of a record; what was not synced is lost at random."""
    key = (folder / "A.npy").stat().st_ctime_ns
    if key not in _records:
        _records.clear()
        _records[key] = recorded(folder)
    log = _records[key]
    play(log[: chance.randrange(len(log) + 1)], folder, chance)
    return again(folder)


def damage(folder, chance):
    """Bytes of the journal, the part or the saved sums change, or are cut off, while nobody works."""
    _stop_somewhere(folder, chance)
    for path in (folder / ".C.npy.tilewise").glob("*") if (folder / ".C.npy.tilewise").is_dir() else []:
        if path.name != "lock" and chance.random() < 0.6:
            data = bytearray(path.read_bytes())
            if data and chance.random() < 0.7:
                for _ in range(chance.randint(1, 8)):
                    data[chance.randrange(len(data))] = chance.randrange(256)
            else:
                data = data[: chance.randrange(len(data) + 1)]
            path.write_bytes(data)
    return again(folder)


def changed_operand(folder, chance):
    """An operand changes and its time is put back: never a product of both."""
    _stop_somewhere(folder, chance)
    path, about = folder / "A.npy", (folder / "A.npy").stat()
    original = path.read_bytes()
    data = bytearray(original)
    data[chance.randrange(200, len(data))] ^= 1 << chance.randrange(3)
    path.write_bytes(data)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    if (folder / ".C.npy.tilewise" / "journal").exists():
        try:
            job(folder).run()
        except FileError as error:
            if "changed" not in str(error):
                raise
        else:
            got, right = np.load(folder / "C.npy"), np.load(folder / "A.npy") @ np.load(folder / "B.npy")
            np.testing.assert_allclose(got, right, rtol=1e-4)
    path.write_bytes(original)
    job(folder).run(restart=True)
    return (folder / "C.npy").read_bytes()


def clock_jump(folder, chance):
    """The clock of the machine jumps by years, to and fro, while it works."""
    real, jump = time.time, [0.0]
    time.time = lambda: real() + jump[0]
    stop = threading.Event()

    def jumping():
        while not stop.wait(0.002):
            jump[0] = chance.uniform(-1, 1) * 10**9

    thread = threading.Thread(target=jumping)
    thread.start()
    try:
        _stop_somewhere(folder, chance)
        return again(folder)
    finally:
        stop.set()
        thread.join()
        time.time = real


def two_at_once(folder, chance):
    first = job(folder)
    for how in (False, True):
        try:
            job(folder).run(restart=how)
            raise AssertionError("two runs at once")
        except BusyError:
            pass
    first.run()
    return (folder / "C.npy").read_bytes()


def _stop_somewhere(folder, chance):
    before = files.use(Failing(chance.randrange(700), None, once=True))
    try:
        job(folder).run()
    except Stop:
        pass
    finally:
        files.use(before)


def fork(folder, chance):
    """A child made while products and the finisher run in threads."""
    thread = threading.Thread(target=lambda: job(folder).run())
    thread.start()
    time.sleep(chance.random() * 0.05)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            x = np.ones((80, 80))
            code = 0 if (tw.matmul(x, x) == 80).all() else 2
        finally:
            os._exit(code)
    end = time.monotonic() + 60
    while not (done := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            raise AssertionError("a forked child hangs")
        time.sleep(0.002)
    thread.join()
    assert os.waitstatus_to_exitcode(done[1]) == 0
    return (folder / "C.npy").read_bytes()


ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(tw.__file__).parents[1])}


def command(folder, *more, before=None):
    words = [sys.executable, "-m", "tilewise", "multiply", "A.npy", "B.npy", "-o", "C.npy", "--memory", "140MB", *more]
    return subprocess.Popen(
        words, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=before
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


def little_memory(folder, chance):
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
    words = [sys.executable, "-m", "tilewise", "multiply", "A.npy", "B.npy", "-o", "C.npy", "--cluster", "local"]
    process = subprocess.Popen(
        words, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    _begun(folder, process)
    time.sleep(chance.uniform(0.5, 4.0))
    workers = [pid for pid in _children(process.pid) if b"spawn" in _words(pid) or b"forkserver" in _words(pid)]
    if workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(workers), signal.SIGKILL)
    code, _ = _end(process)
    if code != 0:
        assert not (folder / "C.npy").exists()
        code, err = _end(command(folder))
        assert code == 0, err
    else:
        np.testing.assert_allclose(
            np.load(folder / "C.npy"), np.load(folder / "A.npy") @ np.load(folder / "B.npy"), rtol=1e-4
        )
        code, err = _end(command(folder))
        assert code == 0, err
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


def _words(pid):
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


INSIDE = {
    "machine stops (record played back)": (crash, 8),
    "stopped between two writes": (stopped, 4),
    "full disk": (full_disk, 4),
    "disk fails once": (failing_disk, 3),
    "remounted read-only": (read_only, 3),
    "journal, part or sums damaged": (damage, 6),
    "operand changed, time put back": (changed_operand, 3),
    "clock jumps": (clock_jump, 2),
    "two runs at once": (two_at_once, 2),
    "fork while it works": (fork, 2),
}
OUTSIDE = {
    "kill -9": (kill, 5),
    "SIGSTOP, a second run, SIGCONT": (stop_and_go_on, 3),
    "limit of memory": (little_memory, 2),
    "Dask worker killed": (worker_death, 1),
}
