"""Every rung, the plain kernels and the tensor cores at small odd sizes, for compute-sanitizer: `make sanitize`.

Exits 1 when a product is wrong.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

import tilewise as tw
import tilewise.kernels.simt_gemm.tiled.model as plain_tiles
import tilewise.kernels.wgmma_gemm.wgmma_half.model as tensor_tiles
import tilewise.planning.choose as planning
from tilewise.algebra.dtypes import DTYPES
from tilewise.arrays.card import default_stream
from tilewise.backends.cuda.device import describe
from tilewise.core.problem import Layout, problem_of_shape
from tilewise.kernels.ladder.model import LADDER
from tilewise.kernels.simt_gemm.tiled.configs import config_of
from tilewise.planning.launchers import run_plan

all_tiles = plain_tiles.tiles_of
wrong = 0
for kernel, rung in LADDER.items():
    for m, k, n in ((32, 32, 32), (1, 1, 1), (17, 33, 5), (3, 2, 31), (130, 19, 129)):
        if rung.whole_tiles_only and (m % 16 or k % 16 or n % 16):
            continue
        for semiring in ("plus_times", "min_plus"):
            rng = np.random.default_rng(m)
            M, N = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
            with (
                tw.to_device(M) as Md,
                tw.to_device(N) as Nd,
                tw.matmul(Md, Nd, kernel=kernel, tile=16, semiring=semiring) as Pd,
            ):
                wrong += not np.allclose(Pd.numpy(), tw.matmul(M, N, semiring=semiring), rtol=1e-4, atol=1e-4)
for semiring, dtype, kernel, (m, k, n) in (
    ("plus_times", np.float32, "plain", (130, 37, 131)),
    ("plus_times", np.float32, None, (3, 3000, 70)),
    ("min_plus", np.float32, None, (129, 300, 5)),
    ("min_plus", np.float16, "plain", (33, 301, 40)),
    ("max_plus", np.float64, "plain", (70, 2000, 70)),
    ("lor_land", np.bool_, "plain", (70, 100, 70)),
):
    rng = np.random.default_rng(m)
    M, N = (rng.integers(0, 2 if dtype is np.bool_ else 9, s).astype(dtype) for s in ((m, k), (k, n)))
    with tw.to_device(M) as Md, tw.to_device(N) as Nd, tw.matmul(Md, Nd, kernel=kernel, semiring=semiring) as Pd:
        wrong += not np.array_equal(Pd.numpy(), tw.matmul(M, N, semiring=semiring))
for semiring, nonnegative in (("plus_times", False), ("min_plus", False), ("min_plus", True)):
    config = config_of(tw.semirings[semiring].over(DTYPES["float32"]), describe("cuda:0"), nonnegative)
    for tile in all_tiles(config):  # the planner would take small tiles for products as small as these
        plain_tiles.tiles_of = lambda config, tile=tile: (tile,)
        plain_tiles.choose.cache_clear()
        plain_tiles.fitting.cache_clear()
        planning._plan.cache_clear()
        M, N = (np.random.default_rng(1).integers(0, 9, s).astype(np.float32) for s in ((259, 71), (71, 263)))
        with (
            tw.to_device(M) as Md,
            tw.to_device(N) as Nd,
            tw.matmul(Md, Nd, kernel="plain", semiring=semiring, nonnegative=nonnegative, precision="ieee") as Pd,
        ):
            wrong += not np.array_equal(Pd.numpy(), tw.matmul(M, N, semiring=semiring))
plain_tiles.tiles_of = all_tiles
plain_tiles.choose.cache_clear()
plain_tiles.fitting.cache_clear()
planning._plan.cache_clear()
chosen, thin_from = plain_tiles.choose, plain_tiles.THIN_FROM
plain_tiles.THIN_FROM = (
    64  # thin edges while the last tiles run, and tiles in pieces of k, in products as small as these
)
for semiring, (m, k, n), tail in (
    ("plus_times", (257, 71, 259), None),
    ("plus_times", (257, 200, 512), plain_tiles.Tail(2, 3, 96, 64)),
    ("min_plus", (261, 200, 263), plain_tiles.Tail(1, 3, 96, 64)),
):
    widest = all_tiles(config_of(tw.semirings[semiring].over(DTYPES["float32"]), describe("cuda:0")))[0]

    def choose(problem, machine, tile=widest, tail=tail):
        rows, cols = (plain_tiles.covered(x, side, 1.0) for x, side in ((problem.m, tile.rows), (problem.n, tile.cols)))
        return replace(chosen(problem, machine), tile=tile, pieces=1, rows=rows, cols=cols, tail=tail)

    plain_tiles.choose = choose
    planning._plan.cache_clear()
    M, N = (np.random.default_rng(1).integers(0, 9, s).astype(np.float32) for s in ((m, k), (k, n)))
    with (
        tw.to_device(M) as Md,
        tw.to_device(N) as Nd,
        tw.matmul(Md, Nd, kernel="plain", semiring=semiring, precision="ieee") as Pd,
    ):
        wrong += not np.array_equal(Pd.numpy(), tw.matmul(M, N, semiring=semiring))
plain_tiles.choose, plain_tiles.THIN_FROM = chosen, thin_from
seeking, plain_tiles.SEEK_SECONDS = plain_tiles.SEEK_SECONDS, -1.0  # operands looked through, however small
for least in (0, -3):
    plain_tiles.choose.cache_clear()
    M, N = (np.random.default_rng(1).integers(least, 9, s).astype(np.float32) for s in ((259, 71), (71, 264)))
    with tw.to_device(M) as Md, tw.to_device(N) as Nd, tw.matmul(Md, Nd, kernel="plain", semiring="min_plus") as Pd:
        wrong += not np.array_equal(Pd.numpy(), tw.matmul(M, N, semiring="min_plus"))
plain_tiles.SEEK_SECONDS = seeking
plain_tiles.choose.cache_clear()
planning._plan.cache_clear()
for dtype, (m, k, n) in (
    (np.float64, (129, 37, 67)),
    (np.float64, (1030, 20, 1025)),
    (np.float16, (130, 70, 131)),
    (np.float16, (64, 1600, 64)),
    (np.int8, (70, 150, 129)),
):
    if describe("cuda:0").arch < "sm_80":
        break
    rng = np.random.default_rng(m)
    M, N, bias = (rng.integers(-3, 4, s).astype(dtype) for s in ((m, k), (k, n), (n,)))
    after = {} if dtype is np.int8 or m > 1000 else {"bias": bias, "activation": "relu"}
    with tw.to_device(M) as Md, tw.to_device(N) as Nd, tw.to_device(bias) as bd:
        on_the_card = {**after, "bias": bd} if after else {}
        with tw.matmul(Md, Nd, kernel="mma_sync", **on_the_card) as Pd:
            wrong += not np.array_equal(Pd.numpy(), tw.matmul(M, N, **after))
W = np.random.default_rng(0).integers(1, 99, (150, 150)).astype(np.float32)
with tw.to_device(W) as Wd:
    wrong += not np.array_equal(tw.closure(Wd).numpy(), tw.closure(W))
halves = ((129, 65, 257), (64, 520, 64), (513, 72, 120), (260, 40, 264), (99, 136, 520))
for m, k, n in halves if describe("cuda:0").arch.startswith("sm_90") else ():
    rng = np.random.default_rng(m)
    M, N = (rng.standard_normal(shape, np.float32).astype(np.float16) for shape in ((m, k), (k, n)))
    exact = M.astype(np.float32) @ N.astype(np.float32)
    kinds = {}
    for config in tensor_tiles.configs(problem_of_shape(m, k, n, "float16"), describe("cuda:0")):
        special = (config.splits > 1, config.classes, config.edge_rows, config.edge_cols, config.transposed)
        key = (config.routes, config.tile.rows, config.tile.cluster, config.tile.beside, *special)
        kinds.setdefault(key, config)
    for config in kinds.values():
        tensor_tiles.best_config = lambda problem, machine, config=config: (1e-9, config)
        planning._plan.cache_clear()
        with tw.to_device(M) as Md, tw.to_device(N) as Nd, tw.matmul(Md, Nd, kernel="wgmma_half") as Pd:
            wrong += not np.allclose(Pd.numpy(), exact, rtol=1e-2, atol=0.3)
thin = (129, 447, 257)  # a longer k would be cut
for layouts in ("NN", "NT", "TN", "TT") if describe("cuda:0").arch.startswith("sm_90") else ():
    (m, k, n), rng = thin, np.random.default_rng(1)
    M, N = (rng.standard_normal(shape, np.float32).astype(np.float16) for shape in ((m, k), (k, n)))
    of_m, of_n = (
        Layout(1, rows) if transposed == "T" else Layout(cols, 1)
        for transposed, rows, cols in zip(layouts, (m, k), (k, n), strict=True)
    )
    problem = replace(problem_of_shape(m, k, n, "float16"), layout_m=of_m, layout_n=of_n)
    for config in tensor_tiles.configs(problem, describe("cuda:0")):
        if config.edge_rows and config.tile.rows == 128 and config.tile.cols == 256:
            tensor_tiles.best_config = lambda problem, machine, config=config: (1e-9, config)
            planning._plan.cache_clear()
            plan = planning.make_plan(problem, describe("cuda:0"), "wgmma_half")
            lines = (np.ascontiguousarray(x.T if t == "T" else x) for x, t in zip((M, N), layouts, strict=True))
            with tw.to_device(next(lines)) as Md, tw.to_device(next(lines)) as Nd, tw.to_device(M[:, :n]) as Pd:
                stream = default_stream("cuda:0")
                run_plan(plan, "cuda:0", stream, M=Md.pointer, N=Nd.pointer, P=Pd.pointer)
                exact = M.astype(np.float32) @ N.astype(np.float32)
                wrong += not np.allclose(Pd.numpy(), exact, rtol=1e-2, atol=0.3)
print(f"{wrong} wrong products")
sys.exit(bool(wrong))
