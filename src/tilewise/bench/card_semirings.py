"""Suite `semirings` on a card: every semiring beside the limit of its instructions, measured in the same rounds by
register-only loops (`simt_gemm/tiled/limit.cu`); ieee float32 beside cuBLAS; min_plus beside torch.compile; closures.

Some rows of every product are compared with the CPU backend in the same run.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import Array, dtype_named
from tilewise.algebra.expression import largest, minimum
from tilewise.algebra.semiring import Semiring
from tilewise.api import matmul
from tilewise.arrays.card import default_stream
from tilewise.arrays.device_array import DeviceArray, to_device
from tilewise.backends.cuda.device import describe
from tilewise.backends.cuda.launcher import Launcher
from tilewise.bench.ladder import cublas_library
from tilewise.bench.semirings import operands
from tilewise.bench.suites import Piece, Request, Row, Shape, peer_row
from tilewise.bench.timing import GAP_SECONDS, Work, interleaved, on_card
from tilewise.bench.torch_products import errors_of, is_cold
from tilewise.compose.graph.closure import closure
from tilewise.core.recipe import Launch, Recipe
from tilewise.kernels.simt_gemm.tiled.configs import Config, config_of
from tilewise.kernels.simt_gemm.tiled.text import render_limit

DEVICE = "cuda:0"
SAMPLE = 24  # rows of P that are checked

# (semiring, dtype, what is known of the operands, size). Float32 under min and max has a faster config for operands
# that are not negative: the caller promises it, or the card checks it.
ANY, WEIGHTS, PROMISED = "both signs", "found ≥ 0", "promised ≥ 0"
CASES = (
    *(("min_plus", "float32", known, 4096) for known in (ANY, WEIGHTS, PROMISED)),
    *(("max_times", "float32", known, 4096) for known in (ANY, WEIGHTS)),
    ("max_min", "float32", ANY, 4096),
    *(("min_plus", dtype, "", 4096) for dtype in ("int32", "int16", "float16", "bfloat16", "float64")),
    *(("plus_times", dtype, "", 4096) for dtype in ("int32", "int64", "complex64", "float32")),
    ("logaddexp_plus", "float32", "", 4096),
    ("lor_land", "bool", "", 16384),
)
SGEMM_SHAPES = (
    (2048, 2048, 2048), (2047, 2047, 2047), (4096, 4096, 4096), (4097, 4097, 4097), (5003, 3001, 7013),
    (8192, 8192, 8192), (8191, 8191, 8191), (4096, 4096, 14336), (16384, 16384, 16384),
)  # fmt: skip
SKINNY = ((16, 8192, 8192), (1, 8192, 8192), (8192, 8192, 1))


def pieces(request: Request) -> Iterator[Piece]:
    rounds, sizes = request.rounds(3, 5), request.sizes
    size = sizes[0] if sizes else 4096
    for ring, dtype, known, usual in CASES:
        for side in sizes or (usual,):
            yield partial(against_limit, ring, dtype, known, side, rounds)
    yield partial(own_semiring, size, rounds)
    if cublas_library() == "torch":
        for shape in request.cubes or (*SGEMM_SHAPES, *SKINNY):
            yield partial(sgemm, shape, rounds)
        for signed in (False, True):
            yield partial(compiled_min_plus, size, rounds, signed)
    for side in sizes or ((4096,) if request.quick else (4096, 16384)):
        yield partial(closures, side, rounds)


def against_limit(ring: str, dtype: str, known: str, size: int, rounds: int) -> list[Row]:
    """One row: the speed at an aligned size as a share of the instruction limit in the same rounds, and at size + 1.
    The limit is that of the config for any operands, unless nonnegative ones are promised."""
    algebra = find_semiring(ring).over(dtype_named(dtype))
    nonnegative = known == PROMISED
    config = config_of(algebra, describe(DEVICE), nonnegative)
    limit, limit_steps = limit_work(algebra, config)
    works: dict[str, Work] = {"limit": limit}
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
            "semiring": ring, "dtype": dtype, "known": known, "shape": [size] * 3, "way": config.name,
            "steps_per_second": rate, "instruction_limit": peak, "share_of_limit": rate / peak,
            "ragged_over_aligned": ragged / rate,
        }
    ]  # fmt: skip


def limit_work(algebra: Any, config: Config) -> tuple[Callable[[], Any], int]:
    """The register-only loop of a config, and the steps of one run."""
    machine = describe(DEVICE)
    # few enough accumulators for two resident blocks: with one, latency would be the limit
    rows, cols = (4, 4) if config.word_bytes > 4 or config.sum_words > 1 else (8, 8)
    rounds = 2000 if config.slots <= 2 else 300
    blocks, sets = 2 * machine.units, 4
    values = to_device(np.random.default_rng(0).uniform(1, 2, 8192).astype(np.float32))
    out = DeviceArray((blocks * 256,), algebra.partial, DEVICE)
    arguments = (ctypes.c_void_p(values.pointer), ctypes.c_void_p(out.pointer), ctypes.c_int(rounds), ctypes.c_int(-1))
    launch = Launch.of(render_limit.key(algebra, config, rows, cols), "limit", (blocks,), (256,), arguments)
    launcher, stream = Launcher(Recipe((launch,)), DEVICE), int(getattr(default_stream(DEVICE), "handle", 0))

    def work(keeps: tuple[DeviceArray, DeviceArray] = (values, out)) -> None:
        launcher(stream)

    return work, blocks * 256 * rounds * sets * rows * cols * config.per_word


def sgemm(shape: Shape, rounds: int) -> list[Row]:
    """precision="ieee" beside torch.mm with TF32 off, which has another P."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    m, k, n = shape
    M, N = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
    mine, theirs = torch.empty(m, n, device="cuda"), torch.empty(m, n, device="cuda")
    works: dict[str, Work] = {
        "tilewise": lambda: matmul(M, N, out=mine, precision="ieee"),
        "cublas": lambda: torch.mm(M, N, out=theirs),
    }
    works["cublas"]()
    rows = torch.randperm(m, device="cuda")[:SAMPLE]
    exact = M[rows].double() @ N.double()
    errors_of({"ieee float32": works["tilewise"]}, mine, exact, 5e-6, str(shape), rows)
    if shape in SKINNY:
        copied = torch.empty_like(M if n == 1 else N)
        works["copy"] = lambda: copied.copy_(M if n == 1 else N)
    seconds = on_card(torch, works, rounds, cold=is_cold(M, N, mine))
    size = "×".join(map(str, shape))
    row = peer_row("ieee float32", "torch.mm, TF32 off", size, seconds["tilewise"], seconds["cublas"])
    row["tflops"] = 2 * m * k * n / seconds["tilewise"] / 1e12
    if "copy" in seconds:  # the time to move as many bytes, at the rate of a copy in the same rounds
        floor = seconds["copy"] * (m * k + k * n + m * n) / (2 * copied.numel())
        row["over_memory_floor"] = seconds["tilewise"] / floor
    return [row]


def compiled_min_plus(size: int, rounds: int, signed: bool) -> list[Row]:
    """min_plus written as a broadcast in torch and compiled, as given and with N transposed beforehand, which is
    faster. `signed`: numbers of both signs."""
    import torch

    draw = torch.randn if signed else torch.rand
    M, N = draw(size, size, device="cuda"), draw(size, size, device="cuda")
    transposed, P = N.T.contiguous(), torch.empty(size, size, device="cuda")
    written = torch.compile(lambda a, b: (a[:, :, None] + b[None, :, :]).amin(1))
    better = torch.compile(lambda a, b: (a[:, None, :] + b[None, :, :]).amin(2))
    works: dict[str, Work] = {
        "tilewise": lambda: matmul(M, N, semiring="min_plus", out=P),
        "torch.compile": lambda: written(M, N),
        "torch.compile, N transposed": lambda: better(M, transposed),
    }
    mine = works["tilewise"]().clone()
    for name, work in works.items():
        if not torch.equal(work(), mine):
            raise AssertionError(f"min_plus of tilewise and of {name} differ")
    seconds = on_card(torch, works, rounds)
    ours = seconds.pop("tilewise")
    what = f"min_plus float32, {ANY if signed else WEIGHTS}"
    return [peer_row(what, peer, str(size), ours, theirs) for peer, theirs in seconds.items()]


def own_semiring(size: int, rounds: int) -> list[Row]:
    """A user-defined min_plus, written as Python functions, beside the built-in one."""
    own = Semiring("cheapest", add=minimum, mul=lambda x, y: x + y, zero=largest)
    M, N = operands((size, size, size), "float32")
    Md, Nd, Pd = to_device(M), to_device(N), DeviceArray((size, size), dtype_named("float32"), DEVICE)
    works = {
        name: partial(matmul, Md, Nd, semiring=ring, out=Pd) for name, ring in (("own", own), ("min_plus", "min_plus"))
    }
    seconds = interleaved(works, rounds, 2, default_stream(DEVICE), GAP_SECONDS)
    return [peer_row("a semiring of one's own", "min_plus", str(size), seconds["own"], seconds["min_plus"])]


def closures(size: int, rounds: int) -> list[Row]:
    """The closure of a dense graph beside a min_plus product of its size: both take size³ steps."""
    M = np.ascontiguousarray(operands((size, size, 1), "float32")[0])
    W, P = to_device(M), DeviceArray((size, size), dtype_named("float32"), DEVICE)
    part = to_device(M[:300, :300])
    np.testing.assert_allclose(closure(part).numpy(), closure(M[:300, :300]), rtol=1e-6)
    works = {"closure": lambda: closure(W).free(), "min_plus": lambda: matmul(W, W, semiring="min_plus", out=P)}
    seconds = interleaved(works, rounds, 1, default_stream(DEVICE), GAP_SECONDS)
    return [peer_row("closure float32", "min_plus product", str(size), seconds["closure"], seconds["min_plus"])]


def check_rows(P: Array, M: Array, N: Array, ring: str) -> None:
    """Compare some rows of P with the CPU backend: equal for min, max, or and integers, close for sums of floats."""
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
