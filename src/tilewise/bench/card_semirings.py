"""Suite `semirings` on a card: every algebra against the limit of its own instructions, measured in the same rounds by
register-only loops (`kernels/plain/limit.cu`); ieee float32 beside cuBLAS; min_plus beside torch.compile; closures.

Every product is checked in the same run: rows of it against the cpu engine, which computes them its own way.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import dtype_named
from tilewise.api import matmul
from tilewise.arrays.card import default_stream
from tilewise.arrays.device_array import DeviceArray, to_device
from tilewise.backends.cuda.device import describe
from tilewise.backends.cuda.launcher import Launcher
from tilewise.bench.card_shapes import CACHE_BYTES, GAP_SECONDS, rotating
from tilewise.bench.timing import interleaved
from tilewise.core.recipe import Launch, Recipe
from tilewise.kernels.plain.text import render_limit
from tilewise.kernels.plain.ways import Way, way_of

DEVICE = "cuda:0"
Row = dict[str, Any]
Array = np.ndarray[Any, np.dtype[Any]]
SAMPLE = 24  # rows of P that are checked

# (semiring, dtype, what is known of the operands, size). Float32 under min and max has a faster way for operands that
# are not negative: whether they are is promised, or found on the card.
ANY, WEIGHTS, PROMISED = "both signs", "found ≥ 0", "promised ≥ 0"
CASES = (
    ("min_plus", "float32", ANY, 4096),
    ("min_plus", "float32", WEIGHTS, 4096),
    ("min_plus", "float32", PROMISED, 4096),
    ("max_times", "float32", ANY, 4096),
    ("max_times", "float32", WEIGHTS, 4096),
    ("max_min", "float32", ANY, 4096),
    ("min_plus", "int32", "", 4096),
    ("min_plus", "int16", "", 4096),
    ("min_plus", "float16", "", 4096),
    ("min_plus", "bfloat16", "", 4096),
    ("min_plus", "float64", "", 4096),
    ("plus_times", "int32", "", 4096),
    ("plus_times", "int64", "", 4096),
    ("plus_times", "complex64", "", 4096),
    ("plus_times", "float32", "", 4096),
    ("logaddexp_plus", "float32", "", 4096),
    ("lor_land", "bool", "", 16384),
)
SGEMM_SHAPES = (
    (2048, 2048, 2048), (2047, 2047, 2047), (4096, 4096, 4096), (4097, 4097, 4097), (5003, 3001, 7013),
    (8192, 8192, 8192), (8191, 8191, 8191), (4096, 4096, 14336), (16384, 16384, 16384),
)  # fmt: skip
SKINNY = ((16, 8192, 8192), (1, 8192, 8192), (8192, 8192, 1))


def against_limit(ring: str, dtype: str, known: str, size: int, rounds: int) -> list[Row]:
    """One row: the aligned size as a share of the instructions' limit in the same rounds, and one more (ragged). The
    limit is that of the way for any operands, unless more is promised of them."""
    algebra = find_semiring(ring).over(dtype_named(dtype))
    nonnegative = known == PROMISED
    way = way_of(algebra, describe(DEVICE), nonnegative)
    limit, limit_steps = limit_work(algebra, way)
    works: dict[str, Callable[[], Any]] = {"limit": limit}
    held: list[DeviceArray] = []
    ragged_m, ragged_n = operands((size + 1,) * 3, dtype, signed=known == ANY)
    for n in (size, size + 1):
        M, N = (np.ascontiguousarray(x[:n, :n]) for x in (ragged_m, ragged_n))
        Md, Nd, Pd = to_device(M), to_device(N), DeviceArray((n, n), algebra.result, DEVICE)
        held += [Md, Nd, Pd]
        work = partial(matmul, Md, Nd, semiring=ring, out=Pd, precision="ieee", nonnegative=nonnegative)
        work()
        check_rows(Pd.numpy(), M, N, ring)
        works[str(n)] = work
    seconds = interleaved(works, rounds, 2, default_stream(DEVICE), GAP_SECONDS)
    for array in held:
        array.free()
    rate, ragged = size**3 / seconds[str(size)], (size + 1) ** 3 / seconds[str(size + 1)]
    peak = limit_steps / seconds["limit"]
    return [
        {
            "semiring": ring, "dtype": dtype, "known": known, "shape": [size] * 3, "way": way.name,
            "steps_per_second": rate, "instruction_limit": peak, "share_of_limit": rate / peak,
            "ragged_over_aligned": ragged / rate,
        }
    ]  # fmt: skip


def limit_work(algebra: Any, way: Way) -> tuple[Callable[[], Any], int]:
    """The register-only loop of a way, and how many steps one run of it takes."""
    machine = describe(DEVICE)
    # few enough sums for a second block beside: with one alone, latencies would set the pace, not the instructions
    rows, cols = (4, 4) if way.word_bytes > 4 or way.sum_words > 1 else (8, 8)
    rounds = 2000 if way.slots <= 2 else 300
    blocks, sets = 2 * machine.units, 4
    words = to_device(np.random.default_rng(0).uniform(1, 2, 8192).astype(np.float32))
    out = DeviceArray((blocks * 256,), algebra.partial, DEVICE)
    arguments = (ctypes.c_void_p(words.pointer), ctypes.c_void_p(out.pointer), ctypes.c_int(rounds), ctypes.c_int(-1))
    launch = Launch.of(render_limit.named(algebra, way, rows, cols), "limit", (blocks,), (256,), arguments)
    launcher, stream = Launcher(Recipe((launch,)), DEVICE), int(getattr(default_stream(DEVICE), "handle", 0))

    def work(keeps: tuple[DeviceArray, DeviceArray] = (words, out)) -> None:
        launcher(stream)

    return work, blocks * 256 * rounds * sets * rows * cols * way.per_word


def sgemm(shape: tuple[int, int, int], rounds: int) -> list[Row]:
    """precision="ieee" beside torch.mm with TF32 off, into tensors of its own."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    m, k, n = shape
    M, N = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
    mine, theirs = torch.empty(m, n, device="cuda"), torch.empty(m, n, device="cuda")
    works: dict[str, Callable[[], Any]] = {
        "tilewise": lambda: matmul(M, N, out=mine, precision="ieee"),
        "cublas": lambda: torch.mm(M, N, out=theirs),
    }
    for work in works.values():
        work()
    rows = torch.randperm(m, device="cuda")[:SAMPLE]
    exact = M[rows].double() @ N.double()
    error = float((mine[rows].double() - exact).norm() / exact.norm())
    if not error < 5e-6:
        raise AssertionError(f"ieee float32 is wrong at {shape}: relative error {error:.2e}")
    if shape in SKINNY:
        copied = torch.empty_like(M if n == 1 else N)
        works["copy"] = lambda: copied.copy_(M if n == 1 else N)
    seconds = rotating(works, rounds, cold=4 * (m * k + k * n + m * n) < CACHE_BYTES)
    size = "×".join(map(str, shape))
    row = against("ieee float32", "torch.mm, TF32 off", size, seconds["tilewise"], seconds["cublas"])
    row["tflops"] = 2 * m * k * n / seconds["tilewise"] / 1e12
    if "copy" in seconds:  # what it takes to move as many bytes, at the rate of a copy in the same rounds
        floor = seconds["copy"] * (m * k + k * n + m * n) / (2 * copied.numel())
        row["over_memory_floor"] = seconds["tilewise"] / floor
    return [row]


def compiled_min_plus(size: int, rounds: int, signed: bool) -> list[Row]:
    """min_plus as people write it in torch, compiled; and with N turned beforehand, which suits it better. Weights that
    are not negative, or numbers of both signs."""
    import torch

    draw = torch.randn if signed else torch.rand
    M, N = draw(size, size, device="cuda"), draw(size, size, device="cuda")
    turned, P = N.T.contiguous(), torch.empty(size, size, device="cuda")
    written = torch.compile(lambda a, b: (a[:, :, None] + b[None, :, :]).amin(1))
    better = torch.compile(lambda a, b: (a[:, None, :] + b[None, :, :]).amin(2))
    works: dict[str, Callable[[], Any]] = {
        "tilewise": lambda: matmul(M, N, semiring="min_plus", out=P),
        "torch.compile": lambda: written(M, N),
        "torch.compile, N turned": lambda: better(M, turned),
    }
    mine = works["tilewise"]().clone()
    for name, work in works.items():
        if not torch.equal(work(), mine):
            raise AssertionError(f"min_plus of tilewise and of {name} differ")
    seconds = rotating(works, rounds, cold=False)
    ours = seconds.pop("tilewise")
    what = f"min_plus float32, {ANY if signed else WEIGHTS}"
    return [against(what, peer, str(size), ours, theirs) for peer, theirs in seconds.items()]


def own_semiring(size: int, rounds: int) -> list[Row]:
    """A person's min_plus, written as Python functions, beside the built-in one."""
    from tilewise.algebra.expression import largest, minimum
    from tilewise.algebra.semiring import Semiring

    own = Semiring("cheapest", add=minimum, mul=lambda x, y: x + y, zero=largest)
    M, N = operands((size, size, size), "float32")
    Md, Nd, Pd = to_device(M), to_device(N), DeviceArray((size, size), dtype_named("float32"), DEVICE)
    works = {
        name: partial(matmul, Md, Nd, semiring=ring, out=Pd) for name, ring in (("own", own), ("min_plus", "min_plus"))
    }
    seconds = interleaved(works, rounds, 2, default_stream(DEVICE), GAP_SECONDS)
    return [against("a semiring of one's own", "min_plus", str(size), seconds["own"], seconds["min_plus"])]


def closures(size: int, rounds: int) -> list[Row]:
    """closure of a dense graph beside one min_plus product of its size: both take size³ steps."""
    from tilewise.compose.graph.closure import closure

    M = np.ascontiguousarray(operands((size, size, 1), "float32")[0])
    W, P = to_device(M), DeviceArray((size, size), dtype_named("float32"), DEVICE)
    part = to_device(M[:300, :300])
    np.testing.assert_allclose(closure(part).numpy(), closure(M[:300, :300]), rtol=1e-6)
    works = {"closure": lambda: closure(W).free(), "min_plus": lambda: matmul(W, W, semiring="min_plus", out=P)}
    seconds = interleaved(works, rounds, 1, default_stream(DEVICE), GAP_SECONDS)
    return [against("closure float32", "min_plus product", str(size), seconds["closure"], seconds["min_plus"])]


def against(what: str, peer: str, size: str, seconds: float, peer_seconds: float) -> Row:
    return {
        "what": what, "peer": peer, "size": size, "seconds": seconds, "peer_seconds": peer_seconds,
        "times_faster": peer_seconds / seconds,
    }  # fmt: skip


def operands(shape: tuple[int, int, int], dtype: str, *, signed: bool = False) -> tuple[Array, Array]:
    """Random, never zeros: weights from 0.1 to 1 (half of them negative, if signed), small whole numbers, truths one in
    a hundred."""
    m, k, n = shape
    rng = np.random.default_rng(0)
    number = dtype_named(dtype).numpy

    def matrix(rows: int, cols: int) -> Array:
        if dtype == "bool":
            return rng.random((rows, cols), np.float32) < 0.01
        if number.kind in "iu":
            return rng.integers(0, 100, (rows, cols)).astype(number)
        real = rng.random((rows, cols), np.float32) * 0.9 + 0.1
        if signed:
            real *= rng.integers(0, 2, (rows, cols), np.int8) * 2 - 1
        if number.kind == "c":
            return (real + 1j * rng.random((rows, cols), np.float32)).astype(number)
        return real.astype(number)

    return matrix(m, k), matrix(k, n)


def check_rows(P: Array, M: Array, N: Array, ring: str) -> None:
    """Some rows of P, against the cpu engine: to the bit for min, max, or and integers, closely for sums of floats."""
    rows = np.random.default_rng(1).choice(len(M), min(len(M), SAMPLE), replace=False)
    expected = matmul(np.ascontiguousarray(M[rows]), N, semiring=find_semiring(ring), device="cpu")
    algebra = find_semiring(ring).over(dtype_named(str(M.dtype)))
    if algebra.partial.kind in "fc" and not find_semiring(ring).selective:
        scale = float(np.abs(expected).max())
        right = bool(np.abs(P[rows] - expected).max() <= 1e-4 * scale)
    else:
        right = np.array_equal(P[rows], expected)
    if not right:
        raise AssertionError(f"{ring} over {M.dtype} is wrong at {math.prod(P.shape)} cells' size")
