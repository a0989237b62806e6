"""One process at a time makes an output, in a private folder, and only regular files are replaced."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed
from tilewise.cli.main import run
from tilewise.emulator.budget import Exhausted
from tilewise.errors import FileError
from tilewise.system import files
from tilewise.system.files import PosixFiles
from tilewise.system.lock import BusyError, Lock
from tilewise.system.output import Output, check_output, write_whole

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX")


class NoLocks(PosixFiles):
    """A network file system without a lock daemon."""

    def lock(self, file):
        return None


@pytest.fixture
def no_locks():
    before = files.use(NoLocks())
    yield
    files.use(before)


def test_a_second_one_is_refused_with_pid_and_time_and_touches_nothing(tmp_path):
    place = Output(tmp_path / "C.npy").open()
    place.journal.write_text("mine")
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    with pytest.raises(
        BusyError, match=rf"C.npy is being made by process {os.getpid()}, since 2\d{{3}}-\d\d-\d\d \d\d:"
    ):
        Output(tmp_path / "C.npy").open()
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before
    place.close()
    Output(tmp_path / "C.npy").open().discard()
    assert list(tmp_path.iterdir()) == []


def test_where_there_are_no_locks_the_file_is_the_lock(tmp_path, no_locks):
    first = Lock(tmp_path / "lock", "C.npy")
    first.take()
    with pytest.raises(BusyError, match=f"process {os.getpid()}"):
        Lock(tmp_path / "lock", "C.npy").take()
    first.remove()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    owner = {"pid": gone.pid, "host": platform.node(), "since": time.time()}
    (tmp_path / "lock").write_text(json.dumps(owner))
    Lock(tmp_path / "lock", "C.npy").take()  # its process is gone
    for other in ({**owner, "host": "elsewhere"}, {"pid": "?"}, []):
        (tmp_path / "lock").write_text(json.dumps(other))
        with pytest.raises(BusyError):
            Lock(tmp_path / "lock", "C.npy").take()


RACE = """
import sys, time
from pathlib import Path
from tilewise.errors import FileError
from tilewise.system.output import Output
log = open(sys.argv[2], "ab", buffering=0)
end = time.monotonic() + 1.0
while time.monotonic() < end:
    try:
        with Output(Path(sys.argv[1])) as place:
            log.write(b"+"); time.sleep(0.001); log.write(b"-")
            place.write(b"x" * 1000)
    except FileError:
        pass
"""


def test_never_two_at_once_though_lock_files_come_and_go(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(Path(tw.__file__).parents[1])}
    arguments = [sys.executable, "-c", RACE, str(tmp_path / "C.bin"), str(tmp_path / "log")]
    racers = [subprocess.Popen(arguments, env=environment) for _ in range(3)]
    assert [racer.wait(180) for racer in racers] == [0] * 3
    log = (tmp_path / "log").read_bytes()
    assert len(log) >= 6  # in a second, however many processes run beside
    assert log == b"+-" * (len(log) // 2)
    assert (tmp_path / "C.bin").read_bytes() == b"x" * 1000
    assert sorted(p.name for p in tmp_path.iterdir()) == ["C.bin", "log"]


@posix
def test_what_is_no_file_is_refused_and_stays(tmp_path):
    os.mkfifo(tmp_path / "fifo.npy")
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "folder.zarr").mkdir()
    (tmp_path / "folder.zarr" / "thesis").write_text("precious")
    os.symlink("/dev/null", tmp_path / "null.npy")
    os.symlink("loop.npy", tmp_path / "loop.npy")
    for name, message in (
        ("fifo.npy", "is a FIFO, which is not replaced"),
        ("folder.npy", "is a folder"),
        ("null.npy", "is a device"),
        ("loop.npy", "leads nowhere|cannot be written|is a link"),
        ("folder.zarr", "is a folder, but no Zarr array"),
        ("C.txt", r"must end in \.npy or \.zarr"),
        ("C", r"must end in \.npy or \.zarr"),
        ("none/C.npy", "the folder .*none does not exist"),
    ):
        with pytest.raises(FileError, match=message):
            Output(tmp_path / name, (".npy", ".zarr")).open()
    assert (tmp_path / "folder.zarr" / "thesis").read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "fifo.npy", "folder.npy", "folder.zarr", "loop.npy", "null.npy"
    ]  # fmt: skip


@posix
def test_planted_links_are_not_followed(tmp_path):
    (tmp_path / "thesis").write_text("precious")
    place = tmp_path / ".C.npy.tilewise"
    os.symlink(".", place)
    with pytest.raises(FileError, match=r"is no folder, and .*C.npy is made there"):
        Output(tmp_path / "C.npy").open()
    place.unlink()
    place.mkdir()
    for name in ("part.npy", "journal"):
        os.symlink("../thesis", place / name)
    np.save(tmp_path / "A.npy", np.eye(3))
    arguments = ["multiply", str(tmp_path / "A.npy"), str(tmp_path / "A.npy"), "-o", str(tmp_path / "C.npy")]
    for more in ([], ["--memory", "2GB"], ["--memory", "2GB", "--restart"]):
        run([*arguments, *more])
    os.symlink("../thesis", place / "lock") if place.is_dir() else None
    run(arguments)
    assert (tmp_path / "thesis").read_text() == "precious"


@posix
def test_a_folder_of_another_user_is_not_used(tmp_path, monkeypatch):
    (tmp_path / ".C.npy.tilewise").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 987654)
    with pytest.raises(FileError, match="belongs to another user"):
        Output(tmp_path / "C.npy").open()


@posix
def test_an_output_that_is_a_link_is_made_beside_its_target(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "real.npy").write_bytes(b"old")
    os.symlink("disk/real.npy", tmp_path / "C.npy")
    with Output(tmp_path / "C.npy") as place:
        assert place.part.parent.parent == (tmp_path / "disk").resolve()
        place.write(b"new")
    assert (tmp_path / "C.npy").is_symlink()
    assert (tmp_path / "disk" / "real.npy").read_bytes() == b"new"
    assert (check_output(tmp_path / "C.npy")) == (tmp_path / "disk" / "real.npy").resolve()


class Recorded(PosixFiles):
    def __init__(self):
        super().__init__()
        self.did, self.names = [], {}

    def create(self, path):
        file = super().create(path)
        self.names[file] = path.name
        return file

    def sync(self, file):
        self.did.append(("sync", self.names.get(file)))
        super().sync(file)

    def replace(self, source, target):
        self.did.append(("replace", source.name))
        super().replace(source, target)

    def sync_folder(self, folder):
        self.did.append(("folder", folder.name))
        super().sync_folder(folder)


def test_every_rename_comes_after_a_sync_and_before_one(tmp_path, monkeypatch):
    monkeypatch.setattr("tilewise.scale.files.memory_now", lambda: 10**8)  # however large this process has grown
    before = files.use(recorded := Recorded())
    try:
        write_whole(tmp_path / "page.html", "<p>")
        np.save(tmp_path / "A.npy", np.eye(3))
        A, C = str(tmp_path / "A.npy"), str(tmp_path / "C.npy")
        assert run(["multiply", A, A, "-o", C]) == 0
        assert run(["multiply", A, A, "-o", C, "--memory", "2GB"]) == 0
        assert run(["closure", A, "-o", C, "--memory", "2GB"]) == 0
    finally:
        files.use(before)
    renames = [i for i, (what, _) in enumerate(recorded.did) if what == "replace"]
    assert len(renames) == 4
    for i in renames:
        assert ("sync", recorded.did[i][1]) in recorded.did[:i]
        assert recorded.did[i + 1] == ("folder", tmp_path.name)


def test_zarr_chunks_are_synced_by_name_and_a_failing_disk_raises(tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    from tilewise.algebra.dtypes import DTYPES
    from tilewise.scale.targets import ZarrTarget

    with Output(tmp_path / "C.zarr", (".zarr",)) as place:
        target = ZarrTarget(place.path, place.part, (50, 50), DTYPES["float64"], chunk=20)
        target.begin()
        target.write(slice(0, 20), slice(0, 50), np.ones((20, 50)))
        synced = []
        monkeypatch.setattr("tilewise.scale.targets._sync_file", lambda path: synced.append(path))
        target.sync()
        assert sorted(p.relative_to(place.part).as_posix() for p in synced) == ["c/0/0", "c/0/1", "c/0/2"]

        def broken(path):
            raise OSError(5, "Input/output error")

        monkeypatch.setattr("tilewise.scale.targets._sync_file", broken)
        target.write(slice(20, 40), slice(0, 50), np.ones((20, 50)))
        with pytest.raises(FileError, match=r"C.zarr cannot be written: Input/output error"):
            target.sync()
    assert zarr


def start(folder, *arguments):
    environment = os.environ | {"PYTHONPATH": str(Path(tw.__file__).parents[1])}
    command = [sys.executable, "-m", "tilewise", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


COMMANDS = {
    "multiply": ["multiply", "A.npy", "A.npy", "-o", "C.npy"],
    "memory": ["multiply", "A.npy", "A.npy", "-o", "C.npy", "--memory", "1GB"],
    "restart": ["multiply", "A.npy", "A.npy", "-o", "C.npy", "--memory", "1GB", "--restart"],
    "cluster": ["multiply", "A.npy", "A.npy", "-o", "C.npy", "--cluster", "local"],
    "closure": ["closure", "A.npy", "-o", "C.npy"],
    "closure --memory": ["closure", "A.npy", "-o", "C.npy", "--memory", "2GB"],
    "predecessors": ["closure", "A.npy", "--predecessors", "C.npy"],
    "explore": ["explore", "-o", "C.npy", "--no-open"],
}


@pytest.mark.slow  # a product of 3,000² is stopped; the other tests of this file have the lock
@posix
def test_every_command_leaves_another_run_s_output_alone(tmp_path, capsys, monkeypatch):
    """The first run is stopped in the middle of its work, as a debugger or a full machine would stop it."""
    rng = np.random.default_rng(next_seed())
    np.save(tmp_path / "A.npy", rng.random((3000, 3000)).astype(np.float32))
    first = start(tmp_path, "multiply", "A.npy", "A.npy", "-o", "C.npy", "--memory", "230MB")
    place = tmp_path / ".C.npy.tilewise"
    try:
        end = time.monotonic() + 60
        while not (place / "journal").exists() and time.monotonic() < end and first.poll() is None:
            time.sleep(0.005)
        first.send_signal(signal.SIGSTOP)
        about = {p.name: (p.stat().st_ino, p.stat().st_size) for p in place.iterdir()}
        monkeypatch.chdir(tmp_path)
        for command, arguments in COMMANDS.items():
            assert run(arguments) == 2, command
            assert re.search(rf"C.npy is being made by process {first.pid}, since 2", capsys.readouterr().err)
            assert {p.name: (p.stat().st_ino, p.stat().st_size) for p in place.iterdir()} == about
        first.send_signal(signal.SIGCONT)
        _, err = first.communicate(timeout=120)
        assert first.returncode == 0, err
    finally:
        if first.poll() is None:
            first.kill()
            first.communicate()
    A = np.load(tmp_path / "A.npy")
    np.testing.assert_allclose(np.load(tmp_path / "C.npy")[::97], A[::97] @ A, rtol=1e-4)


def test_an_interrupt_while_the_lock_is_signed_leaves_it_free(tmp_path, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Lock, "_sign", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Output(tmp_path / "C.npy").open()
    Output(tmp_path / "C.npy").open().discard()


class StopsAfterTheLock(PosixFiles):
    """The limit's stop comes at any step, and so right after the lock's file was closed."""

    def __init__(self, place):
        self.place, self.stopped = place, False

    def close(self, file):
        mine = file == self.place._lock._file or self.place._lock._file < 0
        super().close(file)
        if mine and not self.stopped:
            self.stopped = True
            raise Exhausted


@posix
def test_a_stop_while_the_lock_is_let_go_leads_to_no_second_close(tmp_path):
    place = Output(tmp_path / "page.html").open()
    system = StopsAfterTheLock(place)
    before = files.use(system)
    try:
        with pytest.raises(Exhausted):
            place.discard()
        place.close()
    finally:
        files.use(before)
    assert list(tmp_path.iterdir()) == []
