"""File operations of each system: POSIX here, Windows with fakes of its calls."""

from __future__ import annotations

import os
import sys
import threading
import types

import numpy as np
import pytest

from seeds import next_seed
from tilewise.errors import FileError
from tilewise.scale import files as product_files
from tilewise.scale.files import FileProduct
from tilewise.system import files
from tilewise.system.files import PosixFiles, WindowsFiles

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX")


class Msvcrt(types.ModuleType):
    """Locks of one byte range, by file, as Windows' C library has them."""

    LK_NBLCK = 2

    def __init__(self):
        super().__init__("msvcrt")
        self.held = {}

    def locking(self, file, mode, count):
        about = os.fstat(file)
        key = (about.st_ino, os.lseek(file, 0, os.SEEK_CUR))
        if self.held.get(key, file) != file:
            raise OSError(36, "Resource deadlock avoided")
        self.held[key] = file


class FakeWindows(WindowsFiles):
    """Windows' calls: without those it lacks, and open files cannot be removed or replaced."""

    def __init__(self):
        super().__init__()
        self.open_files = {}

    def _track(self, file, path):
        self.open_files[file] = os.path.realpath(path)
        return file

    def open(self, path):
        return self._track(super().open(path), path)

    def create(self, path):
        return self._track(super().create(path), path)

    def reopen(self, path):
        return self._track(super().reopen(path), path)

    def close(self, file):
        self.open_files.pop(file, None)
        super().close(file)

    def _closed(self, path):
        if os.path.realpath(path) in self.open_files.values():
            raise PermissionError(13, f"in use: {path}")

    def remove(self, path):
        if os.path.exists(path):
            self._closed(path)
        super().remove(path)

    def replace(self, source, target):
        self._closed(source)
        self._closed(target)
        super().replace(source, target)


@pytest.fixture
def windows(monkeypatch):
    monkeypatch.setitem(sys.modules, "msvcrt", Msvcrt())
    for name in ("pread", "preadv", "pwrite", "posix_fallocate", "fdatasync"):
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.setattr("tilewise.system.lock.WINDOWS", True)
    before = files.use(FakeWindows())
    yield files.here()
    files.use(before)


@pytest.mark.parametrize("system", [PosixFiles, WindowsFiles])
def test_many_threads_read_and_write_one_file_at_positions(tmp_path, system):
    here = system()
    file = here.create(tmp_path / "x")
    data = np.random.default_rng(next_seed()).integers(0, 256, 8 * 4096).astype(np.uint8)

    def work(number):
        part = data[number * 4096 : (number + 1) * 4096]
        for at in range(0, 4096, 128):
            assert here.write_at(file, part[at : at + 128].data, number * 4096 + at) == 128
        for at in range(0, 4096, 128):
            got = bytearray(128)
            assert here.read_at(file, memoryview(got), number * 4096 + at) == 128
            assert bytes(got) == part[at : at + 128].tobytes()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    here.close(file)
    assert (tmp_path / "x").read_bytes() == data.tobytes()


@posix
def test_links_fifos_and_devices_are_not_opened(tmp_path):
    here = files.here()
    (tmp_path / "real").write_bytes(b"precious")
    os.symlink("real", tmp_path / "link")
    os.link(tmp_path / "real", tmp_path / "twin")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "twin"):
        with pytest.raises(OSError):  # noqa: PT011
            here.reopen(tmp_path / name)
        with pytest.raises(FileExistsError):
            here.create(tmp_path / name)
    with pytest.raises(FileError, match="fifo is a FIFO, not a file"):
        here.open(tmp_path / "fifo")
    with pytest.raises(FileError, match="null is a device, not a file"):
        here.open(type(tmp_path)("/dev/null"))
    assert (tmp_path / "real").read_bytes() == b"precious"


def test_a_product_of_files_with_windows_calls(tmp_path, windows, monkeypatch):
    monkeypatch.setattr(product_files, "resident", lambda *_: (0, 0))
    monkeypatch.setattr(product_files, "SPARE", 0)
    monkeypatch.setattr(product_files, "LEAST_TILE", (1, 1, 1))
    rng = np.random.default_rng(next_seed())
    A, B = rng.integers(0, 9, (300, 200)).astype(np.float32), rng.integers(0, 9, (200, 250)).astype(np.float32)
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "B.npy", B)
    (tmp_path / "C.npy").write_bytes(b"old")

    def job():
        return FileProduct(tmp_path / "A.npy", tmp_path / "B.npy", tmp_path / "C.npy", memory=300_000)

    first = job()
    with pytest.raises(FileError, match="is being made by"):
        job()
    first.run()
    np.testing.assert_array_equal(np.load(tmp_path / "C.npy"), A @ B)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["A.npy", "B.npy", "C.npy"]
    assert windows.open_files == {}


def test_windows_waits_for_who_reads_the_old_file(tmp_path, monkeypatch):
    tries = []

    def busy(source, target, replace=os.replace):
        tries.append(1)
        if len(tries) < 3:
            raise PermissionError(13, "in use")
        replace(source, target)

    monkeypatch.setattr(os, "replace", busy)
    (tmp_path / "new").write_bytes(b"new")
    WindowsFiles().replace(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old").read_bytes() == b"new"
    assert len(tries) == 3
