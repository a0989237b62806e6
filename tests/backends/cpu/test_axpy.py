"""`axpy`: rows of P as sums of rows of N, wider than a block and higher than a chunk, and its loops as machine code."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from inner_loops import innermost
from poisoned import Case, check, fits, here, pairs, sets_here

from seeds import next_seed, sample_size
from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cpu.kernels.axpy.model import HALF_DEPTH
from tilewise.backends.cpu.kernels.axpy.text import CHUNK, DEPTH, HEIGHT, NEAR, axpy_module, most_k
from tilewise.backends.cpu.kernels.shared.arithmetic import arithmetic
from tilewise.backends.cpu.runtime.pool import num_threads, set_num_threads
from tilewise.backends.cpu.runtime.target import is_arm, known_target

SEED = next_seed() % 2**31
TAKEN = [(ring, dtype) for ring, dtype in pairs() if fits(Case((1, 9, 40), dtype, ring, "axpy"), here("host"))]
NARROW_MOST = 16  # most complex columns in two vectors
COMPLEX = [("plus_times", "complex64"), ("plus_times", "complex128")]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", sets_here())
def test_blocks_chunks_and_what_is_left_of_them_are_written_whole(name: str) -> None:
    """Few columns and many, k of one group and of several, rows of one chunk and of two; one thread and two. P lies
    along its rows, or anyhow where they are few; complex numbers are pairs."""
    print(f"seed {SEED}")
    draw, before = random.Random(SEED), num_threads()
    chosen = [*draw.sample(TAKEN, 2), draw.choice(COMPLEX)]
    try:
        for i in range(sample_size(60)):
            ring, dtype = draw.choice(chosen)
            m = draw.choice((1, 2, 3, 4, 5, draw.randint(1, CHUNK), draw.randint(CHUNK, 2 * CHUNK)))
            k = draw.choice((1, 2, DEPTH, draw.randint(1, 20), draw.randint(20, 90)))
            n = draw.choice((draw.randint(1, 20), draw.randint(20, 300), NEAR // (4 * m) + draw.randint(1, 90)))
            layouts = draw.choice(("rows", "columns")), "rows", draw.choice(("rows", "rows", "columns", "apart"))
            case = Case((m, k, n), dtype, ring, "axpy", layouts, draw.random() < 0.3)
            if fits(case, here(name)):
                set_num_threads(draw.choice((1, 2)))
                check(case, here(name), SEED + i)
    finally:
        set_num_threads(before)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("cpu", ["generic", "neoverse-n1"])
@pytest.mark.parametrize(
    ("ring", "dtype"),
    [("plus_times", "float32"), ("plus_times", "float64"), ("min_plus", "float32"), ("min_plus", "float64"),
     ("max_min", "float32"), ("max_times", "float32"), ("min_plus", "int32"), ("plus_times", "bfloat16"),
     ("plus_times", "float16")],
)  # fmt: skip
def test_its_loops_keep_everything_in_registers(cpu: str, ring: str, dtype: str) -> None:
    """The elements of M, a row of N and the sums; the highest and deepest tile has a store for every five k."""
    number = DTYPES[dtype]
    a = arithmetic(find_semiring(ring).over(number), number, number, replace(known_target("neon"), cpu=cpu))
    loops = [loop for loop in innermost(axpy_module(a), a.target) if loop.function.startswith("axpy")]
    assert {loop.function for loop in loops} == {
        f"axpy{rows}x{depth}" for rows, most in enumerate(most_k(a), 1) for depth in range(1, most + 1)
    }
    assert all(loop.spills == 0 for loop in loops), [loop for loop in loops if loop.spills]
    most = min((x for x in loops if x.function == f"axpy{HEIGHT}x{most_k(a)[-1]}"), key=lambda loop: loop.instructions)
    steps = HEIGHT * most_k(a)[-1]
    each = 1 if a.fused else 2
    beside = most_k(a)[-1] if a.quiets or dtype != a.partial.name else 0  # of each vector of N
    beside += HEIGHT if a.fused else 0  # sums that begin with zero
    first = HEIGHT if number.is_integer else 0  # whose first step is no min
    assert most.vector_operations <= each * steps + beside, most
    assert most.vector_operations >= each * steps - first, most


@pytest.mark.skipif(not is_arm(), reason="NEON's own; its loops are compiled below")
def test_halves_of_a_short_k_are_rounded_whole_and_right() -> None:
    """Rows of whole tiles and a remainder, columns of pairs of vectors, of single ones and fewer; one and two
    threads."""
    print(f"seed {SEED}")
    draw, before = random.Random(SEED), num_threads()
    try:
        for i in range(80):
            m, k, n = draw.randint(1, 90), draw.randint(1, HALF_DEPTH), draw.choice((draw.randint(4, 24), 160 + i))
            layouts = draw.choice(("rows", "columns", "apart", "backwards")), "rows", "rows"
            case = Case((m, k, n), draw.choice(("float16", "bfloat16")), "plus_times", "axpy", layouts)
            set_num_threads(draw.choice((1, 2)))
            assert fits(case, here("host"))
            check(case, here("host"), SEED + i, fence=True)
    finally:
        set_num_threads(before)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("cpu", ["generic", "neoverse-n1"])
@pytest.mark.parametrize(("dtype", "rounding"), [("bfloat16", 3), ("float16", 1)])
def test_rounding_loops_keep_all_of_k_in_registers(cpu: str, dtype: str, rounding: int) -> None:
    """Two vectors of each of four rows: a multiplication for every k, and what rounds them; nothing on the stack."""
    number = DTYPES[dtype]
    a = arithmetic(find_semiring("plus_times").over(number), number, number, replace(known_target("neon"), cpu=cpu))
    loops = [loop for loop in innermost(axpy_module(a), a.target) if re.fullmatch(r"rounded\d+x\d+", loop.function)]
    assert {loop.function for loop in loops} == {f"rounded{h}x{k}" for h in (4, 1) for k in range(1, HALF_DEPTH + 1)}
    assert all(loop.spills == 0 for loop in loops), [loop for loop in loops if loop.spills]
    for k in range(1, HALF_DEPTH + 1):
        pairs_of_vectors = max((x for x in loops if x.function == f"rounded4x{k}"), key=lambda loop: loop.instructions)
        assert pairs_of_vectors.vector_operations == 2 * 4 * (k + rounding), pairs_of_vectors


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", sets_here())
def test_narrow_complex_products_are_right_at_every_width(name: str, dtype: str) -> None:
    """A vector of columns or two, the last one partly filled; rows of whole tiles and a remainder; no element beside
    the operands is read, and none beside P written. With two threads, columns are cut between them."""
    print(f"seed {SEED}")
    draw, before = random.Random(SEED), num_threads()
    try:
        for n in range(1, NARROW_MOST + 1):
            for threads, m, k in ((1, draw.choice((1, 5, draw.randint(6, 40))), draw.randint(1, 60)), (2, 3, 9000)):
                set_num_threads(threads)
                layouts = draw.choice(("rows", "columns", "apart")), "rows", "rows"
                case = Case((m, k, n), dtype, "plus_times", "axpy", layouts, draw.random() < 0.3)
                assert fits(case, here(name))
                check(case, here(name), SEED + n, fence=True)
    finally:
        set_num_threads(before)


@pytest.mark.parametrize("name", ["avx512", "avx2"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sums_of_narrow_complex_products_stay_in_registers(name: str, dtype: str) -> None:
    number, target = DTYPES[dtype], known_target(name)
    a = arithmetic(find_semiring("plus_times").over(number), number, number, target, pairs=True)
    loops = [loop for loop in innermost(axpy_module(a), a.target) if loop.function.startswith("narrow")]
    assert {loop.function for loop in loops} == {"narrow1", "narrow2"}
    assert all(loop.spills == 0 for loop in loops), [loop for loop in loops if loop.spills]
