"""What is measured: `ladder` climbs the rungs over sizes, `tiles` sweeps TILE_WIDTH over shapes of every kind,
`shapes` takes half precision on a card (float32 and float64 on a CPU) over aligned, ragged and skinny shapes,
`cpu-random` float32 and float64 on a CPU over shapes that nobody chose,
`semirings-random` and `halves-random` other algebras and half precision over such,
`dtypes` the other numbers on a card, speeds and errors,
`mma` takes float64 and mma.sync on a card, and a fused bias and gelu,
`host` is what a call costs the host on tensors that lie somewhere new every time,
`semirings` holds every algebra against the machine's own limit and against those who also can, `linear` is a
layer of a language model, forward and backward, beside torch's, `calls` is what a call costs by library and keyword,
`model` whole training steps, `random` draws shapes that nobody chose, `stacks` and `groups` are many products."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from tilewise.arrays.card import card_count
from tilewise.bench.random_shapes import KINDS, drawn
from tilewise.errors import UsageError
from tilewise.kernels.ladder.model import LADDER

Shape = tuple[int, int, int]
Row = dict[str, Any]

SQUARES = (512, 1024, 2048, 4096, 4097, 8192)
SWEEP_SHAPES: tuple[Shape, ...] = (
    (512,) * 3, (1024,) * 3, (2048,) * 3, (4096,) * 3, (1000,) * 3, (4097,) * 3, (1000, 500, 700), (8192, 256, 8192),
)  # fmt: skip
CPU_SIZES = (64, 128, 256, 512, 1000, 1024)
TILES = (4, 8, 16, 32)
SUITES = (
    *("ladder", "tiles", "shapes", "cpu-random", "dtypes", "mma", "semirings", "linear", "model", "random", "scale"),
    *("semirings-random", "halves-random", "host", "calls", "stacks", "groups"),
)


def pieces(
    suite: str,
    device: str,
    sizes: tuple[int, ...],
    quick: bool,
    threads: int = 1,
    count: int = 30,
    seed: int = 0,
    model: str = "gpt2",
    odd: bool = False,
    compiled: bool = False,
) -> list[Callable[[], list[Row]]]:
    """The suite as a list of measurements to run one by one, so that a caller can show how far it is. `model`, `odd`
    and `compiled` say what `bench model` trains and how."""
    if suite not in SUITES:
        raise UsageError(f"suite {suite!r} is not known; known are {', '.join(SUITES)}")
    if suite == "calls":
        from tilewise.bench import calls

        if device != "cpu":
            raise UsageError("bench calls measures the host's side of a call: pass --device cpu")
        return [partial(calls.contest, library, 3 if quick else 15) for library in calls.libraries()]
    if suite == "random":
        return random_pieces(device, Drawing(), quick)
    if suite in ("stacks", "groups"):
        return list(_many(suite, device, sizes, quick, threads, seed))
    if suite == "scale":
        return list(_scale(device, sizes, quick))
    if suite == "model":
        from tilewise.bench import model as steps

        cases = ("odd",) if odd else ("aligned", "vocabulary")
        kind = device.partition(":")[0]
        return [partial(steps.contest, model, case, kind, compiled, 3 if quick else steps.STEPS) for case in cases]
    if suite == "linear":
        from tilewise.bench import linear

        kind = device.partition(":")[0]
        shape, dtype = (linear.SHAPE, "bfloat16") if kind == "cuda" else ((128, 256, 50257), "float32")
        return [lambda: linear.contest(shape, dtype, 3 if quick else 7, kind)]
    if device == "cpu" and suite == "host":
        raise UsageError("bench host measures calls that launch on a card: pass --device cuda")
    if suite in ("cpu-random", "semirings-random", "halves-random"):
        if device != "cpu":
            raise UsageError(f"bench {suite} measures the CPU's engine: pass --device cpu")
        return list(_cpu_random(suite, count, seed, quick, threads))
    if suite == "dtypes" and device == "cpu":
        raise UsageError("bench dtypes measures a card: pass --device cuda")
    if device == "cpu" and suite == "mma":
        raise UsageError("bench mma measures a card's tensor cores: pass --device cuda")
    if device == "cpu":
        if suite in ("shapes", "semirings"):
            return list(_cpu_engine(suite, sizes, quick, threads))
        return list(_on_cpu(suite, sizes or CPU_SIZES, quick))
    if not card_count():
        from tilewise.arrays.card import open_card

        open_card(device)  # says what is missing
    return list(_on_card(suite, sizes, quick))


def _host_time(sizes: tuple[int, ...], rounds: int) -> Iterator[Callable[[], list[Row]]]:
    """The suite's shapes and twenty that the clock draws; its seed is said, so that they can be drawn again."""
    import importlib.util
    import time

    from tilewise.bench import host_time

    seed = time.time_ns() % 2**32
    sys.stderr.write(f"bench host: twenty shapes drawn with seed {seed}\n")
    shapes = tuple((s, s, s) for s in sizes) or (*host_time.SHAPES, *host_time.drawn(20, seed))
    for library in host_time.LIBRARIES:
        if importlib.util.find_spec(library) is None:
            continue
        for dtype, shape in product(host_time.DTYPES if library == "torch" else ("float32",), shapes):
            yield partial(host_time.contest, shape, dtype, library, rounds)


@dataclass(frozen=True)
class Drawing:
    """What `bench random` draws: so many shapes of every dtype, from a seed."""

    count: int = 20
    seed: int = 0
    dtypes: tuple[str, ...] = tuple(KINDS.values())


def random_pieces(device: str, drawing: Drawing, quick: bool) -> list[Callable[[], list[Row]]]:
    """A measurement for each shape."""
    if device == "cpu":
        raise UsageError("bench random measures a card: pass --device cuda")
    if not card_count():
        from tilewise.arrays.card import open_card

        open_card(device)  # says what is missing
    from tilewise.bench.card_random import contest

    shapes = drawn(drawing.count, drawing.seed, drawing.dtypes)
    return [partial(contest, shape, drawing.seed, 3 if quick else 7) for shape in shapes]


def _many(
    suite: str, device: str, sizes: tuple[int, ...], quick: bool, threads: int, seed: int
) -> Iterator[Callable[[], list[Row]]]:
    """Many products in one call: stacks of one shape, or groups of rows."""
    from tilewise.bench import groups, stacks

    if sizes:
        raise UsageError(f"bench {suite} draws its own sizes: leave --sizes out, and pass --seed for others")
    return (
        stacks.pieces(device, quick, seed, threads)
        if suite == "stacks"
        else groups.pieces(device, quick, seed, threads)
    )


def _on_card(suite: str, sizes: tuple[int, ...], quick: bool) -> Iterator[Callable[[], list[Row]]]:
    from tilewise.bench.card import Entry, contest, host_contest, vendor

    rounds = 3 if quick else 7
    peer = [Entry("cublas")] if vendor() else []
    if suite == "host":
        yield from _host_time(sizes, 2 if quick else 4)
    elif suite == "shapes":
        from tilewise.bench import card_shapes

        cases = tuple(card_shapes.Case((s, s, s)) for s in sizes) or card_shapes.CASES
        for case in cases:
            yield lambda case=case: card_shapes.contest(case, "bfloat16", 3 if quick else 5)  # type: ignore[misc]
        if not sizes:
            yield lambda: card_shapes.host_cost("bfloat16", 3 if quick else 5)
    elif suite == "dtypes":
        from tilewise.bench import card_dtypes
        from tilewise.bench.card_shapes import Case

        for kind in card_dtypes.KINDS:
            layouts = "NT" if kind.startswith("float8") else "NN"
            for case in tuple(Case((s, s, s), layouts) for s in sizes) or card_dtypes.CASES[kind]:
                yield partial(card_dtypes.speed, kind, case, 3 if quick else 5)
        if not sizes:
            for data, depth in product(card_dtypes.DATA, card_dtypes.DEPTHS):
                yield partial(card_dtypes.float32_errors, data, depth)
            for result, data, depth in card_dtypes.FLOAT8_ERRORS:
                yield partial(card_dtypes.float8_errors, result, data, depth)
    elif suite == "mma":
        from tilewise.bench import card_mma
        from tilewise.bench.card_shapes import Case

        for case in tuple(Case((s, s, s)) for s in sizes) or card_mma.DOUBLES:
            yield partial(card_mma.doubles, case, rounds)
        for size in sizes or card_mma.HALVES:
            if size % 8 == 0:
                yield partial(card_mma.halves, size, rounds)
        if not sizes:
            yield partial(card_mma.fused, rounds)
    elif suite == "semirings":
        yield from _card_semirings(sizes, quick)
    elif suite == "ladder":
        for size in sizes or SQUARES:
            shape = (size, size, size)
            entries = [Entry("course", 16), Entry("course", 32)]
            for rung in LADDER.values():
                if rung.whole_tiles_only and size % 32:
                    continue
                widths = (16,) if rung.max_tile == 16 else (16, 32)
                entries += [Entry(rung.name, tile) for tile in widths]
            entries += [Entry("plain"), Entry("bf16x6")]
            yield lambda shape=shape, entries=entries: contest(shape, [*entries, *peer], rounds)  # type: ignore[misc]
            yield lambda shape=shape: host_contest(shape, 3)  # type: ignore[misc]
    else:
        shapes = tuple((s, s, s) for s in sizes) or SWEEP_SHAPES
        for shape in shapes:
            entries = [Entry(kernel, tile) for kernel in ("naive", "tiled_edges", "coarsened") for tile in TILES]
            entries += [Entry("register_tiled", tile) for tile in TILES if tile <= LADDER["register_tiled"].max_tile]
            yield lambda shape=shape, entries=entries: contest(shape, [*entries, *peer], rounds)  # type: ignore[misc]


def _card_semirings(sizes: tuple[int, ...], quick: bool) -> Iterator[Callable[[], list[Row]]]:
    from tilewise.bench import card_semirings as card
    from tilewise.bench.card import vendor

    rounds = 3 if quick else 5
    for ring, dtype, known, usual in card.CASES:
        for size in sizes or (usual,):
            yield partial(card.against_limit, ring, dtype, known, size, rounds)
    yield partial(card.own_semiring, sizes[0] if sizes else 4096, rounds)
    if vendor() == "torch":
        for shape in tuple((s, s, s) for s in sizes) or (*card.SGEMM_SHAPES, *card.SKINNY):
            yield partial(card.sgemm, shape, rounds)
        for signed in (False, True):
            yield partial(card.compiled_min_plus, sizes[0] if sizes else 4096, rounds, signed)
    for size in sizes or ((4096,) if quick else (4096, 16384)):
        yield partial(card.closures, size, rounds)


def _scale(device: str, sizes: tuple[int, ...], quick: bool) -> Iterator[Callable[[], list[Row]]]:
    """Larger than the card, or than memory, or than one process."""
    if device != "cpu":
        from tilewise.bench import scale_card

        yield scale_card.staging_rates
        for dtype, side in (("float32", 90112), ("bfloat16", 153600)):
            for extent in sizes or ((side // 4,) if quick else (side,)):
                square = dtype == "bfloat16"
                yield lambda side=extent, dtype=dtype, square=square: [  # type: ignore[misc]
                    scale_card.contest(side, dtype, square=square)
                ]
        return
    from importlib.util import find_spec

    from tilewise.bench import scale_cpu

    for side in sizes or ((4096,) if quick else (16384,)):
        yield partial(scale_cpu.files, side)
    yield partial(scale_cpu.closure, 3000 if quick else 8000)
    if find_spec("distributed"):
        from tilewise.bench import scale_dask

        yield partial(scale_dask.live_data, 16, 128 if quick else 512)
        yield partial(scale_dask.memory_limit, blocks=8 if quick else 16, side=512)
        yield scale_dask.planned


def _cpu_engine(suite: str, sizes: tuple[int, ...], quick: bool, threads: int) -> Iterator[Callable[[], list[Row]]]:
    from tilewise.bench import semirings, shapes

    rounds = 2 if quick else 5
    if suite == "shapes":
        for dtype in shapes.DTYPES:
            for shape in tuple((s, s, s) for s in sizes) or shapes.SHAPES:
                yield lambda shape=shape, dtype=dtype: shapes.contestants(shape, dtype, threads, rounds)  # type: ignore[misc]
        return
    for case in semirings.CASES:
        yield lambda case=case: semirings.limits([case], threads=threads, rounds=rounds)  # type: ignore[misc]
    yield lambda: semirings.rivals(threads=threads, rounds=rounds)
    yield lambda: semirings.closures(sizes or (1024,), threads, rounds)
    yield lambda: semirings.reachability(threads=threads, rounds=rounds)


def _cpu_random(suite: str, count: int, seed: int, quick: bool, threads: int) -> Iterator[Callable[[], list[Row]]]:
    from tilewise.bench import cpu_random, random_rings, shapes

    if suite != "cpu-random":
        yield from random_rings.pieces(suite, count, seed, quick, threads)
        return
    for shape, dtype in product(cpu_random.draw(count, seed), shapes.DTYPES):
        yield partial(cpu_random.measure, shape, dtype, threads, 3 if quick else 7)


def _on_cpu(suite: str, sizes: tuple[int, ...], quick: bool) -> Iterator[Callable[[], list[Row]]]:
    for size in sizes:
        yield lambda size=size: _cpu_contest(suite, size, 2 if quick else 5)  # type: ignore[misc]


def _cpu_contest(suite: str, size: int, rounds: int) -> list[Row]:
    """The reference engine (at every tile width, for `tiles`) beside NumPy's own product."""
    from tilewise.api import matmul
    from tilewise.backends.reference.limits import measured_machine
    from tilewise.bench.timing import Work, interleaved
    from tilewise.core.accuracy import relative_error

    rng = np.random.default_rng(0)
    M, N = (rng.standard_normal((size, size), np.float32) for _ in range(2))
    expected = M.astype(np.float64) @ N.astype(np.float64)
    contestants: dict[str, tuple[str, int, Work]] = {"numpy": ("numpy", 0, lambda: np.matmul(M, N))}
    for tile in TILES if suite == "tiles" else (16,):
        contestants[f"reference {tile}"] = (
            "reference",
            tile,
            partial(matmul, M, N, kernel="reference", tile=tile),
        )
    errors = {name: relative_error(work(), expected) for name, (_, _, work) in contestants.items()}
    seconds = interleaved({name: work for name, (_, _, work) in contestants.items()}, rounds, 1)
    rate = measured_machine().step_rate("float32")
    return [
        {
            "kernel": kernel,
            "tile": tile,
            "shape": [size] * 3,
            "dtype": "float32",
            "seconds": seconds[name],
            "tflops": 2 * size**3 / seconds[name] / 1e12,
            "share_of_peak": size**3 / seconds[name] / rate,
            "relative_error": errors[name],
            "predicted_seconds": None,
            "bytes_with_tiles": None,
        }
        for name, (kernel, tile, _) in contestants.items()
    ]
