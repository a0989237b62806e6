"""Products from file to file: right, within the budget, and never wrong after a kill, a full disk or a changed file."""

from __future__ import annotations

import errno
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tilewise as tw
from operands import values
from oracle import assert_product
from tilewise.backends.cpu.limits import host_machine
from tilewise.cli.main import run
from tilewise.core.problem import problem_of_shape
from tilewise.scale import files, host, journal, pieces, samples, sources, targets
from tilewise.scale.files import FileProduct
from tilewise.scale.journal import _decoded, _encoded
from tilewise.scale.schedule import Level

LEVEL = Level("test", 1e9, 5e8, 1e11)
MEMORY = 600_000


@pytest.fixture(autouse=True)
def small_process(monkeypatch):
    """Budgets of a few tiles: what the test process itself holds does not count."""
    monkeypatch.setattr(files, "resident", lambda *_: (0, 0))
    monkeypatch.setattr(files, "SPARE", 0)
    monkeypatch.setattr(files, "LEAST_TILE", (1, 1, 1))
    monkeypatch.setattr(files, "ZARR_BYTES", 0)
    monkeypatch.setattr(files, "TIGHT", 0)


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "A.npy", values((500, 300), "float32", 1))
    np.save(tmp_path / "B.npy", values((300, 400), "float32", 2))
    return tmp_path


def job(folder, output="C.npy", memory=MEMORY, **how):
    return FileProduct(folder / "A.npy", folder / "B.npy", folder / output, memory=memory, level=LEVEL, **how)


def operands(folder):
    return np.load(folder / "A.npy"), np.load(folder / "B.npy")


def left_behind(folder):
    return sorted(p.name for p in folder.iterdir() if p.name not in ("A.npy", "B.npy"))


class Stop(BaseException):
    """An exception like a kill by a signal: nothing handles it."""


def stop_after(monkeypatch, count, error=None):
    """The write of the count-th tile from now on fails."""
    write, seen = targets.NpyTarget.write, []

    def failing(self, rows, cols, part):
        seen.append(rows)
        if len(seen) > count:
            half = slice(rows.start, (rows.start + rows.stop) // 2)
            write(self, half, cols, part[: half.stop - half.start])  # half of it is written
            raise error or Stop
        write(self, rows, cols, part)

    monkeypatch.setattr(targets.NpyTarget, "write", failing)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "float16", ">f8", "int16", "bool"])
def test_files_of_any_dtype_and_order(tmp_path, dtype, order):
    name, memory = np.dtype(dtype).name, 50_000 * np.dtype(dtype).itemsize
    A, B = (values(s, name, i).astype(dtype, order=order) for i, s in enumerate([(410, 190), (190, 330)]))
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "B.npy", B)
    report = job(tmp_path, memory=memory).run()
    assert report.schedule.tiles > 1
    assert_product(
        np.load(tmp_path / "C.npy"),
        A.astype(A.dtype.newbyteorder("=")),
        B.astype(B.dtype.newbyteorder("=")),
        "plus_times",
    )
    assert left_behind(tmp_path) == ["C.npy"]


def test_zarr_in_and_out(folder):
    zarr = pytest.importorskip("zarr")
    A, B = operands(folder)
    made = zarr.create_array(str(folder / "A.zarr"), shape=A.shape, dtype=A.dtype, chunks=(128, 100))
    made[:] = A
    product = FileProduct(folder / "A.zarr", folder / "B.npy", folder / "C.zarr", memory=20_000_000, level=LEVEL)
    product.run()
    assert_product(zarr.open_array(str(folder / "C.zarr"), mode="r")[:], A, B, "plus_times")
    assert left_behind(folder) == ["A.zarr", "C.zarr"]


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_run_that_was_stopped_goes_on(folder, monkeypatch, after):
    job(folder, "whole.npy").run()
    with monkeypatch.context() as patch:
        stop_after(patch, after)
        with pytest.raises(Stop):
            job(folder).run()
    assert not (folder / "C.npy").exists()
    report = job(folder).run()
    assert report.resumed == after
    assert (folder / "C.npy").read_bytes() == (folder / "whole.npy").read_bytes()
    assert left_behind(folder) == ["C.npy", "whole.npy"]


def test_a_tile_that_does_not_match_its_checksum_is_computed_again(folder, monkeypatch):
    job(folder, "whole.npy").run()
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(Stop):
            job(folder).run()
    part = folder / ".C.npy.tilewise" / "part.npy"
    data = bytearray(part.read_bytes())
    data[200] ^= 1
    part.write_bytes(data)
    assert job(folder).run().resumed == 1
    assert (folder / "C.npy").read_bytes() == (folder / "whole.npy").read_bytes()


@pytest.mark.parametrize("damage", [b"0000", b'deadbeef {"tile": 5, "checksum": 1}\n', b"\x00\xff\n"])
def test_a_journal_that_was_cut_off_loses_its_last_line_only(folder, monkeypatch, damage):
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(Stop):
            job(folder).run()
    with (folder / ".C.npy.tilewise" / "journal").open("ab") as file:
        file.write(damage)
    assert job(folder).run().resumed == 2
    assert_product(np.load(folder / "C.npy"), *operands(folder), "plus_times")


def test_killed_between_the_last_two_steps(folder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("tilewise.system.output.Output.discard", lambda self: (_ for _ in ()).throw(Stop()))
        with pytest.raises(Stop):
            job(folder).run()
    first = (folder / "C.npy").read_bytes()
    report = job(folder).run()
    assert report.resumed == report.schedule.tiles
    assert (folder / "C.npy").read_bytes() == first
    assert left_behind(folder) == ["C.npy"]


def test_an_operand_that_changed_is_noticed(folder, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(Stop):
            job(folder).run()
    A = np.load(folder / "A.npy")
    A[499, 299] += 1
    np.save(folder / "A.npy", A)
    with pytest.raises(tw.FileError, match=r"A.npy has changed since .*--restart"):
        job(folder).run()
    assert job(folder).run(restart=True).resumed == 0
    assert_product(np.load(folder / "C.npy"), *operands(folder), "plus_times")


def test_the_same_size_and_time_do_not_hide_a_change(folder):
    before, about = sources.NpyFile(folder / "A.npy").identity(), (folder / "A.npy").stat()
    A = np.load(folder / "A.npy")
    A[0, 0] += 1
    np.save(folder / "A.npy", A)
    os.utime(folder / "A.npy", ns=(about.st_atime_ns, about.st_mtime_ns))
    assert sources.NpyFile(folder / "A.npy").identity() != before


def test_an_operand_that_changes_meanwhile_makes_no_product(folder, monkeypatch):
    stream = host.stream

    def meddling(*args, **how):
        stream(*args, **how)
        os.utime(folder / "B.npy")

    monkeypatch.setattr(host, "stream", meddling)
    with pytest.raises(tw.FileError, match=r"B.npy changed while it was read"):
        job(folder).run()
    assert left_behind(folder) == []


def test_another_job_under_the_same_name_is_refused(folder, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(Stop):
            job(folder).run()
    with pytest.raises(tw.FileError, match="differs in semiring"):
        job(folder, semiring="min_plus").run()
    assert job(folder).run().resumed == 2


def test_two_runs_at_once(folder):
    first = job(folder)
    with pytest.raises(tw.FileError, match=rf"C.npy is being made by process {os.getpid()}, since 20\d\d-"):
        job(folder)
    first.close()
    job(folder).run()


def test_a_full_disk_keeps_what_was_finished(folder, monkeypatch):
    with monkeypatch.context() as patch:
        put, seen = targets.put, []

        def full(*args):
            seen.append(1)
            if len(seen) > 900:
                raise OSError(errno.ENOSPC, "No space left on device")
            put(*args)

        patch.setattr(targets, "put", full)
        with pytest.raises(tw.FileError, match=r"the disk of .*C.npy is full .*run it again; finished tiles are kept"):
            job(folder).run()
    assert job(folder).run().resumed > 0
    assert_product(np.load(folder / "C.npy"), *operands(folder), "plus_times")


KEPT = "finished tiles are kept"


def failing(patch, place, name, after):
    """That function raises ENOSPC from its call number `after` on."""
    usual, seen = getattr(place, name), []

    def fails(*args, **how):
        seen.append(1)
        if len(seen) > after:
            error = OSError(errno.ENOSPC, "No space left on device")
            raise targets.no_room("C.npy", error) if name == "complete" else error
        return usual(*args, **how)

    patch.setattr(place, name, fails)


@pytest.mark.parametrize(
    ("place", "name", "after", "kept"),
    [
        (targets, "put", 1, False),  # the header is written, no tile
        (targets, "put", 3, False),
        (targets, "put", 900, True),
        (journal, "put", 0, False),
        (journal, "put", 1, False),  # the job's line is there, not the first tile's
        (journal, "put", 2, True),
        (targets.NpyTarget, "complete", 0, True),  # every tile is finished, and P has not its name yet
    ],
)
def test_an_error_mentions_finished_tiles_only_if_there_are_some(folder, monkeypatch, place, name, after, kept):
    made = job(folder)
    with monkeypatch.context() as patch:
        failing(patch, place, name, after)
        with pytest.raises(OSError, match=r"No space|is full") as caught:
            made.run()
    assert (KEPT in str(caught.value)) == kept, caught.value
    assert (job(folder).run().resumed > 0) == kept
    assert_product(np.load(folder / "C.npy"), *operands(folder), "plus_times")


@pytest.mark.parametrize(("row", "kept"), [(0, False), (480, True)])
def test_tiles_are_kept_that_were_finished_before_a_row_that_cannot_be_read(folder, monkeypatch, row, kept):
    fill = sources.NpyFile._fill

    def failing(self, memory, offset):
        if self.path.name == "A.npy" and offset >= self.offset + row * 300 * 4:
            raise tw.FileError(f"{self.path} cannot be read from byte {offset:,} on: Input/output error")
        fill(self, memory, offset)

    with monkeypatch.context() as patch:
        patch.setattr(sources.NpyFile, "_fill", failing)
        with pytest.raises(tw.FileError, match=r"A.npy cannot be read from byte") as caught:
            job(folder).run()
    assert (KEPT in str(caught.value)) == kept, caught.value
    assert (job(folder).run().resumed > 0) == kept


def test_nothing_is_kept_of_operands_that_change_or_of_products_without_a_journal(folder, monkeypatch):
    zarr = pytest.importorskip("zarr")
    A, B = operands(folder)
    with monkeypatch.context() as patch:
        times = iter(range(99))  # another one at each look
        patch.setattr(sources, "checksum", lambda *_: next(times))
        with pytest.raises(tw.FileError, match="thrown away") as caught:
            job(folder).run()
    assert KEPT not in str(caught.value)
    out = zarr.create_array(str(folder / "out.zarr"), shape=(500, 400), dtype="float32", chunks=(64, 64))
    with monkeypatch.context() as patch:
        failing(patch, zarr.Array, "__setitem__", 3)
        with pytest.raises(tw.FileError, match="is full") as caught:
            tw.matmul(A, B, out=out, memory=MEMORY)
    assert KEPT not in str(caught.value)
    M = zarr.create_array(str(folder / "M.zarr"), shape=A.shape, dtype=A.dtype, chunks=(64, 100))
    M[:] = A
    max(folder.glob("M.zarr/c/7/*")).write_bytes(b"damaged")
    with pytest.raises(tw.FileError, match="cannot be read: the chunk of rows 448") as caught:
        tw.matmul(M, B, out=out, memory=2 * MEMORY)
    assert KEPT not in str(caught.value)


def test_a_disk_that_is_too_small_fails_before_the_first_tile(folder, monkeypatch):
    def none(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", none)
    with pytest.raises(tw.FileError, match="is full"):
        job(folder).run()
    assert left_behind(folder) == []


def test_an_unreadable_chunk_keeps_what_was_finished(folder):
    zarr = pytest.importorskip("zarr")
    A, B = operands(folder)
    made = zarr.create_array(str(folder / "A.zarr"), shape=A.shape, dtype=A.dtype, chunks=(64, 100))
    made[:] = A

    def zarr_job():
        return FileProduct(folder / "A.zarr", folder / "B.npy", folder / "C.npy", memory=MEMORY + 60_000, level=LEVEL)

    chunk = max(folder.glob("A.zarr/c/7/*"))
    good = chunk.read_bytes()
    times = chunk.stat()
    chunk.write_bytes(b"\x00" * (len(good) // 2))
    os.utime(chunk, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(tw.FileError, match=r"A.zarr cannot be read: the chunk of rows 448 to 499 .*tiles are kept"):
        zarr_job().run()
    chunk.write_bytes(good)
    os.utime(chunk, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(tw.FileError, match="has changed since"):  # whole again, but not the original
        zarr_job().run()
    zarr_job().run(restart=True)
    assert_product(np.load(folder / "C.npy"), A, B, "plus_times")


@pytest.mark.parametrize("sampled", [True, False])
def test_a_change_that_leaves_no_trace_in_times_is_noticed_in_the_samples(folder, monkeypatch, sampled):
    monkeypatch.setattr(samples, "LEAST", 16)
    monkeypatch.setattr(samples, "SAMPLE_BYTES", 128)
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(Stop):
            job(folder).run()
    places = []
    samples.checksum(lambda memory, place: places.append(place) or 0, (folder / "A.npy").stat().st_size)
    covered = {place + i for place in places for i in range(128)}
    at = next(i for i in range(1000, max(places)) if (i in covered) == sampled)
    with open(folder / "A.npy", "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    journal = next(p for p in folder.rglob("*") if p.name.endswith("journal"))
    first, *rest = journal.read_bytes().splitlines(keepends=True)
    record = _decoded(first[:-1])
    record["job"]["M"]["changed"] = sources.NpyFile(folder / "A.npy").identity()["changed"]
    journal.write_bytes(_encoded(record) + b"".join(rest))
    if sampled:
        with pytest.raises(tw.FileError, match=r"A.npy has changed since"):
            job(folder).run()
    else:
        assert job(folder).run().resumed == 2


class TestTheCommand:
    def run_command(self, capsys, *arguments):
        code = run([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    def test_multiply(self, folder, capsys):
        code, out, _ = self.run_command(
            capsys,
            "multiply",
            folder / "A.npy",
            folder / "B.npy",
            "-o",
            folder / "C.npy",
            "--memory",
            "700kB",
            "--check",
        )
        assert code == 0
        assert "ok: relative error" in out
        assert_product(np.load(folder / "C.npy"), *operands(folder), "plus_times")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["A.npy", "B.npy", "-o", "C.npy", "--memory", "1kB"], "the least that works is"),
            (["A.npy", "B.npy", "-o", "C.npy", "--memory", "lots"], "no amount of memory"),
            (["B.npy", "A.npy", "-o", "C.npy", "--memory", "1GB"], "must be equal"),
            (["A.npy", "none.npy", "-o", "C.npy", "--memory", "1GB"], "none.npy does not exist"),
            (["A.npy", "none.zarr", "-o", "C.npy"], "none.zarr does not exist"),
            (["A.npy", "B.npy", "--memory", "1GB"], "take two files and -o"),
            (["A.npy", "text.npy", "-o", "C.npy", "--memory", "1GB"], "is not a .npy file"),
            (["A.npy", "short.npy", "-o", "C.npy", "--memory", "1GB"], "is cut short"),
            (["A.npy", "cube.npy", "-o", "C.npy", "--memory", "1GB"], "3 axes"),
        ],
    )
    def test_bad_input_gets_one_sentence_and_touches_nothing(self, folder, capsys, monkeypatch, arguments, message):
        monkeypatch.chdir(folder)
        Path("text.npy").write_text("hello")
        Path("short.npy").write_bytes(Path("B.npy").read_bytes()[:5000])
        np.save("cube.npy", np.ones((2, 2, 2)))
        before = left_behind(folder)
        code, out, err = self.run_command(capsys, "multiply", *arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert len([line for line in err.splitlines() if line.lower().startswith("error")]) == 1
        assert left_behind(folder) == before


def start(folder, memory="260MB"):
    command = [sys.executable, "-m", "tilewise", "multiply", "A.npy", "B.npy", "-o", "C.npy", "--memory", memory]
    environment = os.environ | {"PYTHONPATH": str(Path(tw.__file__).parents[1])}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def killed_and_resumed(folder, kills, seed):
    chance = random.Random(seed)
    journal = folder / ".C.npy.tilewise" / "journal"
    landed = 0
    while landed < kills:
        process = start(folder)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline and not journal.exists():
            time.sleep(0.005)
        time.sleep(chance.random() * 0.6)
        if process.poll() is not None:
            break  # it finished first
        process.send_signal(signal.SIGKILL)
        process.communicate()
        landed += 1
        assert not (folder / "C.npy").exists()
    process = start(folder)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return landed, out.decode()


def matrices(folder, side):
    rng = np.random.default_rng(0)
    for name in "AB":
        np.save(folder / f"{name}.npy", rng.standard_normal((side, side), np.float32))


@pytest.mark.slow  # three products of 2,500²; test_a_run_that_was_stopped_goes_on resumes, `make torture` kills
def test_sigkill(tmp_path):
    matrices(tmp_path, 2500)
    start(tmp_path, "260MB").communicate()
    whole = (tmp_path / "C.npy").read_bytes()
    (tmp_path / "C.npy").unlink()
    landed, _ = killed_and_resumed(tmp_path, 1, 1)
    assert landed == 1
    assert (tmp_path / "C.npy").read_bytes() == whole
    assert left_behind(tmp_path) == ["C.npy"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_sigkill_five_times(tmp_path, seed):
    matrices(tmp_path, 5000)
    start(tmp_path, "260MB").communicate()
    whole = (tmp_path / "C.npy").read_bytes()
    (tmp_path / "C.npy").unlink()
    landed, out = killed_and_resumed(tmp_path, 5, seed)
    assert landed >= 3
    assert re.search(r"resumed +\d+ of", out) or landed
    assert (tmp_path / "C.npy").read_bytes() == whole


def long_job(folder):
    return FileProduct(folder / "A.npy", folder / "B.npy", folder / "C.npy", memory=400_000, level=LEVEL)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_long_k_resumes_within_a_tile(tmp_path, monkeypatch, dtype):
    """One tile of many phases, stopped in the middle: its sums were saved, and the bytes come out the same."""
    np.save(tmp_path / "A.npy", values((60, 30_000), dtype, 1))
    np.save(tmp_path / "B.npy", values((30_000, 50), dtype, 2))
    report = long_job(tmp_path).run()
    assert (report.schedule.tiles, report.schedule.phases > 20) == (1, True)
    whole = (tmp_path / "C.npy").read_bytes()
    (tmp_path / "C.npy").unlink()
    monkeypatch.setattr("tilewise.scale.checkpoint.LEAST", 0.0)
    monkeypatch.setattr("tilewise.scale.checkpoint.SHARE", 0)
    multiplied = []
    multiply = host.multiply

    def stopping(*args):
        if len(multiplied) == stop:
            raise Stop
        multiplied.append(1)
        return multiply(*args)

    for stop in (report.schedule.phases // 2, 5):  # noqa: B007  read by `stopping`
        with monkeypatch.context() as patch:
            multiplied.clear()
            patch.setattr(host, "multiply", stopping)
            with pytest.raises(Stop):
                long_job(tmp_path).run()
    stop = -1
    multiplied.clear()
    monkeypatch.setattr(host, "multiply", stopping)
    damaged = tmp_path / ".C.npy.tilewise" / "sums-0"
    assert damaged.exists()
    long_job(tmp_path).run()
    assert len(multiplied) == report.schedule.phases - report.schedule.phases // 2 - 5
    assert (tmp_path / "C.npy").read_bytes() == whole
    assert left_behind(tmp_path) == ["C.npy"]


def test_saved_sums_that_were_damaged_are_made_again(tmp_path, monkeypatch):
    np.save(tmp_path / "A.npy", values((60, 30_000), "float32", 1))
    np.save(tmp_path / "B.npy", values((30_000, 50), "float32", 2))
    long_job(tmp_path).run()
    whole = (tmp_path / "C.npy").read_bytes()
    monkeypatch.setattr("tilewise.scale.checkpoint.LEAST", 0.0)
    monkeypatch.setattr("tilewise.scale.checkpoint.SHARE", 0)
    calls = []
    with monkeypatch.context() as patch:
        patch.setattr(host, "write_rounded", lambda *_: (_ for _ in ()).throw(Stop()))
        with pytest.raises(Stop):
            long_job(tmp_path).run()
    for name in ("sums-0", "sums-1"):
        path = tmp_path / ".C.npy.tilewise" / name
        path.write_bytes(b"?" + path.read_bytes()[1:])
    long_job(tmp_path).run(progress=lambda *_: calls.append(1))
    assert (tmp_path / "C.npy").read_bytes() == whole


def test_small_chunks_count_in_what_is_expected(folder):
    zarr = pytest.importorskip("zarr")
    A, _ = operands(folder)
    made = zarr.create_array(str(folder / "A.zarr"), shape=A.shape, dtype=A.dtype, chunks=(1, 300))
    made[:] = A
    rates = []
    for name in ("A.npy", "A.zarr"):
        source = sources.open_source(folder / name)
        rates.append(files.read_rate(source))
    assert rates[0] == pytest.approx(host.DISK.read)
    start = time.process_time()
    out = np.empty(A.shape, A.dtype)
    source.read(slice(0, 500), slice(0, 300), out)
    took = time.process_time() - start
    assert took / 8 < A.nbytes / rates[1] < took * 8


@pytest.mark.parametrize(("semiring", "dtype"), [("plus_times", "float32"), ("logaddexp_plus", "float64")])
def test_a_phase_is_short_however_large_its_tile(semiring, dtype):
    """Sums are saved between phases, so a phase bounds what a kill can cost."""
    problem = replace(problem_of_shape(100_000, 100_000, 100_000, dtype, semiring), unrounded=True)
    whole = replace(host.host_schedule(problem, LEVEL, 10**12), rows=50_000, cols=50_000, depth=100_000)
    made = files.short_phases(whole)
    second = pieces.piece_steps(problem, host_machine()) / pieces.SECONDS  # steps of one core
    assert whole.rows * whole.cols * whole.depth > 60 * second
    assert made.depth == files.LEAST_TILE[2] or made.rows * made.cols * made.depth <= files.PHASE * second
    assert (made.rows, made.cols) == (whole.rows, whole.cols)
    assert made.needs <= whole.needs
    small = host.host_schedule(replace(problem, m=900, k=900, n=900), LEVEL, 10**9)
    assert files.short_phases(small) is small
