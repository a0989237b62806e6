"""Drawn products with `reproducible="everywhere"`: many of a kind by warm kernels, one digest for each hundred or two.

    python tests/support/drawn_bits.py [COUNT] [--seed 1] [--jobs 2] [--threads 1] [--device cpu|cuda]
        [--by matmul|defined|memory:TIMES|dask:WORKERS] [--kinds float32,min_plus] [--save FILE] [--compare FILE]

`memory:2` streams each product within twice the least budget for it, `dask:5` multiplies chunks on five workers and
`dask` on threads; all of them with `--plain`.

Two runs with the same COUNT and seed draw the same products, whatever the machine, so that their last lines can be
compared; `--compare FILE` of a run with `--save FILE` names the batches that differ. `--by defined` computes them in C
from the definition. Another instruction set: TILEWISE_INSTRUCTION_SET.

Operands are views into a few pools of numbers, P is a view into an arena: any offset, leading dimension, order and
stack, sides of 0 and 1 included. The digest is of the whole arena, so that a store beside P is seen as well.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import multiprocessing
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

BATCH = 200  # products of a batch
KINDS = (
    ("float32", "plus_times"), ("float64", "plus_times"), ("bfloat16", "plus_times"), ("float16", "plus_times"),
    ("complex64", "plus_times"), ("complex128", "plus_times"), ("float8_e4m3fn", "plus_times"),
    ("float32", "min_plus"), ("float32", "max_times"), ("float16", "max_plus"), ("float64", "min_max"),
)  # fmt: skip
POOL, ARENA = 1 << 21, 1 << 20  # numbers
STEPS = 400_000  # of a product at most


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def splitmix(count: int, seed: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


@cache
def pool(name: str, which: str) -> np.ndarray:
    """Numbers of many exponents, some −0; `strange`: NaN of any bits, infinities and subnormal numbers besides."""
    if name.startswith("complex"):
        return (
            pool("float64" if name == "complex128" else "float32", which)
            .repeat(2)[: 2 * POOL - 1][1:]
            .copy()
            .view(name)
        )
    z = splitmix(POOL, {"usual": 1, "strange": 2, "arena": 3}[which])
    reach = 4 if name.startswith("float8") else 9
    exponent = (z & np.uint64(0xFF)).astype(np.int64) % (2 * reach) - reach
    x = np.ldexp(1 + (z >> np.uint64(12)).astype(np.float64) / 2.0**52, exponent)
    x *= 1 - 2 * ((z >> np.uint64(8)) & np.uint64(1)).astype(np.float64)
    chance = (z >> np.uint64(9)) & np.uint64(7)
    x[(chance == 0) & (exponent > 0)] = -0.0
    dtype = dtype_of(name)
    rare = splitmix(POOL, 9) % np.uint64(997)
    with np.errstate(all="ignore"):
        if which == "strange":
            tiny = float(ml_dtypes.finfo(dtype).tiny)
            x = np.where(chance == 1, x * tiny, x)
            x = np.where(rare == 0, np.inf, np.where(rare == 1, -np.inf, np.where(rare == 2, -np.nan, x)))
        made = x.astype(dtype)
    if which == "strange" and name in ("float32", "float64"):
        bits = made.view(f"u{dtype.itemsize}")
        bits[rare == 3] = np.array(np.nan, dtype).view(bits.dtype) | bits.dtype.type(0x1234)
    return made


@dataclass(frozen=True)
class View:
    """A matrix, or a stack of them, in a pool or in the arena."""

    at: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # of elements

    def of(self, memory: Any) -> Any:
        if not isinstance(memory, np.ndarray):
            return memory.as_strided(self.shape, self.strides, self.at)
        strides = [step * memory.itemsize for step in self.strides]
        return np.lib.stride_tricks.as_strided(memory[self.at :], self.shape, strides)


@dataclass(frozen=True)
class Product:
    """One drawn product."""

    M: View
    N: View
    P: View
    pools: tuple[str, str]
    onto: bool


def drawn_view(rng: random.Random, stack: tuple[int, ...], rows: int, cols: int, room: int) -> View:
    """Row-major, column-major or with both strides larger; aligned or not."""
    which, gap = rng.random(), rng.choice((0, 0, 1, 3, 8))
    if which < 0.5:
        own = (cols + gap, 1)
    elif which < 0.9:
        own = (1, rows + gap)
    else:
        own = (2 * cols + gap, 2)
    reach = 1 + sum(step * max(0, extent - 1) for step, extent in zip(own, (rows, cols), strict=True))
    apart = reach + rng.choice((0, 5, 16)) if stack and rng.random() < 0.8 else 0
    if room > 1 and apart * math.prod(stack) + reach > room:
        apart = 0  # all members are one
    at = rng.randrange(max(1, room - reach - apart * math.prod(stack)))
    return View(at - at % 16 if rng.random() < 0.5 else at, (*stack, rows, cols), (*[apart] * len(stack), *own))


def side(rng: random.Random) -> int:
    return rng.choice((0, 1, 1, 2)) if rng.random() < 0.15 else int(2 ** rng.uniform(0, 8))


def drawn(rng: random.Random, taken: int, accumulates: bool) -> tuple[Product, int]:
    """A product whose P begins behind `taken` numbers of the arena, and where the next one begins."""
    m, n = side(rng), side(rng)
    k = rng.choice((0, 1, 2, 511, 512, 513, 1024, 1537)) if rng.random() < 0.25 else int(2 ** rng.uniform(0, 11.5))
    while m * n * k > STEPS:
        m, n = -(-m // 2), -(-n // 2)
        k = k if m * n > 16 else k // 2
    stack = (rng.randrange(4),) if rng.random() < 0.12 else ()
    M, N = drawn_view(rng, stack, m, k, POOL - 1), drawn_view(rng, stack, k, n, POOL - 1)
    P = drawn_view(rng, stack, m, n, 1)
    if len(P.shape) == 3 and P.strides[0] == 0:
        P = View(0, P.shape, (max(1, P.strides[1] * m, P.strides[2] * n), *P.strides[1:]))
    begin = taken + rng.choice((0, 0, 1, 7))
    reach = 1 + sum(step * max(0, extent - 1) for step, extent in zip(P.strides, P.shape, strict=True))
    pools = tuple("strange" if rng.random() < 0.15 else "usual" for _ in "MN")
    onto = accumulates and rng.random() < 0.3
    return Product(M, N, View(begin, P.shape, P.strides), pools, onto), -(-(begin + reach) // 16) * 16


def drawn_batch(seed: int, number: int, accumulates: bool = True, count: int = BATCH) -> list[Product]:
    rng, products, taken = random.Random(f"{seed} {number}"), list[Product](), 0
    while len(products) < count:
        product, end = drawn(rng, taken, accumulates)
        if end > ARENA:
            break
        products.append(product)
        taken = end
    return products


class Multiplier:
    """How a product is computed, and in which memory."""

    def __init__(self, kind: tuple[str, str], by: str, device: str) -> None:
        (self.name, self.ring), self.by, self.device = kind, by, device
        self.result = np.dtype(np.float32) if self.name.startswith("float8") else dtype_of(self.name)
        self.later: list[tuple[np.ndarray, Any]] = []  # P and its product by Dask
        self.pools = {which: self.placed(pool(self.name, which)) for which in ("usual", "strange")}

    def placed(self, x: np.ndarray) -> Any:
        if self.device == "cpu":
            return x
        import torch

        kind = getattr(torch, x.dtype.name)
        plain = (
            x
            if x.dtype.kind in "fc" and x.dtype.name in np.sctypeDict
            else x.view(f"u{x.itemsize}").view(f"i{x.itemsize}")
        )
        made = torch.from_numpy(plain.copy())
        return (made if made.dtype == kind else made.view(kind)).cuda()

    def arena(self) -> Any:
        kind = "float32" if self.name.startswith("float8") else self.name
        repeated = np.resize(pool(kind, "arena"), ARENA + 64)
        return self.placed(repeated)

    def into(self, product: Product, arena: Any) -> None:
        import tilewise as tw

        M, N = (x.of(self.pools[which]) for x, which in zip((product.M, product.N), product.pools, strict=True))
        P = product.P.of(arena)
        how: dict[str, Any] = {"semiring": self.ring, "reproducible": "everywhere"}
        if self.by == "matmul":
            tw.matmul(M, N, out=P, accumulate=product.onto, **how)
        elif self.by == "defined":
            self._by_definition(M, N, P, product.onto)
        else:
            for at in np.ndindex(*P.shape[:-2]):
                self._elsewhere(M[at], N[at], P[at], how)

    def finish(self) -> None:
        """Compute what Dask has been given, at once: a cluster takes half a second for each call."""
        if self.later:
            import dask

            how = {} if ":" in self.by else {"scheduler": "threads"}
            made = dask.compute(*(lazy for _, lazy in self.later), **how)
            for (P, _), product in zip(self.later, made, strict=True):
                P[...] = product
            self.later.clear()

    def _by_definition(self, M: np.ndarray, N: np.ndarray, P: np.ndarray, onto: bool) -> None:
        from defined_bits import defined

        for at in np.ndindex(*P.shape[:-2]):
            P[at] = defined(M[at], N[at], self.ring, P[at] if onto else None, self.result)

    def _elsewhere(self, M: np.ndarray, N: np.ndarray, P: np.ndarray, how: dict[str, Any]) -> None:
        import tilewise as tw

        by, _, number = self.by.partition(":")
        if by == "memory":
            P[...] = tw.matmul(M, N, memory=int(number) * least_budget(M, N, self.ring), **how)
            return
        import dask.array as da

        cut = tuple(max(1, extent // 2 + extent % 3) for extent in (*M.shape, N.shape[1]))
        left, right = da.from_array(M, chunks=cut[:2]), da.from_array(N, chunks=(max(1, M.shape[1] // 3), cut[2]))
        self.later.append((P, tw.matmul(left, right, **how)))


def least_budget(M: np.ndarray, N: np.ndarray, ring: str) -> int:
    """Bytes below which no tile of the product fits."""
    import tilewise as tw
    from tilewise.errors import TooLargeError

    try:
        tw.matmul(M, N, semiring=ring, reproducible="everywhere", memory=1)
    except TooLargeError as error:
        found = re.search(r"least that works is ([\d,]+) bytes", str(error))
        return int(found[1].replace(",", "")) if found else 0
    return 1  # nothing to multiply


@contextmanager
def workers_of(by: str) -> Iterator[None]:
    """The cluster of `dask:WORKERS` as the scheduler; nothing for others."""
    if not by.startswith("dask:"):
        yield
        return
    import distributed

    how = {"threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=int(by.split(":")[1]), **how) as cluster, distributed.Client(cluster):
        yield


def digest_of(by: Multiplier, products: list[Product]) -> str:
    arena = by.arena()
    for product in products:
        by.into(product, arena)
    by.finish()
    if by.device != "cpu":
        import torch

        arena = (torch.view_as_real(arena) if arena.is_complex() else arena).view(torch.uint8).cpu().numpy().reshape(-1)
    return hashlib.sha256(arena.view(np.uint8)[: ARENA * by.result.itemsize].tobytes()).hexdigest()[:16]


def compile_texts(kinds: list[tuple[str, str]], o: argparse.Namespace, batches: int = 3) -> int:
    """The kernels of a few batches of each kind for the card, by all cores at once; the number of texts."""
    from tilewise.algebra.builtin import find_semiring
    from tilewise.algebra.dtypes import dtype_of as kind_of
    from tilewise.backends.cuda.builders import build, workers_for
    from tilewise.backends.cuda.compile import missing
    from tilewise.core.problem import Layout, Problem
    from tilewise.dispatch.execute import machine_of
    from tilewise.kernels.recipes import recipe_of
    from tilewise.planning.choose import make_plan

    machine, texts = machine_of("cuda:0"), set[str]()
    for kind in kinds:
        number, ring = kind_of(dtype_of(kind[0])), find_semiring(kind[1])
        for batch in range(batches):
            for x in drawn_batch(o.seed, 1000 * KINDS.index(kind) + batch, not o.plain):
                layouts = (
                    Layout(*v.strides[-2:], v.strides[:-2], v.at * number.itemsize % 16 or 16) for v in (x.M, x.N, x.P)
                )
                m, k, n = *x.M.shape[-2:], x.N.shape[-1]
                if 0 in x.P.shape:
                    continue
                p = Problem(m, k, n, x.P.shape[:-2], number, number, ring, *layouts, x.onto, reproducible="everywhere")
                texts |= {step.source for step in recipe_of(make_plan(p, machine)).steps if hasattr(step, "source")}
    needed = missing(texts, machine.arch)
    build(needed, machine.arch, workers_for(len(needed)), lambda *_: None)
    return len(needed)


def digests(task: tuple[tuple[str, str], list[int], argparse.Namespace]) -> list[tuple[int, str, int, str]]:
    """(batch, kind, products, digest) of some batches of one kind, in a process of their own."""
    import tilewise as tw

    kind, numbers, o = task
    tw.set_num_threads(o.threads)
    by, made = Multiplier(kind, o.by, o.device), []
    with workers_of(o.by):
        for number in numbers:
            products = drawn_batch(o.seed, number, not o.plain)
            made.append((number, " ".join(kind), len(products), digest_of(by, products)))
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=100_000)
    for name, usual in (("seed", 1), ("jobs", 2), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    for name, usual in (("by", "matmul"), ("device", "cpu"), ("kinds", ""), ("save", ""), ("compare", "")):
        parser.add_argument(f"--{name}", default=usual)
    parser.add_argument("--plain", action="store_true", help="nothing is accumulated, as streams and Dask need it")
    o = parser.parse_args()
    kinds = [kind for kind in KINDS if not o.kinds or ",".join(kind).startswith(tuple(o.kinds.split(";")))]
    each = -(-o.count // (BATCH * len(kinds)))
    tasks = []
    for kind in kinds:
        numbers = [1000 * KINDS.index(kind) + i for i in range(each)]
        parts = max(1, min(each, -(-o.jobs * 2 // len(kinds))))
        tasks += [(kind, numbers[part::parts], o) for part in range(parts)]
    started = time.monotonic()
    if o.device != "cpu":
        count = compile_texts(kinds, o)
        print(f"{count} kernels compiled in {time.monotonic() - started:.0f} s", flush=True)
    with multiprocessing.get_context("spawn").Pool(o.jobs) as workers:
        lines = sorted(line for part in workers.imap_unordered(digests, tasks, 1) for line in part)
    text = "".join(f"{number} {kind} {count} {digest}\n" for number, kind, count, digest in lines)
    if o.save:
        Path(o.save).write_text(text)
    wrong = []
    if o.compare:
        known = dict(line.split(" ", 1) for line in Path(o.compare).read_text().splitlines())
        wrong = [line for line in text.splitlines() if known.get(line.split(" ", 1)[0]) != line.split(" ", 1)[1]]
        print("\n".join(f"differs: {line}" for line in wrong[:20]))
    whole = hashlib.sha256(text.encode()).hexdigest()[:16]
    print(
        f"seed {o.seed}: {sum(line[2] for line in lines):,} products of {len(kinds)} kinds by {o.by} on {o.device}, "
        f"{o.threads} threads, {time.monotonic() - started:.0f} s: {whole}"
        + (f"; {len(wrong)} of {len(lines)} batches differ" if o.compare else "")
    )
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
