"""float32 on tensor cores where there is no card: the texts compile, plans choose it rightly, and a model of its
arithmetic in NumPy is as accurate as float32 products are."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import multiplied
from seeds import next_seed
from tilewise.backends.cuda.compile import compile_source
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Layout, problem_of_shape
from tilewise.kernels.by_configs import timed
from tilewise.kernels.keys import text_of
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.shared.residency import UNIT_SHARED
from tilewise.kernels.simt_gemm.tiled.texts import stack_fallbacks
from tilewise.kernels.transforms.sums import render_combine
from tilewise.kernels.wgmma_gemm.bf16x6.model import (
    DEPTH,
    SEGMENT,
    TILES,
    SplitConfig,
    SplitTile,
    plane_bytes,
    slab_of,
)
from tilewise.kernels.wgmma_gemm.bf16x6.text import render_bf16x6, render_split
from tilewise.kernels.wgmma_gemm.family import BF16x6
from tilewise.planning.choose import make_plan
from tilewise.system.cache import DiskCache

H200 = KNOWN_CARDS["h200"]


def test_a_sample_compiles(tmp_path):
    cache = DiskCache("cubin", tmp_path)
    p = problem_of_shape(64, 64, 64)
    texts = [render_split(), render_combine(p.algebra)]
    texts += [render_bf16x6(SplitTile(128))]
    texts += list(stack_fallbacks(p.algebra, H200))[:1]
    for text in random.Random(next_seed()).sample(texts, 2):
        assert compile_source(text, "sm_90a", cache)[:4] == b"\x7fELF"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="ptxas speaks through nvcc")
@pytest.mark.parametrize("tile", TILES, ids=lambda t: f"{t.rows}x{t.cols}")
def test_no_tile_spills_or_serialises(tmp_path, tile):
    path = tmp_path / "kernel.cu"
    path.write_text(render_bf16x6(tile))
    arch = "-gencode=arch=compute_90a,code=sm_90a"
    command = ["nvcc", "-std=c++17", arch, "-Xptxas", "-v", "-cubin", "-o", str(path.with_suffix(".cubin")), str(path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert re.findall(r"(\d+) bytes spill", output) == ["0", "0"]
    assert "C75" not in output, "ptxas serialises wgmma"


def test_every_tile_fits_a_multiprocessor():
    for tile in TILES:
        assert tile.shared_bytes <= UNIT_SHARED
        assert tile.stages >= 3


def test_plans_choose_it_for_float32_on_hopper_alone():
    large = problem_of_shape(4096, 4096, 4096)
    plan = make_plan(large, H200)
    assert plan.kernel == "bf16x6"
    assert plan.floor <= plan.predicted < make_plan(replace(large, precision="ieee"), H200).predicted / 2
    assert make_plan(replace(large, precision="ieee"), H200).kernel == "plain"
    assert make_plan(large, KNOWN_CARDS["a100"]).kernel == "plain"
    assert make_plan(problem_of_shape(4096, 4096, 4096, semiring="min_plus"), H200).kernel == "plain"
    assert make_plan(problem_of_shape(4096, 4096, 4096, "float64"), H200).kernel == "mma_sync"
    own = tw.Semiring("mine", add=lambda x, y: x + y, mul=lambda x, y: x * y, zero=0)
    assert make_plan(problem_of_shape(4096, 4096, 4096, semiring=own), H200).kernel == "bf16x6"


def test_small_and_thin_products_stay_on_plain_cores_and_say_why():
    for shape in ((300, 300, 300), (1, 8192, 8192), (16, 8192, 8192)):
        plan = make_plan(problem_of_shape(*shape), H200)
        assert plan.kernel in ("plain", "few_rows", "few_dots", "direct", "sliced_k", "buffered")
        assert any("splitting operands would take longer" in note for note in plan.notes)
    elsewhere = make_plan(problem_of_shape(4096, 4096, 4096), KNOWN_CARDS["a100"])
    assert any("there is no tensor-core path for it here" in note for note in elsewhere.notes)


@pytest.mark.parametrize(
    ("dtype", "semiring", "card", "precision", "message"),
    [
        ("float64", "plus_times", "h200", "high", "multiplies float32, not float64"),
        ("float32", "min_plus", "h200", "high", "supports only plus_times, not min_plus"),
        ("float32", "plus_times", "a100", "high", "made for Hopper"),
        ("float32", "plus_times", "h200", "ieee", "with precision='high' or precision='tf32', not 'ieee'"),
    ],
)
def test_a_refused_request_names_the_reason(dtype, semiring, card, precision, message):
    problem = problem_of_shape(64, 64, 64, dtype, semiring, precision=precision)
    with pytest.raises(tw.UsageError, match=message):
        make_plan(problem, KNOWN_CARDS[card], "bf16x6")


@pytest.mark.parametrize(
    "shape", [(16384, 16384, 16384), (50_000, 50_000, 50_000), (10**6, 5000, 64), (128, 10**7, 128)]
)
def test_k_comes_in_slabs_where_planes_would_be_large(shape):
    m, k, n = shape
    slab = slab_of(m, k, n)
    assert slab % DEPTH == 0
    assert slab < k
    assert plane_bytes(max(m, n), slab) <= 2**30 or slab <= 1024 + DEPTH
    assert slab_of(4097, 4097, 4097) == 4128


@pytest.mark.parametrize("shape", [(4097, 4097, 4097), (1, 1, 1), (300, 5, 7), (4096, 128, 40960), (128, 65536, 128)])
def test_tiles_cover_P_in_every_config(shape):
    m, k, n = shape
    for config, _ in timed(BF16x6().tables(problem_of_shape(*shape), H200)):
        assert config.tiles(m, n) * config.tile.rows * config.tile.cols >= m * n
        assert config.blocks(m, n, 132) <= 132
        assert config.splits <= max(1, k // DEPTH)


def test_operands_whose_elements_lie_apart_are_packed():
    problem = replace(problem_of_shape(4096, 4096, 4096), layout_m=Layout(8192, 2), layout_n=Layout(1, 4096))
    assert make_plan(problem, H200, "bf16x6").packs == ("M",)


def test_planes_hold_three_times_two_bytes_of_whole_rows():
    assert plane_bytes(64, 64) == 3 * 2 * 64 * 64
    assert plane_bytes(33, 1) == 3 * 2 * 64 * 32


def test_the_fallback_and_the_products_check_first():
    """A flag on the card selects whose P is kept; every launch that would write P gets the flag's address."""
    p = problem_of_shape(300, 4096, 300)
    steps = [step for step in recipe_of(make_plan(p, H200, "bf16x6")).steps if step.name in ("plain", "combine")]
    wanted = []
    for step in steps:
        assert "    if (verdict && *verdict != wanted) return;" in text_of(step.source)
        verdict = next(at for at, argument in enumerate(step.arguments) if argument.holes and at > 2)
        wanted.append(int.from_bytes(step.arguments[verdict + 1].data, "little"))
    assert 1 in wanted
    alone = [step for step in recipe_of(make_plan(p, H200, "plain")).steps if step.name == "plain"]
    assert all(not argument.holes for step in alone for argument in step.arguments[3:])


# The arithmetic, in NumPy: what `split.cu` and `bf16x6.cu` do to numbers.


def parts_of(x):
    """Three bfloat16 parts, as float32."""
    parts = []
    for _ in range(3):
        part = x.astype(ml_dtypes.bfloat16).astype(np.float32)
        parts.append(part)
        x = x - part
    return parts


def truncated(x):
    """float64 to float32 toward zero, as tensor cores keep their sums."""
    near = x.astype(np.float32)
    return np.where(np.abs(near.astype(np.float64)) > np.abs(x), np.nextafter(near, np.float32(0)), near)


def model(M, N, segment=256):
    """Stages of 32 of k, the smallest products first, 16 of k at a time; stages are summed in float32."""
    m_parts, n_parts = parts_of(M), parts_of(N)
    P, sums = None, np.zeros((M.shape[0], N.shape[1]), np.float32)
    for number, start in enumerate(range(0, M.shape[1], 32)):
        if number and number % segment == 0:
            P, sums = (sums if P is None else P + sums), np.zeros_like(sums)
        stage = np.zeros_like(sums)
        for i, j in ((0, 2), (2, 0), (1, 1), (0, 1), (1, 0), (0, 0)):
            for k in range(start, min(start + 32, M.shape[1]), 16):
                piece = m_parts[i][:, k : k + 16].astype(np.float64) @ n_parts[j][k : k + 16].astype(np.float64)
                stage = truncated(stage + piece)
        sums = sums + stage
    return sums if P is None else P + sums


def error(P, exact):
    return np.linalg.norm(P - exact) / np.linalg.norm(exact)


def sequential(M, N):
    """float32 steps one after the other, as a plain kernel takes them."""
    P = np.zeros((M.shape[0], N.shape[1]), np.float32)
    for k in range(M.shape[1]):
        P += M[:, k : k + 1] * N[k]
    return P


DATA = {
    "normal": lambda rng, shape: rng.standard_normal(shape, np.float32),
    "uniform": lambda rng, shape: rng.random(shape, np.float32),
    "exponents": lambda rng, shape: (rng.standard_normal(shape) * 2.0 ** rng.uniform(-20, 20, shape)).astype(
        np.float32
    ),
}


@pytest.mark.drawn(5)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("k", [16, 100, 1024, 9000])
def test_the_model_is_as_accurate_as_float32(data, k):
    rng = np.random.default_rng(k)
    M, N = DATA[data](rng, (48, k)), DATA[data](rng, (k, 40))
    exact = M.astype(np.float64) @ N.astype(np.float64)
    assert error(model(M, N), exact) <= (1.5 if data == "exponents" else 1.0) * error(sequential(M, N), exact)


@pytest.mark.slow  # 1.5 s of NumPy on a model; on a card test_bf16x6_on_the_card has the kernel
def test_long_sums_do_not_drift_in_the_model():
    rng = np.random.default_rng(0)
    M, N = rng.random((8, 65536), np.float32), rng.random((65536, 8), np.float32)
    exact = M.astype(np.float64) @ N.astype(np.float64)
    assert error(model(M, N), exact) < 2.5e-7
    assert error(model(M, N, segment=10**9), exact) > error(model(M, N), exact)


@given(st.floats(2.0**-100, 2.0**127, width=32), st.booleans())
def test_parts_add_up_to_the_number(x, negative):
    number = np.float32(-x if negative else x)
    first, second, third = parts_of(np.array([number]))
    assert float(first[0]) + float(second[0]) + float(third[0]) == float(number)
    assert abs(second[0]) <= abs(number) * 2.0**-8
    assert abs(third[0]) <= abs(number) * 2.0**-16


@pytest.mark.skipif(not COMPILER, reason="there is no C++ compiler")
@pytest.mark.parametrize(("k", "n"), [(70, 40), (1000, 20)])
@pytest.mark.parametrize("across", [False, True])
def test_a_row_of_a_batch_is_judged_by_itself(tmp_path, k, n, across):
    """Rows that planes cannot hold have the bits of the definition, the others those that they have alone; a k of 1,000
    is not cut for a narrow N."""
    rng = np.random.default_rng(5)
    M, N = (rng.standard_normal(s, np.float32) for s in ((40, k), (k, n)))
    unsafe = [3, 7, 18, 33]
    M[3, 5], M[7, 6], M[18], M[33] = np.inf, np.nan, M[18] * np.float32(1e-35), M[33] * np.float32(1e36)
    M[4] = 0
    M, N = (np.asfortranarray(x) if across else x for x in (M, N))
    tile = next(x for x in TILES if x.cols == 64)

    def product(rows):
        P = np.zeros((len(M[rows]), n), np.float32)
        config = SplitConfig(tile)
        multiplied(
            M[rows],
            N,
            tw.semirings["plus_times"],
            H200,
            P,
            tmp_path,
            kernel="bf16x6",
            reproducible="batch",
            config=config,
        )
        return P

    whole = product(slice(None))
    with np.errstate(all="ignore"):
        defined = tw.matmul(M, N, reproducible="everywhere", device="cpu")
        assert np.array_equal(whole[unsafe].view(np.uint32), defined[unsafe].view(np.uint32))
    safe = np.setdiff1d(np.arange(40), unsafe)
    assert not np.array_equal(whole[safe].view(np.uint32), defined[safe].view(np.uint32))
    assert np.allclose(whole[safe], defined[safe], rtol=1e-5, atol=1e-4)
    for rows in (slice(0, 1), slice(3, 4), slice(2, 9), slice(17, 40)):
        assert np.array_equal(product(rows).view(np.uint32), whole[rows].view(np.uint32))


def test_slabs_of_an_order_end_where_sums_are_added_to_P():
    assert slab_of(16384, 50_000, 16384, ordered=True) == 2 * SEGMENT * DEPTH
