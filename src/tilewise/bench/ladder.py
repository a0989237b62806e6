"""Suites `ladder` and `tiles`: the kernels of the ladder over sizes, and over TILE_WIDTH.

On a card each candidate is queued on the default stream and writes the same P, which is checked first. On a CPU the
reference engine runs beside NumPy's product.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tilewise.api import matmul
from tilewise.arrays.card import default_stream
from tilewise.arrays.device_array import DeviceArray, to_device
from tilewise.backends.cpu.limits import host_machine
from tilewise.backends.cuda.device import describe
from tilewise.backends.cuda.launcher import Launcher
from tilewise.bench.suites import Piece, Request, Row, Shape, speed_row
from tilewise.bench.timing import Work, interleaved
from tilewise.core.accuracy import relative_error
from tilewise.core.plan import Plan
from tilewise.core.problem import problem_of_shape
from tilewise.core.recipe import Launch, Recipe
from tilewise.kernels.ladder.model import LADDER
from tilewise.planning.choose import make_plan
from tilewise.planning.launchers import run_plan
from tilewise.system.resources import shipped

SQUARES = (512, 1024, 2048, 4096, 4097, 8192)
SWEEP_SHAPES: tuple[Shape, ...] = (
    (512,) * 3, (1024,) * 3, (2048,) * 3, (4096,) * 3, (1000,) * 3, (4097,) * 3, (1000, 500, 700), (8192, 256, 8192),
)  # fmt: skip
CPU_SIZES = (64, 128, 256, 512, 1000, 1024)
TILES = (4, 8, 16, 32)
DEVICE = "cuda:0"
TOLERANCE = 5e-6  # float32 sums of a few thousand terms; NaN never passes
QUEUE_STEPS = 2**31  # smaller products are timed in longer queues
SAMPLE = 64  # rows of P that are compared with float64

Arrays = tuple[DeviceArray, DeviceArray, DeviceArray]  # M, N and P on the card


@dataclass(frozen=True)
class Candidate:
    """A rung at a tile, or a peer by its name."""

    kernel: str
    tile: int = 0

    @property
    def name(self) -> str:
        return f"{self.kernel} {self.tile}" if self.tile else self.kernel


def pieces(request: Request) -> Iterator[Piece]:
    is_ladder, rounds = request.suite == "ladder", request.rounds(3, 7)
    if not request.on_card:
        tiles = (16,) if is_ladder else TILES
        for size in request.sizes or CPU_SIZES:
            yield partial(on_cpu, size, tiles, request.rounds(2, 5))
        return
    peers = [Candidate("cublas")] if cublas_library() else []
    squares = tuple((size, size, size) for size in SQUARES)
    for shape in request.cubes or (squares if is_ladder else SWEEP_SHAPES):
        candidates = _rungs(shape[0]) if is_ladder else _sweep()
        yield partial(on_card, shape, [*candidates, *peers], rounds)
        if is_ladder:
            yield partial(on_host, shape, 3)


def _rungs(size: int) -> list[Candidate]:
    """Every rung that supports this size, the course's kernel, and the families of the planner."""
    candidates = [Candidate("course", 16), Candidate("course", 32)]
    for rung in LADDER.values():
        if rung.whole_tiles_only and size % 32:
            continue
        candidates += [Candidate(rung.name, tile) for tile in ((16,) if rung.max_tile == 16 else (16, 32))]
    return [*candidates, Candidate("plain"), Candidate("bf16x6")]


def _sweep() -> list[Candidate]:
    kernels = ("naive", "tiled_edges", "coarsened", "register_tiled")
    return [Candidate(kernel, tile) for kernel in kernels for tile in TILES if tile <= LADDER[kernel].max_tile]


def on_card(shape: Shape, candidates: list[Candidate], rounds: int) -> list[Row]:
    """One row for each candidate, all timed in the same rounds on the same operands."""
    m, steps, rng = shape[0], math.prod(shape), np.random.default_rng(0)
    M, N = _operands(shape, rng)
    sample = np.sort(rng.choice(m, min(m, SAMPLE), replace=False))
    expected = M[sample].astype(np.float64) @ N.astype(np.float64)
    nans = np.full((m, shape[2]), np.nan, np.float32)
    arrays = to_device(M), to_device(N), to_device(nans)
    stream, machine = default_stream(DEVICE), describe(DEVICE)
    works: dict[str, Work] = {}
    plans: dict[str, Plan | None] = {}
    errors: dict[str, float] = {}
    try:
        for candidate in candidates:
            name = candidate.name
            works[name], plans[name] = _work(candidate, shape, arrays, stream)
            arrays[2].copy_from(nans)
            works[name]()
            errors[name] = relative_error(arrays[2].numpy()[sample], expected)
            if not errors[name] < TOLERANCE:
                raise AssertionError(f"{name} is wrong at {shape}: relative error {errors[name]:.2e}")
        seconds = interleaved(works, rounds, 3 if steps >= QUEUE_STEPS else 20, stream)
    finally:
        for array in arrays:
            array.free()
    rows = []
    for candidate in candidates:
        name, plan = candidate.name, plans[candidate.name]
        share = steps / seconds[name] / machine.step_rate("float32")
        row = _row(candidate, shape, seconds[name], share_of_peak=share, relative_error=errors[name])
        if plan:
            moved = plan.loads_with_tiles * 4 + m * shape[2] * 4
            row |= {"predicted_seconds": plan.predicted, "bytes_with_tiles": moved}
        rows.append(row)
    return rows


def on_host(shape: Shape, repeats: int) -> list[Row]:
    """NumPy's product on the host, for the speed-up of the card."""
    M, N = _operands(shape, np.random.default_rng(0))
    seconds = interleaved({"numpy": lambda: np.matmul(M, N)}, repeats, 1)["numpy"]
    return [_row(Candidate("numpy"), shape, seconds)]


def on_cpu(size: int, tiles: tuple[int, ...], rounds: int) -> list[Row]:
    """The reference backend at every tile width beside NumPy's product."""
    shape = (size, size, size)
    M, N = _operands(shape, np.random.default_rng(0))
    expected = M.astype(np.float64) @ N.astype(np.float64)
    candidates = [Candidate("numpy"), *(Candidate("reference", tile) for tile in tiles)]
    works: dict[str, Work] = {
        one.name: partial(matmul, M, N, kernel="reference", tile=one.tile) if one.tile else partial(np.matmul, M, N)
        for one in candidates
    }
    errors = {name: relative_error(work(), expected) for name, work in works.items()}
    seconds = interleaved(works, rounds, 1)
    rate = host_machine(measured=True).step_rate("float32")
    return [
        _row(one, shape, seconds[one.name], share_of_peak=size**3 / seconds[one.name] / rate,
             relative_error=errors[one.name])
        for one in candidates
    ]  # fmt: skip


def _row(candidate: Candidate, shape: Shape, seconds: float, **more: Any) -> Row:
    return speed_row(candidate.kernel, shape, "float32", seconds, tile=candidate.tile, **more)


def _operands(shape: Shape, rng: np.random.Generator) -> tuple[Any, Any]:
    m, k, n = shape
    return rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)


def _work(candidate: Candidate, shape: Shape, arrays: Arrays, stream: Any) -> tuple[Work, Plan | None]:
    if candidate.kernel == "course":
        return _course(candidate.tile, shape, arrays, stream), None
    if candidate.kernel == "cublas":
        return _cublas(arrays), None
    plan = make_plan(problem_of_shape(*shape), describe(DEVICE), candidate.kernel, candidate.tile or None)
    M, N, P = (array.pointer for array in arrays)
    return (lambda: run_plan(plan, DEVICE, stream, M=M, N=N, P=P)), plan


def _course(tile: int, shape: Shape, arrays: Arrays, stream: Any) -> Work:
    text = f"#define TILE_WIDTH {tile}\n" + shipped("bench/course.cu").read_text(encoding="utf-8")
    m, _, n = shape
    arguments = (*(ctypes.c_void_p(array.pointer) for array in arrays), *map(ctypes.c_int, shape))
    launch = Launch.of(text, "course", (math.ceil(n / tile), math.ceil(m / tile)), (tile, tile), arguments)
    launcher = Launcher(Recipe((launch,)), DEVICE)
    return lambda: launcher(int(stream.handle))


def cublas_library() -> str | None:
    """The installed library through which cuBLAS is called, if any."""
    from importlib.util import find_spec

    return next((name for name in ("torch", "cupy") if find_spec(name)), None)


def _cublas(arrays: Arrays) -> Work:
    """float32 without TF32, into the same P, on the same default stream."""
    if cublas_library() == "torch":
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        M, N, P = (torch.as_tensor(array, device="cuda") for array in arrays)
        return lambda: torch.mm(M, N, out=P)
    import cupy

    M, N, P = (cupy.asarray(array) for array in arrays)
    return lambda: cupy.matmul(M, N, out=P)
