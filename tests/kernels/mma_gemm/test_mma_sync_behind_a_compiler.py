"""`mma_sync` of every card since Turing, with no card: random products among poison, behind the C++ compiler."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from seeds import next_seed
from tilewise.algebra.dtypes import DTYPES, dtype_of
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Problem
from tilewise.kernels.mma_gemm.mma_sync.family import MmaSync
from tilewise.kernels.recipes import recipe_of

pytestmark = [
    pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler"),
    pytest.mark.drawn(1),  # g++ compiles a kernel or two for each, 1 to 3 s; on a card all of them run
]
E4M3, E5M2, BF16 = (np.dtype(getattr(ml_dtypes, name)) for name in ("float8_e4m3fn", "float8_e5m2", "bfloat16"))
KINDS = [  # card, M's dtype, N's dtype, P's
    ("t4", np.float16, np.float16, None),
    ("t4", np.int8, np.uint8, "int32"),
    ("a100", np.int8, np.int8, "int32"),
    ("a100", np.uint8, np.int8, "int32"),
    ("a100", np.int8, np.int8, None),
    ("a100", np.float32, np.float32, None),
    ("a100", BF16, BF16, None),
    ("rtx4090", np.int8, np.int8, "int32"),
    ("rtx4090", E4M3, E5M2, "bfloat16"),
    ("rtx4090", E5M2, E4M3, None),
    ("rtx4090", np.float16, np.float16, None),
]
DOUBLES = [("a100", np.float64, None)]


def among_poison(rng, stack, rows, cols, dtype, transposed, aligned):
    """A stack of matrices of numbers whose sums are exact, poison before, between and behind their rows; and all of the
    memory. Their rows start on 16 bytes where they are `aligned`."""
    dtype = np.dtype(dtype)
    lines, length = (cols, rows) if transposed else (rows, cols)
    whole, size = 16 // dtype.itemsize, dtype.itemsize
    apart = -(-length // whole) * whole if aligned else length + int(rng.integers(0, 4))
    memory = np.full(3 * whole + stack * lines * apart, 99 if dtype.kind in "iu" else np.nan, dtype)
    before = -memory.ctypes.data % 16 // size + (0 if aligned else int(rng.integers(0, whole)))
    strides = (lines * apart * size, *((size, apart * size) if transposed else (apart * size, size)))
    x = np.ndarray((stack, rows, cols), dtype, memory, before * size, strides)
    low, high = (
        (np.iinfo(dtype).min, np.iinfo(dtype).max + 1) if dtype.itemsize == 1 and dtype.kind in "iu" else (-3, 4)
    )
    x[...] = rng.integers(low, high, x.shape).astype(dtype)
    return x, memory


def exact(M, N, dtype, onto):
    made = M.astype(np.float64) @ N.astype(np.float64) + onto
    return (made.astype(np.int64) if np.dtype(dtype).kind in "iu" else made).astype(dtype)


@pytest.mark.parametrize(("card", "of_m", "of_n", "wanted"), KINDS)
def test_random_products_among_poison(tmp_path_factory, card, of_m, of_n, wanted):
    seed, folder, machine = next_seed() % 2**32, tmp_path_factory.getbasetemp(), KNOWN_CARDS[card]
    rng = np.random.default_rng(seed)
    transposed, aligned = [bool(rng.integers(2)) for _ in range(2)], bool(rng.integers(2))
    stack, accumulate = int(rng.integers(1, 3)), bool(rng.integers(2))
    m, k, n = (int(rng.integers(1, most)) for most in (150, 300, 280))
    M, _ = among_poison(rng, stack, m, k, of_m, transposed[0], aligned)
    N, _ = among_poison(rng, stack, k, n, of_n, transposed[1], aligned)
    kinds = dtype_of(M.dtype), dtype_of(N.dtype)
    problem = Problem(
        m, k, n, (stack,), *kinds, tw.semirings["plus_times"], layout_of(M), layout_of(N), layout_of(M),
        accumulate, "tf32", requested=DTYPES[wanted] if wanted else None,
    )  # fmt: skip
    P, around = among_poison(rng, stack, m, n, problem.result.numpy, False, aligned)
    problem = replace(problem, layout_p=layout_of(P))
    before, had = around.copy(), P.astype(np.float64)
    assert MmaSync().refusal(problem, machine) is None
    found = [one for one in MmaSync().configurations(problem, machine) if not one.edge_rows and not one.edge_cols]
    config = found[int(rng.integers(len(found)))]
    case = f"seed {seed}: {problem.shape} {kinds} on {card} {config.spec()} p{config.tile.phase} {transposed} {aligned}"
    run_recipe(recipe_of(MmaSync().pinned(problem, machine, config)), folder, **addresses(M=M, N=N, P=P))
    np.testing.assert_array_equal(P, exact(M, N, P.dtype, had if accumulate else 0), err_msg=case)
    P[...] = np.ndarray(P.shape, P.dtype, before, P.ctypes.data - around.ctypes.data, P.strides)
    np.testing.assert_array_equal(around.view(np.uint8), before.view(np.uint8), err_msg=f"{case}: beside P")


@pytest.mark.parametrize(("card", "dtype", "wanted"), [(card, m, p) for card, m, n, p in KINDS if m == n] + DOUBLES)
def test_symmetric_products_among_poison(tmp_path_factory, card, dtype, wanted):
    """Every cell of P once: with what P held, a bias of its column, and nothing beside P."""
    seed, folder, machine = next_seed() % 2**32, tmp_path_factory.getbasetemp(), KNOWN_CARDS[card]
    rng = np.random.default_rng(seed)
    transposed, aligned, accumulate = [bool(rng.integers(2)) for _ in range(3)]
    stack, m, k = int(rng.integers(1, 3)), int(rng.integers(33, 600)), int(rng.integers(1, 90))
    M, _ = among_poison(rng, stack, m, k, dtype, transposed, aligned)
    N, kind = M.swapaxes(1, 2), dtype_of(M.dtype)
    problem = Problem(
        m, k, m, (stack,), kind, kind, tw.semirings["plus_times"], layout_of(M), layout_of(N), layout_of(M),
        accumulate, "tf32", requested=DTYPES[wanted] if wanted else None, symmetric=True,
    )  # fmt: skip
    P, around = among_poison(rng, stack, m, m, problem.result.numpy, False, aligned)
    bias = rng.integers(-9, 9, m).astype(np.float32)
    fused = bool(rng.integers(2)) and problem.result.name in ("float32", "bfloat16", "float16")
    epilogue = Epilogue(2.0, DTYPES["float32"]) if fused else PLAIN
    problem = replace(problem, layout_p=layout_of(P), epilogue=epilogue)
    before, had = around.copy(), P.astype(np.float64)
    found = MmaSync().configurations(problem, machine)
    config = found[int(rng.integers(len(found)))]
    plan = MmaSync().pinned(problem, machine, config)
    case = f"seed {seed}: {problem.shape} {kind} on {card} {config.spec()} {transposed} {aligned} {accumulate} {fused}"
    run_recipe(recipe_of(plan), folder, bias=bias.ctypes.data, **addresses(M=M, N=N, P=P))
    doubled = exact(M, N, np.float64, 0) * 2 + bias if fused else exact(M, N, np.float64, 0)
    wanted_p = (doubled + (had if accumulate else 0)).astype(np.int64 if P.dtype.kind in "iu" else np.float64)
    np.testing.assert_array_equal(P, wanted_p.astype(P.dtype), err_msg=case)
    P[...] = np.ndarray(P.shape, P.dtype, before, P.ctypes.data - around.ctypes.data, P.strides)
    np.testing.assert_array_equal(around.view(np.uint8), before.view(np.uint8), err_msg=f"{case}: beside P")
    assert plan.notes[-1].startswith("symmetric: ")


def addresses(**matrices):
    return {name: x.ctypes.data for name, x in matrices.items()}
