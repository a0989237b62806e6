"""Integers of one and two bytes, several k per instruction: exact and wrapping as in NumPy, whichever operand is
unsigned."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import numpy as np
import pytest
from inner_loops import innermost
from poisoned import laid, strides_of, targets_on

from seeds import next_seed, sample_size
from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cpu import run as cpu
from tilewise.backends.cpu.kernels.dots.text import widest
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic, arithmetic
from tilewise.backends.cpu.kernels.short_rows.model import tile_rows
from tilewise.backends.cpu.limits import NOMINAL, with_instructions
from tilewise.backends.cpu.registry import FAMILIES
from tilewise.backends.cpu.runtime.target import Target, is_arm, known_target, probed
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.errors import UsageError
from tilewise.planning.choose import make_plan

SEED = int(os.environ.get("TILEWISE_TEST_SEED", next_seed() % 2**31))
DOTS = {"avx512": "+avx512vnni,+fast-dpwssd", "neon": "+dotprod"}
SIGNS = ("int8", "uint8", "int16", "uint16")


TARGETS = targets_on(probed())
KERNELS = ("interleaved", "short_dots", "short_rows")


def planned(problem: Problem, target: Target, kernel: str) -> Plan:
    return make_plan(problem, with_instructions(NOMINAL, 1, target), kernel)


def problem_of(
    shape: tuple[int, int, int], types: tuple[str, str], wanted: str | None, configs: tuple[str, str, str], onto: bool
) -> Problem:
    m, k, n = shape
    where = [strides_of(s, config) for s, config in zip(((m, k), (k, n), (m, n)), configs, strict=True)]
    number = None if wanted is None else DTYPES[wanted]
    plus_times = find_semiring("plus_times")
    return Problem(m, k, n, (), *(DTYPES[d] for d in types), plus_times, *where, accumulate=onto, requested=number)


def product(
    problem: Problem, M: np.ndarray, N: np.ndarray, configs: tuple[str, str, str], target: Target, kernel: str
) -> np.ndarray:
    P = laid(np.full((problem.m, problem.n), 77, problem.result.numpy), configs[2])
    cpu.run(planned(problem, target, kernel), laid(M, configs[0]), laid(N, configs[1]), P, target=target)
    return P


def any_takes(kind: tuple[tuple[str, str], str | None], target: Target) -> bool:
    """Whether the instruction set has an instruction for such integers."""
    try:
        planned(problem_of((20, 70, 20), *kind, ("rows", "rows", "rows"), False), target, "interleaved")
    except UsageError:
        return False
    return True


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", TARGETS)
def test_random_products_of_short_integers_are_exact(name: str, kernel: str) -> None:
    print(f"seed {SEED}")
    draw, rng, target, ran = random.Random(SEED), np.random.default_rng(SEED), TARGETS[name], 0
    kinds = [((m, n), w) for m in SIGNS for n in SIGNS for w in (None, "int16", "int32", "uint32")]
    kinds = [kind for kind in kinds if any_takes(kind, target)]
    for types, wanted in draw.sample(kinds, min(3, len(kinds))):
        for _ in range(sample_size(12)):
            m, n = (draw.choice((1, 2, 7, 8, 16, 17, 47, 48, 49, 97, draw.randint(1, 130))) for _ in range(2))
            k = draw.choice((1, 2, 3, 4, 5, 31, 32, 33, 63, draw.randint(1, 200), draw.randint(1000, 2200)))
            configs = draw.choices(("rows", "columns", "apart", "backwards"), (4, 3, 1, 1), k=3)
            if kernel == "short_rows":
                m, n, configs[1:] = draw.randint(1, 32), draw.randint(64, 300), ("rows", "rows")
            if kernel == "short_dots":
                k, configs[0] = max(k, draw.randint(64, 200)), "rows"
            onto = draw.random() < 0.2
            problem = problem_of((m, k, n), types, wanted, tuple(configs), onto)
            M, N = (
                rng.integers(np.iinfo(d).min, np.iinfo(d).max, s, d, endpoint=True)
                for d, s in zip(types, ((m, k), (k, n)), strict=True)
            )
            try:
                P = product(problem, M, N, tuple(configs), target, kernel)
            except UsageError:
                continue  # no instruction makes that, or it is not the kernel's shape
            right = (M.astype(np.int64) @ N.astype(np.int64) + 77 * onto).astype(problem.result.numpy)
            case = f"{kernel} {name} {m}x{k}x{n} {types} {wanted} {configs}, seed {SEED}"
            np.testing.assert_array_equal(P, right, case)
            ran += 1
    assert ran or is_arm()


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("types", [("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8")])
def test_nothing_saturates_where_all_bytes_are_extreme(name: str, types: tuple[str, str]) -> None:
    """vpmaddubsw would: its sums of two products have 16 bits."""
    configs, kernel = ("rows", "rows", "rows"), random.Random(SEED).choice(KERNELS)
    problem = problem_of((9, 70, 70), types, "int32", configs, False)
    for extreme in ("min", "max"):
        x, y = (getattr(np.iinfo(d), extreme) for d in types)
        M, N = np.full((9, 70), x, types[0]), np.full((70, 70), y, types[1])
        try:
            P = product(problem, M, N, configs, TARGETS[name], kernel)
        except UsageError:
            assert TARGETS[name].by_lane
            return
        assert set(P.ravel().tolist()) == {70 * x * y}


def k_pack_arithmetic(name: str, dtype: str, k_pack: int, features: str) -> Arithmetic:
    number, target = DTYPES[dtype], known_target(name)
    target = replace(target, features=f"{target.features},{features}")
    algebra = find_semiring("plus_times").over(DTYPES["int32"])
    return arithmetic(algebra, number, number, target, k_pack=k_pack)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("name", "dtype", "k_pack", "features", "instruction"),
    [
        ("avx512", "int8", 4, DOTS["avx512"], "vpdpbusd"),
        ("avx512", "int16", 2, DOTS["avx512"], "vpdpwssd"),
        ("avx512", "int16", 2, "", "vpmaddwd"),
        ("avx2", "int8", 2, "", "vpmaddwd"),
        ("neon", "int8", 4, DOTS["neon"], "sdot"),
        ("neon", "uint8", 4, DOTS["neon"], "udot"),
    ],
)
def test_the_loop_is_made_of_one_instruction(
    name: str, dtype: str, k_pack: int, features: str, instruction: str
) -> None:
    a = k_pack_arithmetic(name, dtype, k_pack, features)
    tile = f"tile_packed_packed_{a.MR}x{a.tile[1]}"
    loops = [loop for loop in innermost(FAMILIES["interleaved"].text(a), a.target) if loop.function == tile]
    loop = max(loops, key=lambda loop: loop.instructions)
    count = loop.count(rf"\t{instruction}\t")
    assert loop.spills == 0, loop
    assert count == (1 if instruction == "vpmaddwd" else 4) * a.MR * a.tile[1], loop
    adds = count if instruction == "vpmaddwd" else 0
    assert count + adds >= 0.64 * loop.instructions, loop


THIN = [
    ("avx512", "int8", 4, DOTS["avx512"], r"vpdpbusd"),
    ("avx512", "int16", 2, "", r"vpmaddwd"),
    ("avx2", "int8", 2, "", r"vpmaddwd"),
    ("neon", "int8", 4, DOTS["neon"], r"sdot"),
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("name", "dtype", "k_pack", "features", "instruction"), THIN)
def test_few_rows_and_columns_stay_in_registers(
    name: str, dtype: str, k_pack: int, features: str, instruction: str
) -> None:
    """A tile interleaves as many rows of N as a word has elements by `k_pack · log2(k_pack)` instructions, and loads
    and raises each; a tile of dot products loads a vector of each row and column."""
    a = k_pack_arithmetic(name, dtype, k_pack, features)
    rows, columns = tile_rows(a), widest(a)
    tiles = {
        "short_rows": (
            f"alone{rows}",
            rows * k_pack,
            k_pack * (1 if k_pack == 2 else 2) + 2 * k_pack + rows + 14,
        ),
        "short_dots": (f"dot4x{columns}", 4 * columns, 2 * (4 + columns) + 12),
    }
    for kernel, (tile, dots, beside) in tiles.items():
        loops = [loop for loop in innermost(FAMILIES[kernel].text(a), a.target) if loop.function == tile]
        loop = min((x for x in loops if x.count(instruction)), key=lambda loop: loop.instructions)
        adds = dots if instruction == "vpmaddwd" else 0
        assert loop.count(instruction) == dots, loop
        assert loop.spills == 0, loop
        assert loop.instructions <= dots + adds + beside, loop
