"""Products on a named instruction set, into a P that is full of something else: every cell must be written, and right.

A case is drawn from a seed alone, so that it can be compiled here (`--compile`) and executed elsewhere, by an emulated
Python that finds the object code in its cache: python tests/backends/cpu/poisoned.py neon --seed 1 --random 200
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))  # oracle and strategies, also when run as a program

from fenced import fenced

from operands import CARD_DTYPES, SEMIRINGS, values, weighs, works
from oracle import assert_close, oracle
from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.to_llvm import part
from tilewise.backends.cpu import run as cpu
from tilewise.backends.cpu.family import views
from tilewise.backends.cpu.kernels.weights.text import weights_module
from tilewise.backends.cpu.limits import NOMINAL, with_instructions
from tilewise.backends.cpu.ready import arithmetic_of
from tilewise.backends.cpu.registry import FAMILIES, choose
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.target import (
    AMX,
    Cpu,
    Target,
    executable,
    has_byte_dots,
    host_target,
    is_arm,
    known_target,
    plain_target,
    probed,
    sets_of,
)
from tilewise.backends.cpu.runtime.workers import pool_module
from tilewise.core.blocking import RegisterTile, register_tile
from tilewise.core.plan import Plan
from tilewise.core.problem import Layout, Problem, row_major
from tilewise.planning.choose import make_plan

LAYOUTS = ("rows", "columns", "apart", "backwards")
UNABLE = "this machine executes no more than"
NARROWEST = known_target("generic")
EXTENTS = (1, 2, 3, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 31, 33, 47, 49, 64, 65, 97, 100, 130)


@dataclass(frozen=True)
class Case:
    """`kernel` pins one; None takes what would be chosen."""

    shape: tuple[int, int, int]
    dtype: str
    semiring: str
    kernel: str | None = None
    layouts: tuple[str, str, str] = ("rows", "rows", "rows")
    accumulate: bool = False

    def __str__(self) -> str:
        m, k, n = self.shape
        how = "".join(layout[0] for layout in self.layouts) + (" onto P" if self.accumulate else "")
        return f"{m}x{k}x{n} {self.dtype} {self.semiring} {self.kernel or 'as chosen'} {how}"


def laid(x: np.ndarray, layout: str) -> np.ndarray:
    """The same matrix in fresh memory with another layout."""
    if layout == "columns":
        return np.asfortranarray(x)
    if layout == "apart":
        return np.repeat(x, 2, axis=1)[:, ::2]
    return np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1] if layout == "backwards" else x


def strides_of(shape: tuple[int, int], layout: str) -> Layout:
    rows, cols = shape
    if layout == "columns":
        return Layout(1, rows)
    if layout == "apart":
        return Layout(2 * cols, 2)
    return Layout(-cols, -1) if layout == "backwards" else row_major(rows, cols)


def problem_of(case: Case) -> Problem:
    (m, k, n), number = case.shape, DTYPES[case.dtype]
    where = [strides_of(s, config) for s, config in zip(((m, k), (k, n), (m, n)), case.layouts, strict=True)]
    return Problem(m, k, n, (), number, number, find_semiring(case.semiring), *where, accumulate=case.accumulate)


@lru_cache(maxsize=8)
def planned(case: Case, target: Target) -> Plan:
    problem = problem_of(case)
    return make_plan(problem, with_instructions(NOMINAL, 1, target), case.kernel)


def poison(dtype: np.dtype[Any]) -> Any:
    """What no product here makes, where the dtype leaves room for it."""
    return np.nan if dtype.kind in "fcV" else dtype.type(True) if dtype.kind == "b" else dtype.type(77)


def operand(shape: tuple[int, int], case: Case, seed: int) -> np.ndarray:
    """Random numbers; where nothing is summed, infinities and NaN among them, quiet and signalling."""
    selects = case.semiring not in ("plus_times", "logaddexp_plus", "lor_land")
    x = values(shape, case.dtype, seed, specials=selects, weights=weighs(case.semiring))
    if selects and case.dtype in ("float32", "float64"):
        bits, signalling = ("u4", 0x7F800001) if case.dtype == "float32" else ("u8", 0x7FF0000000000001)
        x.view(bits)[np.random.default_rng(seed).random(shape) < 0.05] = signalling
    return x


def quiet(x: np.ndarray) -> np.ndarray:
    """A signalling NaN is a NaN like any other; NumPy's fmin, which the oracle takes, does not skip it on ARM."""
    return np.where(np.isnan(x), x.dtype.type(np.nan), x) if x.dtype in ("f4", "f8") else x


@dataclass(frozen=True)
class Known:
    """Operands, the right product, and how far off it may be; none where it is exact."""

    M: np.ndarray
    N: np.ndarray
    P: np.ndarray
    error: np.ndarray | None

    def corner(self, m: int, n: int) -> Known:
        """The first m rows by the first n columns, as a separate product."""
        N, error = np.ascontiguousarray(self.N[:, :n]), None if self.error is None else self.error[:m, :n]
        return Known(self.M[:m], N, self.P[:m, :n], error)


def known(case: Case, seed: int) -> Known:
    m, k, n = case.shape
    M, N = operand((m, k), case, seed), operand((k, n), case, seed + 1)
    P, error = oracle(quiet(M), quiet(N), case.semiring)
    return Known(M, N, P, None if error is None else np.broadcast_to(error, P.shape))


def check(case: Case, target: Target, seed: int, right: Known | None = None, fence: bool = False) -> str:
    """Multiply and hold the product against the oracle; the kernel that ran comes back. With a `fence` operands and P
    stand against closed pages, by the seed before or behind them."""
    m, _, n = case.shape
    plan = planned(case, target)
    right = right or known(case, seed)
    P = laid(np.full((m, n), poison(plan.problem.result.numpy), plan.problem.result.numpy), case.layouts[2])
    if case.accumulate:
        P[...] = plan.problem.algebra.zero
    M, N = laid(right.M, case.layouts[0]), laid(right.N, case.layouts[1])
    if fence:
        print(f"{case} by {plan.kernel} on {target.name}, seed {seed}", file=sys.stderr, flush=True)
        M, N, P = (fenced(x, bool(seed >> i & 1)) for i, x in enumerate((M, N, P)))
    cpu.run(plan, M, N, P, target=target)
    try:
        assert_close(P, right.P, right.error)
    except AssertionError as wrong:
        raise AssertionError(f"{case} by {plan.kernel} on {target.name}, seed {seed}: {wrong}") from None
    return plan.kernel


def check_sweep(target: Target, ring: str, dtype: str, kernel: str, seed: int, share: float = 1.0) -> list[str]:
    """Every case of a sweep. What it should be is a corner of one product for each k: the oracle runs eight times,
    not ten thousand."""
    MR, NR = widest_tile(target, ring, dtype, kernel)
    most = 2 * max(MR, NR) + 1

    @lru_cache
    def whole(k: int) -> Known:
        return known(Case((most, k, most), dtype, ring), seed + k)

    return [
        check(case, target, seed + case.shape[1], whole(case.shape[1]).corner(case.shape[0], case.shape[2]))
        for case in sweep_cases(target, ring, dtype, kernel, seed, share)
    ]


def text_of(case: Case, target: Target) -> str:
    """The LLVM that the case runs."""
    plan = planned(case, target)
    assert plan.blocking is not None
    return FAMILIES[plan.kernel].text(arithmetic_of(plan.problem, plan.blocking, target))


def pairs() -> list[tuple[str, str]]:
    return [(ring, dtype) for ring in SEMIRINGS for dtype in CARD_DTYPES if works(ring, dtype)]


def random_cases(seed: int, count: int, kinds: int | None = None) -> Iterator[Case]:
    """Any product; `kinds` semirings and dtypes only, where compiling all of them would take too long."""
    draw = random.Random(seed)
    chosen = pairs() if kinds is None else draw.sample(pairs(), kinds)
    for _ in range(count):
        ring, dtype = draw.choice(chosen)
        m, k, n = (draw.choice(EXTENTS) if draw.random() < 0.7 else draw.randint(1, 300) for _ in range(3))
        k = draw.choice((k, k, draw.randint(380, 800))) if m * n < 2000 else k
        lay_m, lay_n, lay_p = draw.choices(LAYOUTS, (5, 2, 1, 1), k=3)
        yield Case((m, k, n), dtype, ring, None, (lay_m, lay_n, lay_p), draw.random() < 0.2)


def stretched_cases(seed: int, count: int, kinds: int = 2) -> Iterator[Case]:
    """A handful of rows or columns, with a k that may be cut into split_k."""
    draw = random.Random(seed)
    chosen = draw.sample(
        [
            (ring, dtype)
            for ring, dtype in pairs()  # k of halves is never cut
            if "float16" not in dtype and fits(Case((3, 600, 40), dtype, ring, "few_rows"), NARROWEST)
        ],
        kinds,
    )
    for _ in range(count):
        ring, dtype = draw.choice(chosen)
        m, k, n = (
            draw.randint(1, 16),
            draw.choice((draw.randint(1, 100), draw.randint(500, 1700))),
            draw.randint(1, 150),
        )
        lay_m, onto = draw.choice(LAYOUTS), draw.random() < 0.2
        if draw.random() < 0.3:  # the transposed product: a handful of columns
            yield Case((n, k, m), dtype, ring, "few_rows", ("columns", lay_m, "columns"), onto)
        else:
            yield Case((m, k, n), dtype, ring, "few_rows", (lay_m, "rows", "rows"), onto)


DEPTHS = (1, 2, 3, 4, 5, 8, 9, 17)  # of k, in sweeps of the extents
LONG = (64, 65, 67, 70, 129)  # of a kernel that takes whole vectors along k


def widest_tile(target: Target, ring: str, dtype: str, kernel: str) -> tuple[int, int]:
    """MR and NR."""
    number = DTYPES[dtype]
    problem = Problem(9, 9, 9, (), number, number, find_semiring(ring), *[row_major(9, 9)] * 3)
    cut = choose(problem, with_instructions(NOMINAL, 1, target))
    return cut.MR, cut.NR if kernel == "bits" or cut.columns == 1 else cut.NR // cut.columns


def sweep_cases(target: Target, ring: str, dtype: str, kernel: str, seed: int, share: float = 1.0) -> Iterator[Case]:
    """One kernel, pinned: every n to 2·NR + 1 with every m to 2·MR + 1, every m to 2·NR + 1 with an n by chance.

    Lanes of one or two bytes make wide tiles, and there every n comes with an m by chance. `share` of the cases only.
    """
    draw = random.Random(f"{seed} {target.name} {ring} {dtype} {kernel}")
    MR, NR = widest_tile(target, ring, dtype, kernel)
    tall = range(1, 2 * MR + 2) if NR <= 64 else (0,)
    extents = [(m or draw.randint(1, 2 * MR + 1), n) for m in tall for n in range(1, 2 * NR + 2)]
    extents += [(m, draw.randint(1, 2 * NR + 1)) for m in range(1, 2 * NR + 2)]
    for m, n in extents:
        if draw.random() >= share:
            continue
        k = draw.choice(LONG if kernel == "short_dots" else DEPTHS)
        layouts = draw.choice(LAYOUTS), draw.choice(("rows", "rows", *LAYOUTS)), draw.choice(("rows", "rows", *LAYOUTS))
        configs = (layouts, ("rows", "rows", "rows"))
        tried = (Case((m, k, cols), dtype, ring, kernel, config) for cols in (n, 1) for config in configs)
        yield from itertools.islice((case for case in tried if fits(case, target)), 1)


@lru_cache(maxsize=64)
def tile_of(target: Target, ring: str, dtype: str) -> RegisterTile:
    """As the planner has it, for whatever kernel."""
    ring_, partial = find_semiring(ring), find_semiring(ring).over(DTYPES[dtype]).partial
    rows, vectors = register_tile(target.vector_bytes, target.registers, partial, ring_.add, ring_.mul)
    lanes = target.vector_bytes // part(partial).itemsize
    has = with_instructions(NOMINAL, 1, target)
    return RegisterTile(rows, vectors * lanes, has.vector_bytes, has.registers, has.byte_dots, has.matrix_tiles)


def fits(case: Case, target: Target) -> bool:
    """Whether the kernel takes the case, by its own `takes`: a plan of a kernel that refuses it fails slowly."""
    assert case.kernel is not None
    problem, tile = problem_of(case), tile_of(target, case.semiring, case.dtype)
    return any(FAMILIES[case.kernel].takes(problem, view, tile) for view in views(problem))


def kinds_of(seed: int, count: int) -> list[tuple[str, str, str]]:
    """(semiring, dtype, kernel) by chance."""
    draw = random.Random(seed)
    chosen = [(ring, dtype, kernel) for ring, dtype in pairs() for kernel in FAMILIES]
    return draw.sample(chosen, count)


def here(name: str) -> Target:
    """An instruction set of the machine this runs on; "host" is the best with all that this CPU has beside it, which is
    what people's products run on."""
    return host_target() if name == "host" else plain_target(name, probed())


def targets_on(cpu: Cpu) -> dict[str, Target]:
    """What a CPU executes, with and without instructions that take bytes by fours, and with AMX."""
    found = {name: plain_target(name, cpu) for name in sets_of(cpu)}
    fours = [name for name in found if has_byte_dots(name, cpu)]
    found |= {f"{name}, bytes by fours": plain_target(name, cpu, byte_dots=True) for name in fours}
    amx = all(cpu.features.get(name, False) for name in AMX)
    return found | ({"avx512, AMX": plain_target("avx512", cpu, byte_dots=True, amx=True)} if amx else {})


def sets_here() -> tuple[str, ...]:
    """What runs here, each kind of code once: ARM's "generic" is exactly plain NEON, and the host has more."""
    return ("host", "neon") if is_arm() else executable()


def cases_of(options: argparse.Namespace, target: Target) -> Iterator[Case]:
    yield from random_cases(options.seed, options.random, options.kinds)
    for ring, dtype, kernel in kinds_of(options.seed, options.sweep):
        yield from sweep_cases(target, ring, dtype, kernel, options.seed, options.share)


def checked(options: argparse.Namespace, target: Target) -> list[str]:
    """The kernels that multiplied, a name for each product."""
    cases = random_cases(options.seed, options.random, options.kinds)
    ran = [check(case, target, options.seed + i, fence=options.fence) for i, case in enumerate(cases)]
    for kind in kinds_of(options.seed, options.sweep):
        ran += check_sweep(target, *kind, options.seed, options.share)
    return ran


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--random", type=int, default=0, help="products of any kind")
    parser.add_argument("--kinds", type=int, help="of this many semirings and dtypes only")
    parser.add_argument("--sweep", type=int, default=0, help="kernels for a sweep of small extents")
    parser.add_argument("--share", type=float, default=1.0, help="of a sweep's extents")
    parser.add_argument("--fence", action="store_true", help="operands against closed pages; says each product first")
    parser.add_argument("--compile", action="store_true", help="only put the object code into the cache")
    options = parser.parse_args()
    if not options.compile and options.target not in ("host", *executable()):
        sys.exit(f"{UNABLE} {executable()}")
    target = known_target(options.target) if options.compile else here(options.target)
    if options.compile:
        texts = {text_of(case, target) for case in cases_of(options, target)}
        looks = (weights_module(size) for size in (1, 2, 4, 8))  # of integers, before sums are made of them
        for text in (pool_module(target), *looks, *sorted(texts)):
            compile.kept(text, target)
        print(f"{options.target}: {len(texts)} kernels compiled")
        return
    built: list[str] = []
    real = compile.object_code
    compile.object_code = lambda text, target: built.append(text) or real(text, target)  # type: ignore[func-returns-value]
    ran = checked(options, target)
    kernels = ", ".join(f"{kernel} {ran.count(kernel)}" for kernel in FAMILIES if kernel in ran)
    print(f"{options.target}: {len(ran)} products right ({kernels}); {len(built)} kernels compiled here")


if __name__ == "__main__":
    main()
