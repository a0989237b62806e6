"""`wgmma_half` behind a C++ compiler, TMA, barriers and wgmma done by `hopper_shim.h`: single products and stacks."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import ml_dtypes
import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, multiplied, run_recipe
from seeds import next_seed, sample_size
from tilewise.algebra.dtypes import DTYPES, dtype_of
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Problem
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.registry import family_of
from tilewise.kernels.shared.layouts import BY_CLASSES
from tilewise.kernels.wgmma_gemm.wgmma_half.model import configs
from tilewise.kernels.wgmma_gemm.wgmma_half.routes import options
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import FEW_INSIDE, SQUARE_INSIDE, TILES, TensorConfig

pytestmark = pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")

H200 = KNOWN_CARDS["h200"]
PLUS_TIMES = tw.semirings["plus_times"]
POISON = np.nan  # between rows and members: one of them in a sum spoils it


def among_poison(rng, shape, stack, dtype, *, transposed, extra, apart, swapped):
    """A stack whose rows are `extra` elements longer than its matrices' (None: up to 16 bytes) and whose members lie
    `apart` further; axes of one member where it is broadcast. `swapped`: two axes change places in memory."""
    rows, cols = shape[::-1] if transposed else shape
    own = stack[1::-1] + stack[2:] if swapped and len(stack) > 1 else stack
    count = int(np.prod(own, dtype=int))
    extra = -cols % 8 if extra is None else extra
    memory = np.full((count, -(-rows * (cols + extra) // 8) * 8 + apart), POISON, dtype)
    cells = memory[:, : rows * (cols + extra)].reshape(count, rows, cols + extra)[:, :, :cols]
    cells[...] = rng.integers(-3, 4, cells.shape).astype(dtype)
    strides = (
        *(memory.strides[0] * int(np.prod(own[i + 1 :], dtype=int)) for i in range(len(own))),
        *cells.strides[1:],
    )
    made = np.lib.stride_tricks.as_strided(cells, (*own, rows, cols), strides)
    made = made.swapaxes(0, 1) if swapped and len(stack) > 1 else made
    return made.swapaxes(-1, -2) if transposed else made


def drawn(rng, dtype, shape=None, stack=None):
    """M, N and P of a random stack."""
    if stack is None:
        stack = tuple(int(x) for x in rng.integers(1, 4, rng.integers(0, 4)))
    m, k, n = shape or (int(x) for x in rng.integers(1, 200, 3))
    some = lambda values: values[int(rng.integers(len(values)))]  # noqa: E731
    operands = []
    for sides in ((m, k), (k, n)):
        own = tuple(1 if rng.random() < 0.25 else e for e in stack)
        swapped = bool(rng.random() < 0.3) and own == stack
        made = among_poison(
            rng, sides, own, dtype, transposed=bool(rng.random() < 0.5), extra=some([None, None, 0, 3]),
            apart=some([0, 8, 8, 5]), swapped=swapped,
        )  # fmt: skip
        operands.append(np.broadcast_to(made, (*stack, *sides)))
    P = among_poison(
        rng,
        (m, n),
        stack,
        dtype,
        transposed=False,
        extra=some([None, None, 0, 3]),
        apart=some([0, 8, 5]),
        swapped=False,
    )
    return (*operands, P)


def owner_of(array):
    while array.base is not None:
        array = array.base
    return array


def problem_of(M, N, P, accumulate=False):
    return Problem(
        M.shape[-2], M.shape[-1], N.shape[-1], P.shape[:-2], dtype_of(M.dtype), dtype_of(N.dtype), PLUS_TIMES,
        layout_of(M), layout_of(N), layout_of(P), accumulate, "ieee",
    )  # fmt: skip


def check(M, N, P, config, folder, case, accumulate=False):
    """The product by one config: right everywhere, and nothing beside P touched."""
    memory = owner_of(P)
    before = memory.copy()
    wanted = M.astype(np.float64) @ N.astype(np.float64) + (P.astype(np.float64) if accumulate else 0)
    multiplied(M, N, PLUS_TIMES, H200, P, folder, kernel="wgmma_half", config=config, accumulate=accumulate)
    found = P.astype(np.float64)
    np.testing.assert_allclose(found, wanted.astype(P.dtype).astype(np.float64), rtol=8e-3, atol=0.5, err_msg=case)
    P[...] = 0
    after = memory.copy()
    memory[...] = before
    P[...] = 0
    assert after.tobytes() == memory.tobytes(), f"{case}: something was written beside P"


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("onto", [False, True])
def test_symmetric_products_store_each_cell_once(tmp_path_factory, dtype, onto):
    """Every tile that takes them: stacks, ragged edges, a bias of each column, what P held."""
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng, stack = np.random.default_rng(seed), (1, 2)[seed % 2]
    m, k = int(rng.integers(33, 500)), int(rng.integers(1, 150))
    m = m if rng.random() < 0.5 else -(-m // 8) * 8
    how = {"apart": 8, "swapped": False, "extra": None if rng.random() < 0.5 else 3}
    M = among_poison(rng, (m, k), (stack,), dtype, transposed=bool(rng.random() < 0.5), **how)
    P = among_poison(rng, (m, m), (stack,), dtype, transposed=False, **how)
    N, bias = M.swapaxes(1, 2), rng.integers(-9, 9, m).astype(np.float32)
    epilogue = Epilogue(2.0, DTYPES["float32"], "relu") if rng.random() < 0.5 else PLAIN
    problem = replace(problem_of(M, N, P, onto), symmetric=True, epilogue=epilogue)
    routes = list(product(*([how for how in each if how != BY_CLASSES] for each in options(problem))))
    tile = next(tile for tile in rng.permutation(np.array(TILES, object)) if tile.together == 1)
    config = TensorConfig(tile, routes[int(rng.integers(len(routes)))], symmetric=True)
    case, memory = f"seed {seed}: {problem} {config.spec()} {epilogue}", owner_of(P)
    before, held = memory.copy(), P.astype(np.float64) if onto else 0.0
    plan = family_of("wgmma_half").pinned(problem, H200, config)
    places = {name: x.ctypes.data for name, x in {"M": M, "N": N, "P": P, "bias": bias}.items()}
    run_recipe(recipe_of(plan), folder, **places)
    wanted = M.astype(np.float64) @ N.astype(np.float64)
    wanted = np.maximum(2 * wanted + held + bias, 0) if epilogue else wanted + held
    np.testing.assert_array_equal(P.astype(np.float64), wanted.astype(P.dtype).astype(np.float64), err_msg=case)
    P[...] = 0
    after = memory.copy()
    memory[...] = before
    P[...] = 0
    assert after.tobytes() == memory.tobytes(), f"{case}: something was written beside P"
    assert plan.notes[-1].startswith("symmetric: ")


def runnable(problem):
    """The configs whose blocks do not wait for one another."""
    return [config for config in configs(problem, H200) if config.tile.together == 1]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_random_stacks(tmp_path_factory, dtype):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    for number in range(1):
        M, N, P = drawn(rng, dtype)
        accumulate = bool(rng.random() < 0.3)
        problem = problem_of(M, N, P, accumulate)
        options = runnable(problem)
        config = options[int(rng.integers(len(options)))]
        check(M, N, P, config, folder, f"seed {seed} {number}: {problem} {config}", accumulate)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", [np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)])
def test_few_rows_and_columns_with_k_along_and_across(tmp_path_factory, dtype):
    """Every tile of few columns, in each layout, P's rows anywhere, k over the blocks of a cluster or not."""
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng, seen = np.random.default_rng(seed), []
    while len(seen) < sample_size(3):
        few, long, k = int(rng.integers(2, 33)), int(rng.integers(2, 300)), int(rng.integers(2, 300))
        shape = (few, k, long) if rng.random() < 0.5 else (long, k, few)
        M, N, P = drawn(rng, dtype, shape, ())
        choice = [config for config in configs(problem_of(M, N, P), H200) if config.inside]
        if not choice:
            continue  # lines that the copy engine cannot take
        config = choice[int(rng.integers(len(choice)))]
        seen.append(config)
        check(M, N, P, config, folder, f"seed {seed}: {shape} {config.spec()}")


@pytest.mark.slow  # four kernels; test_wgmma_half has what is chosen
@pytest.mark.parametrize("rows", [1, 70])
def test_parts_of_k_serial_have_the_bits_of_parts_with_blocks_of_their_own(tmp_path_factory, rows):
    rng = np.random.default_rng(7)
    M, N = (rng.standard_normal(shape).astype(np.float32) for shape in ((rows, 2120), (2120, 72)))
    M[rows // 2] *= 2.0 ** rng.integers(-20, 12, 2120)
    M, N = M.astype(ml_dtypes.bfloat16), N.astype(ml_dtypes.bfloat16)
    P = np.empty((rows, 72), M.dtype)
    problem = replace(problem_of(M, N, P), reproducible="batch")
    able = [x for x in configs(problem, H200) if x.in_order and x.splits == 8 and x.tile.together == 1 and not x.inside]
    whole = replace(able[0], tile=SQUARE_INSIDE, splits=1, serial=False)

    def bits(config):
        P[...] = 0
        folder, how = tmp_path_factory.getbasetemp(), {"kernel": "wgmma_half", "reproducible": "batch"}
        multiplied(M, N, PLUS_TIMES, H200, P, folder, config=config, **how)
        return P.tobytes()

    made = {x.spec(): bits(x) for x in able if x.serial or x.tile.cols == 64}
    assert any("serial" in spec for spec in made)
    assert any("serial" not in spec for spec in made)
    assert len(set(made.values())) == 1
    assert rows == 1 or bits(whole) not in made.values()  # one chain rounds otherwise


@pytest.mark.slow  # a kernel of its own
def test_a_single_row_is_a_column_of_a_transposed_tile(tmp_path_factory):
    rng = np.random.default_rng(8)
    M, N, P = drawn(rng, np.dtype(ml_dtypes.bfloat16), (1, 130, 200), ())
    config = TensorConfig(FEW_INSIDE[0], ("as it is", "realigned"), inside=True, transposed=True)
    M, N = np.ascontiguousarray(M), np.ascontiguousarray(N)
    check(M, N, P, config, tmp_path_factory.getbasetemp(), "a single row")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", [np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)])
def test_tiles_of_64_columns_whose_k_is_cut_over_a_cluster(tmp_path_factory, dtype):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng, seen = np.random.default_rng(seed), 0
    while seen < 1:
        m, k, n = *map(int, rng.integers(33, 100, 2)), int(rng.integers(33, 200))
        M, N, P = drawn(rng, dtype, (m, 3 * k, n), ())
        choice = [
            config for config in configs(problem_of(M, N, P), H200) if config.inside and config.tile == SQUARE_INSIDE
        ]
        if choice:
            config = choice[int(rng.integers(len(choice)))]
            check(M, N, P, config, folder, f"seed {seed}: {m}x{3 * k}x{n} {config.spec()}")
            seen += 1
