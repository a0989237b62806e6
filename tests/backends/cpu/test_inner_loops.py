"""The loops that products are made of, as machine code: nothing is spilled, and little is done beside the arithmetic.

Counted in the assembly that LLVM makes, so that NEON's are looked at on any machine.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache

import pytest
from inner_loops import Loop, innermost

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cpu.kernels.floyd.text import floyd_module
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic, arithmetic
from tilewise.backends.cpu.kernels.shared.exact_tile import ExactForm
from tilewise.backends.cpu.kernels.shared.grid import tallest, widest
from tilewise.backends.cpu.limits import NOMINAL, with_instructions
from tilewise.backends.cpu.peak import peak_module, sums_of
from tilewise.backends.cpu.registry import FAMILIES, choose
from tilewise.backends.cpu.runtime.target import known_target
from tilewise.core.problem import Problem, row_major


def of(target: str, ring: str, dtype: str) -> Arithmetic:
    return arithmetic(find_semiring(ring).over(DTYPES[dtype]), DTYPES[dtype], DTYPES[dtype], known_target(target))


@lru_cache(maxsize=8)
def loops_of(kernel: str, a: Arithmetic) -> list[Loop]:
    return list(innermost(FAMILIES[kernel].text(a), a.target))


def main_loop(kernel: str, a: Arithmetic, tile: str) -> Loop:
    """The longest loop of the register tile whose name ends so."""
    return max((x for x in loops_of(kernel, a) if x.function == f"tile_{tile}"), key=lambda loop: loop.instructions)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("cpu", ["generic", "neoverse-n1"])
def test_neons_packed_tile_is_fused_multiply_adds(cpu: str, dtype: str) -> None:
    """On the schedule of a machine that was timed, too. Eight k of float64 at a time make 0.85 elsewhere and spill
    there: 17.0 GFLOP/s instead of 18.0. So do two k of complex numbers, whose one k is 48 multiply-adds."""
    a = of("neon", "plus_times", dtype)
    a = replace(a, target=replace(a.target, cpu=cpu))
    loop = main_loop("packed", a, f"packed_packed_{a.MR}x{a.tile[1]}")
    assert loop.spills == 0, loop
    share = {"float32": 0.85, "float64": 0.83, "complex64": 0.82, "complex128": 0.81}[dtype]
    assert loop.fma >= share * loop.instructions, loop


FORMS = {
    "packed_n": ExactForm(1, 1, along_k=True, panel=1),
    "unpacked": ExactForm(1, 1, along_k=True),
    "few_rows": ExactForm(1, 1, panel_m=1),
    "few_columns": ExactForm(1, 1, along_k=True),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", FORMS)
def test_neons_other_tiles_do_not_spill(kernel: str, dtype: str) -> None:
    """Two multiply-adds a cycle leave room for two more instructions of the four that are decoded. A tile of 7 × 3
    loads seven vectors of M for four k (float64: two), three of N for each, and every row of N has an address of its
    own: 0.79 and 0.71 are what that leaves, 0.7 and 0.67 where rows of N are prefetched. Twice the k spills (0.61,
    0.53), 5 × 4 and 4 × 5 make 0.77 and 0.73."""
    a, form = of("neon", "plus_times", dtype), FORMS[kernel]
    for rows in range(1, tallest(a, form) + 1):
        vectors = min(widest(a, form, rows), a.tile[1] if form.panel else 6)
        loop = main_loop(kernel, a, replace(form, rows=rows, vectors=vectors).name.removeprefix("tile_"))
        assert loop.spills == 0, loop
    share = {"packed_n": (0.79, 0.71), "few_rows": (0.6, 0.6)}.get(kernel, (0.7, 0.67))
    assert loop.fma >= share[dtype == "float64"] * loop.instructions, loop
    assert loop.vector_operations == loop.fma, loop


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cpu", ["generic", "neoverse-n1"])
def test_neons_single_row_does_not_spill(cpu: str, dtype: str) -> None:
    """Four rows of N, a line of each: 16 multiply-adds, their loads, and P's."""
    a = of("neon", "plus_times", dtype)
    a = replace(a, target=replace(a.target, cpu=cpu))
    found = [loop for loop in loops_of("axpy", a) if loop.function == "axpy1x4"]
    assert all(loop.spills == 0 for loop in found), found
    longest = max(found, key=lambda loop: loop.instructions)
    assert longest.fma == 16, longest
    assert longest.instructions <= 64, longest


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neon_packs_both_sides_of_what_is_high_and_wide(dtype: str) -> None:
    """Timed on Neoverse-N1: `packed_n` is faster until P has some hundreds of rows and of columns."""
    draw, number = random.Random(17), DTYPES[dtype]
    neon = with_instructions(NOMINAL, 1, known_target("neon"))
    for _ in range(300):
        m, k, n = (round(3000 ** draw.random()) for _ in range(3))
        where = row_major(m, k), row_major(k, n), row_major(m, n)
        problem = Problem(m, k, n, (), number, number, find_semiring("plus_times"), *where)
        chosen = choose(problem, neon).kernel
        if k >= 40 and min(m, n) > 40:
            assert (chosen == "packed") == (m >= 400 and n >= 256), (problem, chosen)


SEMIRINGS = [("min_plus", "float32"), ("min_plus", "float64"), ("max_min", "float32"), ("max_min", "float64"),
             ("max_times", "float32"), ("min_plus", "int32"), ("max_min", "int32")]  # fmt: skip


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("ring", "dtype"), SEMIRINGS)
def test_a_step_of_a_semiring_is_two_operations_on_neon(ring: str, dtype: str) -> None:
    a = of("neon", ring, dtype)
    loop = main_loop("packed", a, f"packed_packed_{a.MR}x{a.tile[1]}")
    assert loop.spills == 0, loop
    assert 2 * a.MR * a.tile[1] >= 0.88 * loop.vector_operations, loop
    beside = main_loop("packed_n", a, f"direct_packed_{tallest(a, FORMS['packed_n'])}x{a.tile[1]}_k")
    assert beside.spills == 0, beside


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ring", ["plus_times", "min_plus", "max_min", "max_times"])
@pytest.mark.parametrize("target", ["avx512", "avx2"])
def test_large_products_do_not_spill_on_x86(target: str, ring: str, dtype: str) -> None:
    a = of(target, ring, dtype)
    for kernel, form in (("packed", "packed_packed_{}"), ("packed_n", "direct_packed_{}_k")):
        loop = main_loop(kernel, a, form.format(f"{a.MR}x{a.tile[1]}"))
        assert loop.spills == 0, loop
        if ring == "plus_times":
            assert loop.fma == 4 * a.MR * a.tile[1], loop


@pytest.mark.parametrize("ring", ["min_plus", "max_min"])
def test_avx2_hardly_counts_beside_integers(ring: str) -> None:
    """A step of int32 takes two of three ports for one cycle, which a loop's own instructions would want too: four k a
    round, kept in order, without a spill."""
    a = of("avx2", ring, "int32")
    for kernel, form in (("packed", "packed_packed_{}"), ("packed_n", "direct_packed_{}_k")):
        loop = main_loop(kernel, a, form.format(f"{a.MR}x{a.tile[1]}"))
        steps, loads = 4 * a.MR * a.tile[1], 4 * (a.MR + a.tile[1])
        assert loop.spills == 0, loop
        assert loop.count(r"\tvp(add|m(in|ax)s)d\t") == 2 * steps, loop
        assert loop.instructions <= 2 * steps + loads + 6, loop


@pytest.mark.parametrize("target", ["neon", "generic"])
def test_a_closures_square_has_no_branches_but_its_loops(target: str) -> None:
    """A machine without masks: whole vectors in one loop, single elements in another; of four rows, and of one. NEON
    takes two k at a time where it can, and so loads and stores half as often."""
    a = of(target, "min_plus", "float32")
    loops = [loop for loop in innermost(floyd_module(a), a.target) if loop.count(r"\t(fminnm|min[ps]s)")]
    counts = [loop.count(r"\t(fminnm|min[ps]s)") for loop in loops]
    pairs = [8, 8, 2, 2] if a.target.by_lane else []
    assert counts == ([1, 1] if pairs else []) + [4, 4, 1, 1] + pairs
    for loop, steps in zip(loops, counts, strict=True):
        in_pairs = loop.function.startswith("pair")
        assert loop.instructions <= (3 if in_pairs else 4) * steps + 6 + (not a.target.by_lane) * steps, loop
        assert loop.count(r"\t(b\.|cb|tb|j)\w+") == 1, loop


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", ["avx512", "avx2"])
def test_tiles_of_any_height_do_not_spill_on_x86(target: str, dtype: str) -> None:
    """`unpacked` and its like: hardly anything beside loads, prefetches and multiply-adds."""
    a = of(target, "plus_times", dtype)
    for kernel, form in (("unpacked", "direct_direct_{}"), ("few_rows", "packed_direct_{}")):
        for rows in range(3, a.MR + 1):
            vectors = widest(a, FORMS[kernel], rows)
            name = f"tile_{form.format(f'{rows}x{vectors}')}"
            loops = [loop for loop in loops_of(kernel, a) if loop.function == name and loop.fma]
            # the last rows of N, past which nothing is prefetched, have a loop of their own
            apart = target == "avx512" and kernel == "unpacked"
            assert [loop.count("prefetch") > 0 for loop in loops] == [True, False][: 1 + apart]
            for loop, scalar in zip(loops, (7, 9 + vectors)[: 1 + apart], strict=True):
                assert loop.count(r"\tvmov\w+\t%[yz]mm\d+, .*%r[sb]p") == 0, loop
                assert loop.instructions <= loop.fma + rows + 2 * vectors + scalar, loop


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("ring", "dtype"), [("max_min", "float32"), ("min_plus", "float32"), ("max_times", "float64")])
@pytest.mark.parametrize("target", ["avx512", "avx2", "neon"])
def test_the_port_limit_is_made_of_the_tiles_own_instructions(target: str, ring: str, dtype: str) -> None:
    """No select more than the packed tile has: a slower limit would flatter."""
    a = of(target, ring, dtype)
    pattern = r"\t(v?(min|max|add|mul|range|cmp|blendv|cmpun\w*)[ps][sd]|f(min|max|add|mul|cm)\w*)\t"
    (limit,) = (loop for loop in innermost(peak_module(a), a.target) if loop.count(pattern))
    tile = main_loop("packed", a, f"packed_packed_{a.MR}x{a.tile[1]}")
    steps = sums_of(a)
    unrolled = 4 if target == "avx512" else 1
    assert limit.count(pattern) / steps <= tile.count(pattern) / (unrolled * a.MR * a.tile[1]), (limit, tile)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dots_on_neon_make_signalling_nan_quiet_once_a_vector(dtype: str) -> None:
    """Sixteen steps are a min and a max each; four vectors of M and four of N are made quiet. Once a step was three
    times as slow."""
    loops = [x for x in loops_of("dots", of("neon", "max_min", dtype)) if x.function == "dot4x4" and x.count("fmaxnm")]
    loop = min(loops, key=lambda loop: loop.instructions)  # the other one is of the last lanes
    assert loop.count(r"\tf(min|max)nm\tv") == 2 * 16 + 4 + 4
    assert loop.spills == 0
