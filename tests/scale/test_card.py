"""Streaming through a card, on a card made of threads: any dtype, algebra and order of memory, within the budget."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from threads_as_card import ThreadQueues

from operands import values
from oracle import assert_product
from tilewise.core.machine import KNOWN_CARDS
from tilewise.errors import FileError, OutOfMemoryError
from tilewise.scale import card, pinning
from tilewise.scale.files import problem_of
from tilewise.scale.sources import ArraySource
from tilewise.scale.targets import ArrayTarget

pytestmark = pytest.mark.drawn(16)  # each streams for up to 2 s; on a card all of them run


def product(M, N, semiring, memory, slow=0.0, target=None, cut=None, most_pages=10**6, card_of=ThreadQueues, **how):
    sources = ArraySource(M, "M"), ArraySource(N, "N")
    problem = problem_of(*sources, semiring)
    schedule = card.schedule_for(problem, KNOWN_CARDS["h200"], memory, tuple(s.transposed for s in sources))
    if cut:
        schedule = replace(schedule, **dict(zip(("rows", "cols", "depth"), cut, strict=True)))
    P = np.full((problem.m, problem.n), 7).astype(problem.semiring.over(problem.dtype).result.numpy)
    queues = card_of(slow)
    queues.most_pages = most_pages
    card.stream(schedule, *sources, target or ArrayTarget(P), queues=queues, **how)
    return P, schedule, queues


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int64", "complex64", "bool"])
@pytest.mark.parametrize("transposed", [False, True])
def test_any_dtype_and_order_streams_right(dtype, transposed):
    M, N = values((700, 517), dtype, 1), values((517, 411), dtype, 2)
    M, N = (np.asfortranarray(x) if transposed else x for x in (M, N))
    P, schedule, queues = product(M, N, "plus_times", 400_000)
    assert_product(P, M, N, "plus_times")
    assert schedule.tiles > 1
    assert queues.allocated <= 400_000


@pytest.mark.drawn(2)
@pytest.mark.parametrize("semiring", ["min_plus", "max_times", "lor_land", "logaddexp_plus"])
def test_any_algebra_streams_right(semiring):
    M, N = values((300, 200), "float32", 3), values((200, 333), "float32", 4)
    P, schedule, _ = product(M, N, semiring, 200_000)
    assert_product(P, M, N, semiring)
    assert schedule.tiles > 1


def test_halves_are_rounded_once():
    M, N = np.full((64, 4096), 1, np.float16), np.full((4096, 64), 1e-4, np.float16)
    P, schedule, _ = product(M, N, "plus_times", 60_000)
    assert schedule.phases > 4
    exact = 4096 * np.float32(np.float16(1e-4))
    np.testing.assert_allclose(P.astype(np.float64), exact, rtol=2**-11)


def test_order_is_kept_when_every_stream_is_slow():
    M, N = values((1300, 300), "float32", 5), values((300, 700), "float32", 6)
    P, schedule, _ = product(M, N, "plus_times", 900_000, slow=0.002, cut=(900, 256, 128))
    assert_product(P, M, N, "plus_times")
    assert (schedule.tiles, schedule.phases) == (6, 3)  # and three bands: 900 rows are more than two of 384


@pytest.mark.parametrize("late", [0, 1])
def test_order_is_kept_when_one_stream_of_products_is_late(late):
    class Late(ThreadQueues):
        def multiply(self, problem, M, N, P, stream):
            if stream not in seen:
                seen.append(stream)
            if seen.index(stream) == late:
                stream.jobs.put(lambda: time.sleep(0.03))
            super().multiply(problem, M, N, P, stream)

    seen = []
    M, N = values((1300, 600), "float32", 5), values((600, 300), "float32", 6)
    P, schedule, _ = product(M, N, "min_plus", 900_000, cut=(900, 256, 128), card_of=Late)
    assert_product(P, M, N, "min_plus")
    assert len(seen) == 2
    assert schedule.band < 900 / 2


@pytest.fixture
def pinned(monkeypatch):
    """Small operands are pinned, whole, in small chunks."""
    monkeypatch.setattr(pinning, "WORTH", 1)
    monkeypatch.setattr(card, "SLOT_RATE", 0.0)
    monkeypatch.setattr(pinning.Pages.__init__, "__defaults__", (1.0, 8192))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("most", [0, 3, 10**6])  # the system may refuse to pin any more
def test_pinned_pages_are_copied_directly(transposed, most, pinned):
    M, N = values((700, 517), "float32", 1), values((517, 411), "float32", 2)
    M, N = (np.asfortranarray(x) if transposed else x for x in (M, N))
    P, _, queues = product(M, N, "plus_times", 400_000, slow=0.0005, most_pages=most)
    assert_product(P, M, N, "plus_times")
    assert len(queues.unlock_imports) == most or most > 3
    assert bool(queues.straight) == bool(most)


def test_a_matrix_by_itself_is_pinned_once(pinned):
    M = values((600, 600), "float32", 9)
    P, _, queues = product(M, M, "plus_times", 300_000, slow=0.0005)
    assert_product(P, M, M, "plus_times")
    assert 0 < len(queues.unlock_imports) <= -(-M.nbytes // 8192)


def test_no_more_is_pinned_than_slots_cannot_carry(pinned, monkeypatch):
    M, N = values((700, 517), "float32", 1), values((517, 411), "float32", 2)
    _, schedule, _ = product(M, N, "plus_times", 400_000)
    for share in (0.0, 0.25):
        monkeypatch.setattr(card, "SLOT_RATE", (1 - share) * schedule.bytes_in / schedule.compute)
        P, _, queues = product(M, N, "plus_times", 400_000, slow=0.0005)
        assert_product(P, M, N, "plus_times")
        got = sum(high - low for low, high in queues.unlock_imports) / (M.nbytes + N.nbytes)
        assert got <= share + 0.04
        assert bool(queues.straight) == bool(share)


@pytest.mark.parametrize("after", [1, 7, 20])
def test_an_interruption_ends_every_thread(after, pinned):
    M, N = values((700, 517), "float32", 1), values((517, 411), "float32", 2)

    def interrupt(count, total):
        if count == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        product(M, N, "plus_times", 400_000, slow=0.0005, progress=interrupt)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("tilewise")]


@pytest.mark.parametrize(
    ("first", "pitch", "width", "count"), [(0, 100, 60, 300), (4096, 5000, 5000, 9), (8190, 40_000, 9, 7)]
)
def test_no_copy_passes_from_one_chunk_to_the_next(first, pitch, width, count):
    pages = pinning.Pages(ThreadQueues(), 4096, 10**6, chunk=16384)
    seen = np.zeros(count * width, np.uint8)
    first += pages.low
    for row, byte, wide, rows in pages.runs(first, pitch, width, count):
        start = first + row * pitch + byte - pages.low
        assert start // 16384 == (start + (rows - 1) * pitch + wide - 1) // 16384
        for i in range(row, row + rows):
            seen[i * width + byte : i * width + byte + wide] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize(
    ("first", "pitch", "width", "count"), [(-4096, 100, 60, 1300), (0, 5000, 5000, 20), (90, 40_000, 9, 7)]
)
def test_runs_of_rows_are_pinned_or_not(first, pitch, width, count):
    queues = ThreadQueues()
    pages = pinning.Pages(queues, 4096, 4096 + 90_000, 0.5, chunk=4096)
    pages.pin()
    first, end = first + pages.low, 0
    for pinned, row, rows in pages.runs_by_pinning(first, pitch, width, count):
        assert row == end
        end += rows
        for i in range(row, row + rows):
            low = first + i * pitch
            assert pinned == all(any(a <= at < b for a, b in queues.pages) for at in range(low, low + width))
    assert end == count


def test_pages_of_files_and_foreign_memory_are_not_pinned(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((50, 40), np.float32))
    assert pinning.owned_bytes(np.load(tmp_path / "x.npy", mmap_mode="r")) is None
    assert pinning.owned_bytes(np.frombuffer(bytes(400), np.float32).reshape(10, 10)) is None
    whole = np.ones((50, 40), np.float32)
    assert pinning.owned_bytes(whole[::-1]) is None
    low, high = pinning.owned_bytes(whole[3:, :20])
    assert low == whole.ctypes.data + 3 * 160
    assert high == whole.ctypes.data + 49 * 160 + 80


def test_mixed_dtypes_and_one_phase():
    M, N = values((900, 40), "float32", 7), values((40, 800), "float64", 8)
    P, schedule, _ = product(M, N, "plus_times", 500_000)
    assert_product(P, M, N, "plus_times")
    assert schedule.phases == 1


@pytest.mark.parametrize("shape", [(0, 5, 7), (5, 0, 7), (5, 7, 0), (1, 1, 1)])
def test_the_smallest_products(shape):
    m, k, n = shape
    M, N = values((m, k), "float32", 1), values((k, n), "float32", 2)
    P, _, _ = product(M, N, "plus_times", 400_000)
    assert_product(P, M, N, "plus_times")


def test_what_fails_midway_is_raised_and_nothing_hangs():
    class Broken(ArrayTarget):
        def write(self, rows, cols, part):
            raise FileError("no room")

    M, N = values((700, 300), "float32", 9), values((300, 700), "float32", 10)
    with pytest.raises(FileError, match="no room"):
        product(M, N, "plus_times", 400_000, target=Broken(np.empty((700, 700), np.float32)))


@pytest.mark.parametrize("after", [0, 30])
def test_an_operand_that_cannot_be_read_is_raised_and_nothing_hangs(after, monkeypatch):
    def read(self, rows, cols, out):
        if next(reads) >= after:
            raise FileError("no such chunk")
        real(self, rows, cols, out)

    reads, real = itertools.count(), ArraySource.read
    monkeypatch.setattr(ArraySource, "read", read)
    M, N = values((700, 300), "float32", 9), values((300, 700), "float32", 10)
    with pytest.raises(FileError, match="no such chunk"):
        product(M, N, "plus_times", 400_000, slow=0.0005)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("tilewise")]


def test_memory_that_cannot_be_pinned_is_raised_and_nothing_hangs(monkeypatch):
    def pinned(self, nbytes):
        raise OutOfMemoryError("no more")

    monkeypatch.setattr(ThreadQueues, "pinned", pinned)
    M, N = values((700, 300), "float32", 9), values((300, 700), "float32", 10)
    with pytest.raises(OutOfMemoryError, match="no more"):
        product(M, N, "plus_times", 400_000)


def test_tiles_are_reported_when_they_are_written():
    M, N = values((700, 300), "float32", 11), values((300, 700), "float32", 12)
    seen, steps = [], []
    _, schedule, _ = product(
        M, N, "plus_times", 400_000, finished=lambda tile: seen.append(tile.number), progress=lambda *x: steps.append(x)
    )
    assert sorted(seen) == list(range(schedule.tiles))
    assert steps[-1][0] == steps[-1][1] == schedule.tiles * schedule.phases


@pytest.mark.skipif(sys.platform != "linux", reason="pages are made ahead on Linux alone")
def test_pages_are_made_once(monkeypatch):
    made = []
    monkeypatch.setattr(pinning, "fault_in", lambda *ends, make=pinning.fault_in: made.append(ends) or make(*ends))

    def is_fresh(x):
        low, high = -(-x.ctypes.data // pinning.PAGE), (x.ctypes.data + x.nbytes) // pinning.PAGE
        return not pinning.are_resident(low * pinning.PAGE, high * pinning.PAGE)

    # so large that they come from the system, with no page made, unless memory of as many bytes was just freed
    fresh = next(filter(is_fresh, [np.empty((512, 2**17), np.uint8) for _ in range(4)]))
    written = np.ones((512, 2**17), np.uint8)
    for array, some in ((fresh, True), (written, False), (fresh, False)):
        made.clear()
        step = pinning.page_populator(array)
        while step():
            pass
        assert bool(made) == some
