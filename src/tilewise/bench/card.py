"""Contestants on a card: each is queued on the default stream and writes a product that is then checked."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.arrays.card import default_stream
from tilewise.arrays.device_array import DeviceArray, to_device
from tilewise.backends.cuda.device import describe
from tilewise.backends.cuda.launcher import Launcher
from tilewise.bench.timing import Work, interleaved
from tilewise.core.accuracy import relative_error
from tilewise.core.plan import Plan
from tilewise.core.problem import problem_of_shape
from tilewise.core.recipe import Launch, Recipe
from tilewise.planning.choose import make_plan
from tilewise.planning.launchers import run_plan
from tilewise.system.resources import shipped

DEVICE = "cuda:0"
TOLERANCE = 5e-6  # float32 sums of a few thousand terms; NaN never passes
QUEUE_STEPS = 2**31  # smaller products are queued in longer rounds
SAMPLE = 64  # rows of P that are held against float64

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Entry:
    """A rung at a tile, or a peer by its name."""

    kernel: str
    tile: int = 0


@dataclass
class Arena:
    """The operands of one shape on the card, and what float64 says of a sample of P's rows."""

    shape: Shape
    M: DeviceArray
    N: DeviceArray
    P: DeviceArray
    rows: Any
    expected: Any

    def free(self) -> None:
        for array in (self.M, self.N, self.P):
            array.free()


def open_arena(shape: Shape, seed: int = 0) -> Arena:
    m, k, n = shape
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((m, k), np.float32)
    N = rng.standard_normal((k, n), np.float32)
    rows = np.sort(rng.choice(m, min(m, SAMPLE), replace=False))
    expected = M[rows].astype(np.float64) @ N.astype(np.float64)
    return Arena(shape, to_device(M), to_device(N), to_device(np.full((m, n), np.nan, np.float32)), rows, expected)


def contest(shape: Shape, entries: list[Entry], rounds: int) -> list[dict[str, Any]]:
    """One row for each entry, all timed in the same rounds on the same operands."""
    arena = open_arena(shape)
    stream = default_stream(DEVICE)
    machine = describe(DEVICE)
    m, k, n = shape
    try:
        works: dict[str, Work] = {}
        plans: dict[str, Plan | None] = {}
        errors: dict[str, float] = {}
        for entry in entries:
            name = f"{entry.kernel} {entry.tile}" if entry.tile else entry.kernel
            work, plans[name] = _work(entry, arena, stream)
            arena.P.copy_from(np.full((m, n), np.nan, np.float32))
            work()
            errors[name] = relative_error(arena.P.numpy()[arena.rows], arena.expected)
            if not errors[name] < TOLERANCE:
                raise AssertionError(f"{name} is wrong at {shape}: relative error {errors[name]:.2e}")
            works[name] = work
        repeats = 3 if m * k * n >= QUEUE_STEPS else 20
        seconds = interleaved(works, rounds, repeats, stream)
    finally:
        arena.free()
    rows = []
    for entry, name in zip(entries, works, strict=True):
        plan = plans[name]
        rows.append(
            {
                "kernel": entry.kernel,
                "tile": entry.tile,
                "shape": list(shape),
                "dtype": "float32",
                "seconds": seconds[name],
                "tflops": 2 * m * k * n / seconds[name] / 1e12,
                "share_of_peak": m * k * n / seconds[name] / machine.step_rate("float32"),
                "relative_error": errors[name],
                "predicted_seconds": plan.predicted if plan else None,
                "bytes_with_tiles": plan.loads_with_tiles * 4 + m * n * 4 if plan else None,
            }
        )
    return rows


def host_contest(shape: Shape, repeats: int) -> list[dict[str, Any]]:
    """NumPy's own product on the host beside the card, for the speed-up people ask about; its operands stay at home."""
    m, k, n = shape
    rng = np.random.default_rng(0)
    M, N = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    seconds = interleaved({"numpy": lambda: np.matmul(M, N)}, repeats, 1)["numpy"]
    return [
        {
            "kernel": "numpy",
            "tile": 0,
            "shape": list(shape),
            "dtype": "float32",
            "seconds": seconds,
            "tflops": 2 * m * k * n / seconds / 1e12,
            "share_of_peak": None,
            "relative_error": None,
            "predicted_seconds": None,
            "bytes_with_tiles": None,
        }
    ]


def _work(entry: Entry, arena: Arena, stream: Any) -> tuple[Work, Plan | None]:
    if entry.kernel == "course":
        return _course(entry.tile, arena, stream), None
    if entry.kernel == "cublas":
        return _cublas(arena), None
    plan = make_plan(problem_of_shape(*arena.shape), describe(DEVICE), entry.kernel, entry.tile or None)
    M, N, P = arena.M.pointer, arena.N.pointer, arena.P.pointer
    return (lambda: run_plan(plan, DEVICE, stream, M=M, N=N, P=P)), plan


def _course(tile: int, arena: Arena, stream: Any) -> Work:
    text = f"#define TILE_WIDTH {tile}\n" + shipped("bench/course.cu").read_text(encoding="utf-8")
    m, k, n = arena.shape
    pointers = (ctypes.c_void_p(x.pointer) for x in (arena.M, arena.N, arena.P))
    arguments = (*pointers, *(ctypes.c_int(extent) for extent in (m, k, n)))
    launch = Launch.of(text, "course", (math.ceil(n / tile), math.ceil(m / tile)), (tile, tile), arguments)
    launcher = Launcher(Recipe((launch,)), DEVICE)
    return lambda: launcher(int(stream.handle))


def vendor() -> str | None:
    """Which library can call cuBLAS for us, if one is installed."""
    from importlib.util import find_spec

    return next((name for name in ("torch", "cupy") if find_spec(name)), None)


def _cublas(arena: Arena) -> Work:
    """float32 without TF32, into the same P, on the same default stream."""
    if vendor() == "torch":
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        M, N, P = (torch.as_tensor(a, device="cuda") for a in (arena.M, arena.N, arena.P))
        multiply: Callable[[], Any] = lambda: torch.mm(M, N, out=P)  # noqa: E731
        return multiply
    import cupy

    M, N, P = (cupy.asarray(a) for a in (arena.M, arena.N, arena.P))
    return lambda: cupy.matmul(M, N, out=P)
