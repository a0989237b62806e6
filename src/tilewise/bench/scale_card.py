"""Suite `scale` on a card: products larger than its memory, streamed from the host's, beside the same kernel on
resident operands, and beside a plain loop of cuBLAS on tiles with pageable copies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array, dtype_named
from tilewise.api import matmul
from tilewise.arrays.card import memory as card_memory
from tilewise.bench.peak import Peak
from tilewise.bench.suites import Piece, Request, Row
from tilewise.scale.card import card_schedule, phase_problems
from tilewise.scale.files import problem_of
from tilewise.scale.queues import Queues
from tilewise.scale.schedule import Schedule
from tilewise.scale.sources import ArraySource

RESIDENT = {"bfloat16": 32768, "float32": 16384}  # sides whose operands and product fit on the card
WARM_SECONDS = 2.5  # of products; the rate is that of their second half, because a hot card is slower
SAMPLE = 64
LOOP_PHASES = 4  # timed phases of the plain loop, which is several times slower
THREADS = 16
DEVICE = "cuda:0"


def pieces(request: Request) -> Iterator[Piece]:
    yield staging_rates
    for dtype, side in (("float32", 90112), ("bfloat16", 153600)):
        for extent in request.sizes or ((side // 4,) if request.quick else (side,)):
            yield partial(larger_than_card, extent, dtype, square=dtype == "bfloat16")


def random_matrix(side: int, dtype: str, seed: int) -> Array:
    """Random numbers made quickly: each row is a random slice of one long vector."""
    number = dtype_named(dtype).numpy
    rng = np.random.default_rng(seed)
    base = rng.standard_normal(side + 2**20, np.float32).astype(number)
    starts = rng.integers(0, 2**20, side)
    made = np.empty((side, side), number)
    bits = f"u{number.itemsize}"
    source, target = base.view(bits), made.view(bits)

    def fill(rows: range) -> None:
        for row in rows:
            np.copyto(target[row], source[starts[row] : starts[row] + side])

    step = -(-side // THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(fill, [range(top, min(top + step, side)) for top in range(0, side, step)]))
    return made


def resident_rate(dtype: str) -> float:
    """Operations a second of a product with operands on the card, once it is warm."""
    import torch

    side = RESIDENT[dtype]
    kind = getattr(torch, dtype)
    M, N = (torch.randn(side, side, device=DEVICE, dtype=kind) for _ in range(2))
    P = torch.empty(side, side, device=DEVICE, dtype=kind)
    matmul(M, N, out=P)
    torch.cuda.synchronize()
    times: list[float] = []
    began = time.perf_counter()
    while time.perf_counter() - began < WARM_SECONDS:
        start = time.perf_counter()
        matmul(M, N, out=P)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    del M, N, P
    torch.cuda.empty_cache()
    return 2 * side**3 / float(np.median(times[len(times) // 2 :]))


def plain_loop(M: Array, N: Array, schedule: Schedule) -> float:
    """Operations a second of cuBLAS on the same tiles and panels, with pageable copies, on the first tile of P:
    extrapolated from its first phases, and its copy back to the host."""
    import torch

    def tensor(array: Array) -> Any:
        return (
            torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
            if array.itemsize == 2
            else torch.from_numpy(array)
        )

    torch.backends.cuda.matmul.allow_tf32 = False
    left, right, s = tensor(M), tensor(N), schedule
    torch.zeros(1, device=DEVICE) @ torch.zeros(1, device=DEVICE)
    back = torch.ones(s.rows, s.cols, dtype=left.dtype)  # touched, as the pages of the given P are
    torch.cuda.synchronize()
    start = time.perf_counter()
    sums = torch.zeros(s.rows, s.cols, device=DEVICE, dtype=left.dtype)
    for ks in (slices := s.slices())[:LOOP_PHASES]:
        sums.addmm_(left[: s.rows, ks].to(DEVICE), right[ks, : s.cols].to(DEVICE))
    torch.cuda.synchronize()
    steps = slices[:LOOP_PHASES][-1].stop
    seconds: float = (time.perf_counter() - start) * s.problem.k / steps
    start = time.perf_counter()
    back.copy_(sums)
    seconds += time.perf_counter() - start
    del sums
    torch.cuda.empty_cache()
    return 2 * s.rows * s.cols * s.problem.k / seconds


def compile_phases(schedule: Schedule, transposed: tuple[bool, bool]) -> None:
    """Run every kind of phase once, on zeros, so that no kernel is compiled during a timing."""
    import torch

    s, p = schedule, schedule.problem
    kinds = (p.result, p.semiring.over(p.dtype).result)
    cells = ((s.band + 64) * (s.depth + 64), (s.depth + 64) * (s.cols + 64), (s.band + 64) * (s.cols + 64))
    M, N, P = (torch.zeros(8 * count, dtype=torch.uint8, device=DEVICE) for count in cells)
    torch.cuda.synchronize()
    queues = Queues(DEVICE)
    stream = queues.stream()
    for problem in phase_problems(schedule, transposed):
        queues.multiply(problem, M.data_ptr(), N.data_ptr(), P.data_ptr(), stream)
    if kinds[0] != kinds[1]:
        queues.round(P.data_ptr(), s.cols, 1, s.cols, kinds, stream)
    queues.close()
    del M, N, P
    torch.cuda.empty_cache()


def larger_than_card(side: int, dtype: str, square: bool) -> list[Row]:
    """side³ within a tenth of the operands' bytes. `square`: multiply M by itself, if two do not fit the host.

    P's pages have been touched, as those of the resident product and of the plain loop.
    """
    M, P = random_matrix(side, dtype, 0), random_matrix(side, dtype, 2)
    N = M if square else random_matrix(side, dtype, 1)
    memory = (M.nbytes + N.nbytes) // 10
    sources = ArraySource(M, "M"), ArraySource(N, "N")
    schedule = card_schedule(problem_of(*sources, "plus_times"), *sources, DEVICE, memory)
    resident = resident_rate(dtype)
    loop = plain_loop(M, N, schedule)
    compile_phases(schedule, (sources[0].transposed, sources[1].transposed))
    free = card_memory(DEVICE)[0]
    with Peak(lambda: free - card_memory(DEVICE)[0], every=0.05) as watched:
        start = time.perf_counter()
        matmul(M, N, device=DEVICE, memory=memory, out=P)
        seconds = time.perf_counter() - start
    rate = 2 * side**3 / seconds
    beside = f"{rate / resident:.2f} of resident, {rate / loop:.2f} times the plain loop"
    rng = np.random.default_rng(2)
    rows, cols = (np.sort(rng.choice(side, SAMPLE, replace=False)) for _ in range(2))
    expected = M[rows].astype(np.float64) @ np.ascontiguousarray(N[:, cols]).astype(np.float64)
    got = P[np.ix_(rows, cols)].astype(np.float64)
    return [
        {
            "what": "larger than the card, P given",
            "who": f"{memory / 1e9:.3g} GB",
            "size": f"{side}³ {dtype}",
            "result": f"{rate / 1e12:.4g} TFLOP/s, {beside}",
            "dtype": dtype,
            "shape": [side] * 3,
            "operand_bytes": M.nbytes + N.nbytes,
            "memory": memory,
            "card_bytes_at_peak": watched.largest,
            "schedule": schedule.to_json(),
            "seconds": seconds,
            "predicted_seconds": schedule.predicted,
            "tflops": rate / 1e12,
            "resident_tflops": resident / 1e12,
            "plain_loop_tflops": loop / 1e12,
            "share_of_resident": rate / resident,
            "times_plain_loop": rate / loop,
            "relative_error": float(np.linalg.norm(got - expected) / np.linalg.norm(expected)),
        }
    ]


def staging_rates() -> list[Row]:
    """Bytes a second from pageable memory into pinned slots, by threads; and of pinning the pages themselves."""
    queues, nbytes = Queues(DEVICE), 2 * 10**9
    rows: list[Row] = []
    try:
        source = np.ones((nbytes // 65536, 65536), np.uint8)
        slots = [queues.pinned(16 * 2**20) for _ in range(24)]
        step = slots[0].nbytes // 65536
        for threads in (1, 4, 8, 12, 16):

            def piece(number: int) -> None:
                part = source[number * step : (number + 1) * step, :32768]
                np.copyto(slots[number % 24].reshape(-1, 65536)[: len(part), :32768], part)

            with ThreadPoolExecutor(threads) as pool:
                start = time.perf_counter()
                list(pool.map(piece, range(len(source) // step)))
                seconds = time.perf_counter() - start
            rows.append(_staged(f"{threads} threads", nbytes / 2 / seconds))
        from cuda.bindings import driver

        start = time.perf_counter()
        driver.cuMemHostRegister(source.ctypes.data, source.nbytes, 0)
        rows.append(_staged("pinning pages in place", nbytes / (time.perf_counter() - start)))
        driver.cuMemHostUnregister(source.ctypes.data)
    finally:
        queues.close()
    return rows


def _staged(who: str, rate: float) -> Row:
    result = f"{rate / 1e9:.3g} GB/s"
    return {"what": "into pinned memory", "who": who, "size": "", "result": result, "bytes_a_second": rate}
