"""`reproducible=` on the CPU: every kernel, instruction set, layout and number of threads gives the defined bits."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from poisoned import sets_here

import tilewise as tw
from seeds import next_seed, sample_size
from tilewise.algebra.dtypes import dtype_named
from tilewise.backends import reference
from tilewise.backends.cpu import ready, registry
from tilewise.backends.cpu.kernels.shared.tile import _PackedTile
from tilewise.backends.cpu.limits import NOMINAL, host_machine, with_instructions
from tilewise.backends.cpu.ready import arithmetic_of
from tilewise.backends.cpu.registry import FAMILIES
from tilewise.backends.cpu.run import run
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.target import Target, host_target, known_target, plain_target, probed
from tilewise.core.plan import Plan
from tilewise.core.problem import Layout, problem_of_shape
from tilewise.planning.choose import make_plan
from tilewise.system.llvm_text import IRLoop

KINDS = [
    ("float32", "plus_times"), ("float64", "plus_times"), ("bfloat16", "plus_times"), ("complex64", "plus_times"),
    ("float32", "min_times"),
]  # fmt: skip


@dataclass
class Drawn:
    """A product with its plan; P holds something before."""

    plan: Plan
    M: np.ndarray
    N: np.ndarray
    P: np.ndarray


def target_of(name: str) -> Target:
    return host_target() if name in ("host", "neon") else plain_target(name, probed())


def numbers(rng: np.random.Generator, rows: int, cols: int, dtype: str) -> np.ndarray:
    x = rng.standard_normal((rows, cols)) * 2.0 ** rng.integers(-8, 8, (rows, cols))
    x[rng.random((rows, cols)) < 0.1] = -0.0
    if rng.random() < 0.2:
        x[rng.random((rows, cols)) < 0.02] = rng.choice([np.nan, -np.nan, np.inf])
    number = dtype_named(dtype)
    with np.errstate(invalid="ignore"):
        return (x + 1j * x[::-1] if number.kind == "c" else x).astype(number.numpy)


def laid(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Row-major, column-major, or with both strides larger."""
    which = max(0, rng.integers(5) - 2)
    if which == 2:
        wide = np.zeros((2 * x.shape[0], 3 * x.shape[1]), x.dtype)
        wide[::2, ::3] = x
        return wide[::2, ::3]
    return np.asfortranarray(x) if which else x


def layout(x: np.ndarray) -> Layout:
    return Layout(*(stride // x.itemsize for stride in x.strides))


def draw(rng: np.random.Generator, target: Target, dtype: str, ring: str) -> Drawn:
    m, n = (int(2 ** rng.uniform(0, 6.7)) for _ in "mn")
    k = int(rng.choice([1, 100, 511, 512, 513, 1025, 1700]))
    if m * n * k > 60_000:
        m, n = min(m, 7), min(n, 5)
    M, N, P = (laid(rng, numbers(rng, *shape, dtype)) for shape in ((m, k), (k, n), (m, n)))
    problem = problem_of_shape(m, k, n, dtype, ring, accumulate=bool(rng.random() < 0.3), reproducible="everywhere")
    problem = replace(problem, layout_m=layout(M), layout_n=layout(N), layout_p=layout(P))
    return Drawn(make_plan(problem, with_instructions(NOMINAL, 1, target)), M, N, P)


def defined(case: Drawn) -> np.ndarray:
    P = case.P.copy()
    reference.run(case.plan, case.M, case.N, P)
    return P


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", sets_here())
def test_products_have_the_defined_bits(name: str) -> None:
    target, rng = target_of(name), np.random.default_rng(next_seed())
    families = set()
    for number in range(sample_size(160)):
        case = draw(rng, target, *KINDS[number % len(KINDS)])
        want = defined(case)
        run(case.plan, case.M, case.N, case.P, target=target)
        families.add(case.plan.kernel)
        assert np.ascontiguousarray(case.P).tobytes() == want.tobytes(), (case.plan, case.P.strides)
    assert families == {"packed", "packed_n", "unpacked", "tiny"}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_threads_strides_and_neighbours_change_no_bit(dtype: str) -> None:
    rng = np.random.default_rng(7)
    M, N = numbers(rng, 130, 1200, dtype), numbers(rng, 1200, 97, dtype)
    before = tw.get_num_threads()
    made = []
    try:
        for threads in (1, 2, 3):
            tw.set_num_threads(threads)
            for left in (M, np.asfortranarray(M)):
                made.append(tw.matmul(left, N, reproducible="everywhere").tobytes())
                made.append(tw.matmul(left, N.T.copy().T, reproducible="batch").tobytes())
    finally:
        tw.set_num_threads(before)
    assert len(set(made)) == 1
    whole = tw.matmul(M, N, reproducible="batch")
    for rows in (1, 2, 3, 17, 64):
        assert tw.matmul(M[5 : 5 + rows], N, reproducible="batch").tobytes() == whole[5 : 5 + rows].tobytes()
    stack = tw.matmul(M.reshape(10, 13, 1200), N, reproducible="batch")
    assert stack.tobytes() == whole.tobytes()


def test_without_the_keyword_rows_do_depend_on_their_number() -> None:
    """What the test above would see: the same comparison finds differences in default products."""
    rng = np.random.default_rng(8)
    M, N = (rng.standard_normal(shape).astype(np.float32) for shape in ((64, 3000), (3000, 50)))
    assert any(tw.matmul(M[:rows], N).tobytes() != tw.matmul(M, N)[:rows].tobytes() for rows in (1, 2, 3, 5, 9, 17, 33))


def test_complex_and_symmetric_products() -> None:
    rng = np.random.default_rng(9)
    for dtype in ("complex64", "float32", "bfloat16"):
        M = numbers(rng, 70, 90, dtype)
        for N in (M.T, np.ascontiguousarray(M.T)):
            onto = numbers(rng, 70, 70, dtype)
            want = tw.matmul(M, N, out=onto.copy(), accumulate=True, kernel="reference", reproducible="everywhere")
            made = tw.matmul(M, N, out=onto.copy(), accumulate=True, reproducible="everywhere")
            assert made.tobytes() == want.tobytes()
            plain = tw.matmul(M, N, kernel="reference", reproducible="everywhere")
            assert tw.matmul(M, N, reproducible="everywhere").tobytes() == plain.tobytes()


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_no_size_of_an_ordered_product_is_for_amx(dtype: str) -> None:
    machine = replace(with_instructions(NOMINAL, 1, known_target("avx512")), byte_dots=True, matrix_tiles=True)
    for side, mirrored in ((40, False), (700, True), (700, False), (3000, False), (3000, True)):
        problem = problem_of_shape(side, side, side, dtype, reproducible="everywhere")
        cut = registry.choose(replace(problem, symmetric=mirrored), machine)
        assert FAMILIES[cut.kernel].k_order
        assert not cut.amx


def test_long_products_in_pieces_have_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewise.scale import pieces

    rng = np.random.default_rng(10)
    M, N = numbers(rng, 90, 5000, "float32"), numbers(rng, 5000, 80, "float32")
    want = tw.matmul(M, N, reproducible="everywhere").tobytes()
    monkeypatch.setattr(pieces, "SECONDS", 1e-5)
    monkeypatch.setattr(pieces, "LEAST", 16)
    problem = tw.plan(M, N, reproducible="everywhere").problem
    assert pieces.is_long(problem, tw.plan(M, N).machine)
    P = np.empty((90, 80), np.float32)
    pieces.run_in_pieces(problem, tw.plan(M, N).machine, M, N, P)
    assert P.tobytes() == want


FLUSH = {
    False: """declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse.stmxcsr(ptr)
define void @flush(ptr %set, ptr %get) {
  call void @llvm.x86.sse.stmxcsr(ptr %get)
  call void @llvm.x86.sse.ldmxcsr(ptr %set)
  ret void
}
""",
    True: """declare void @llvm.aarch64.set.fpcr(i64)
declare i64 @llvm.aarch64.get.fpcr()
define void @flush(ptr %set, ptr %get) {
  %was = call i64 @llvm.aarch64.get.fpcr()
  store i64 %was, ptr %get
  %new = load i64, ptr %set
  call void @llvm.aarch64.set.fpcr(i64 %new)
  ret void
}
""",
}


def test_flushing_subnormal_numbers_is_suspended_and_restored() -> None:
    import ctypes

    arm = host_target().by_lane
    code = compile.load(FLUSH[arm], host_target())["flush"]
    flush = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(code)
    on, was, after = (ctypes.c_uint64(x) for x in (1 << 24 if arm else 0x9FC0, 0, 0))
    M, N = np.full((3, 40), 1e-20, np.float32), np.full((40, 3), 1e-21, np.float32)
    how: dict[str, Any] = {"reproducible": "everywhere"}
    want = tw.matmul(M, N, **how).tobytes()  # compiled, and prepared
    tw.matmul(M, N)
    flush(ctypes.addressof(on), ctypes.addressof(was))
    try:
        made, usual = tw.matmul(M, N, **how).tobytes(), tw.matmul(M, N).tobytes()
    finally:
        flush(ctypes.addressof(was), ctypes.addressof(after))
    assert made == want
    assert usual != want  # without the keyword the thread's state decides
    assert after.value & 0xFFFFFFC0 == on.value & 0xFFFFFFC0


def by_a_fresh_kernel(M: np.ndarray, N: np.ndarray) -> np.ndarray:
    """The product by `packed`, whose text is made now."""
    problem = problem_of_shape(*M.shape, N.shape[1], "float32", reproducible="everywhere")
    ready.kernel_for.cache_clear()
    try:
        cut = registry.choose(problem, host_machine(False), "packed")
        made = ready.Ready(problem, cut)
        made.shape = (M.shape[0], N.shape[1])
        return made.multiply(M, N)
    finally:
        ready.kernel_for.cache_clear()


@pytest.mark.parametrize("broken", ["k and k + 1 swapped", "chains of 256", ""])
def test_two_additions_swapped_in_a_kernel_are_seen(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    M, N = (rng.standard_normal(shape).astype(np.float32) for shape in ((64, 700), (700, 64)))
    if broken == "chains of 256":
        monkeypatch.setattr(registry, "CHAIN", 256)
    elif broken:
        step = _PackedTile.step

        def swapped(self: _PackedTile, loop: IRLoop, u: int, values: list[str]) -> list[str]:
            return step(self, loop, u ^ 1 if self.unroll > 1 else u, values)

        monkeypatch.setattr(_PackedTile, "step", swapped)
    made = by_a_fresh_kernel(M, N)
    want = tw.matmul(M, N, kernel="reference", reproducible="everywhere")
    assert (made.tobytes() == want.tobytes()) == (not broken)
    np.testing.assert_allclose(made, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["neon", "avx512", "avx2", "generic"])
def test_every_instruction_set_compiles(name: str) -> None:
    target = known_target(name)
    for dtype in ("float32", "complex64"):
        problem = problem_of_shape(300, 600, 300, dtype, reproducible="everywhere")
        plan = make_plan(problem, with_instructions(NOMINAL, 1, target))
        assert plan.blocking is not None
        text = FAMILIES[plan.kernel].text(arithmetic_of(problem, plan.blocking, target))
        assert "llvm.fmuladd" not in text
        assert compile.object_code(text, target)


@pytest.mark.parametrize("name", ["neon", "avx512", "avx2", "generic"])
def test_a_strip_of_k_is_a_chain_on_every_instruction_set(name: str) -> None:
    machine, seen = with_instructions(NOMINAL, 1, known_target(name)), set()
    for dtype, m, k, n in itertools.product(("float32", "float64", "float16"), (1, 7, 200), (513, 1030), (1, 40, 200)):
        for rows, onto in itertools.product((True, False), repeat=2):
            problem = problem_of_shape(m, k, n, dtype, reproducible="everywhere", accumulate=onto)
            problem = problem if rows else replace(problem, layout_n=Layout(1, k))
            cut = make_plan(problem, machine).blocking
            assert cut is not None
            assert cut.KC == 512, (problem, cut)
            seen.add(cut.kernel)
    assert len(seen) >= 2


def test_a_plan_has_the_order_of_sums() -> None:
    x = np.ones((4, 4), np.float32)
    assert any("chains of 512" in note for note in tw.plan(x, x, reproducible="everywhere").notes)
    assert not any("chains" in note for note in tw.plan(x, x).notes)
    assert tw.plan(x.astype(int), x.astype(int), reproducible="everywhere").notes == ()
