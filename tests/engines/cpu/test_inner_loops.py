"""The loops that products are made of, as machine code: nothing is spilled, and little is done beside the arithmetic.

Counted in the assembly that LLVM makes, so that NEON's are looked at on any machine.
"""

from __future__ import annotations

import pytest
from inner_loops import Loop, innermost

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.engines.cpu.kernels.floyd.text import floyd_module
from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic, arithmetic
from tilewise.engines.cpu.registry import FAMILIES
from tilewise.engines.cpu.runtime.target import known_target


def of(target: str, ring: str, dtype: str) -> Arithmetic:
    return arithmetic(find_semiring(ring).over(DTYPES[dtype]), DTYPES[dtype], DTYPES[dtype], known_target(target))


def main_loop(kernel: str, a: Arithmetic, tile: str) -> Loop:
    """The longest loop of the register tile whose name ends so."""
    loops = [loop for loop in innermost(FAMILIES[kernel].text(a), a.target) if loop.function == f"tile_{tile}"]
    return max(loops, key=lambda loop: loop.instructions)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_neons_packed_tile_is_fused_multiply_adds(dtype: str) -> None:
    a = of("neon", "plus_times", dtype)
    loop = main_loop("packed", a, f"packed_packed_{a.MR}x{a.tile[1]}")
    assert loop.spills == 0, loop
    assert loop.fma >= 0.85 * loop.instructions, loop


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("kernel", "tile"),
    [("packed_n", "direct_packed_8x3"), ("packed_n", "direct_direct_8x3_keeps"), ("little", "direct_direct_8x3"),
     ("little", "direct_direct_4x6"), ("few_rows", "packed_direct_8x3"), ("few_columns", "direct_packed_8x3")],
)  # fmt: skip
def test_neons_other_tiles_do_not_spill(kernel: str, tile: str, dtype: str) -> None:
    """Two multiply-adds a cycle leave room for two more instructions of the four that are decoded."""
    loop = main_loop(kernel, of("neon", "plus_times", dtype), tile)
    assert loop.spills == 0, loop
    assert loop.fma >= 0.5 * loop.instructions, loop


SEMIRINGS = [("min_plus", "float32"), ("min_plus", "float64"), ("max_min", "float32"), ("max_min", "float64"),
             ("max_times", "float32"), ("min_plus", "int32"), ("max_min", "int32")]  # fmt: skip


@pytest.mark.parametrize(("ring", "dtype"), SEMIRINGS)
def test_a_step_of_a_semiring_is_two_operations_on_neon(ring: str, dtype: str) -> None:
    a = of("neon", ring, dtype)
    loop = main_loop("packed", a, f"packed_packed_{a.MR}x{a.tile[1]}")
    assert loop.spills == 0, loop
    assert 2 * a.MR * a.tile[1] >= 0.88 * loop.vector_operations, loop
    beside = main_loop("packed_n", a, f"direct_packed_{a.MR}x{a.tile[1]}")
    assert beside.spills == 0, beside


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ring", ["plus_times", "min_plus"])
@pytest.mark.parametrize("target", ["avx512", "avx2"])
def test_large_products_do_not_spill_on_x86(target: str, ring: str, dtype: str) -> None:
    a = of(target, ring, dtype)
    for kernel, origin in (("packed", "packed_packed"), ("packed_n", "direct_packed")):
        loop = main_loop(kernel, a, f"{origin}_{a.MR}x{a.tile[1]}")
        assert loop.spills == 0, loop
        if ring == "plus_times":
            assert loop.fma == 4 * a.MR * a.tile[1], loop


@pytest.mark.parametrize("target", ["neon", "generic"])
def test_a_closures_square_has_no_branches_but_its_loops(target: str) -> None:
    """A machine without masks: whole vectors in one loop, single elements in another."""
    a = of(target, "min_plus", "float32")
    loops = [loop for loop in innermost(floyd_module(a), a.target) if loop.count(r"\t(fminnm|min[ps]s)")]
    assert len(loops) == 2
    for loop in loops:
        assert loop.instructions <= 10, loop
        assert loop.count(r"\t(b\.|cb|tb|j)\w+") == 1, loop
