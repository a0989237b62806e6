"""Faults in the process, one function each: given a folder with A.npy and B.npy, something goes wrong and the product
is made again. Each gives back the bytes of C.npy at the end."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import threading
import time

import numpy as np

import tilewise as tw
from crashes import Recorder, play
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
    """Everything that an undisturbed run does to files; the folder is unchanged."""
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
    """Bytes of the journal, the part or the saved sums change, or are cut off, while no process works on it."""
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
