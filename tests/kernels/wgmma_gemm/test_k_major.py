"""tf32 and 8-bit elements on tensor cores where there is no card: the texts compile, and plans choose them rightly."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import tilewise as tw
from tilewise.algebra.dtypes import DTYPES, FLOAT8, dtype_given, promote
from tilewise.backends.cuda.compile import compile_source
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Layout, problem_of_shape
from tilewise.kernels.by_configs import timed
from tilewise.kernels.keys import text_of
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.shared.residency import UNIT_SHARED
from tilewise.kernels.shared.text import render_pack
from tilewise.kernels.transforms.transpose import render_transpose
from tilewise.kernels.wgmma_gemm.family import KMajor
from tilewise.kernels.wgmma_gemm.k_major.model import (
    ACROSS,
    ACROSS_TILES,
    BY_CLASSES,
    KINDS,
    TILES,
    TRANSPOSED,
    KMajorTile,
    paired,
    route,
)
from tilewise.kernels.wgmma_gemm.k_major.seconds import boxed
from tilewise.kernels.wgmma_gemm.k_major.text import render_k_across, render_k_major
from tilewise.planning.choose import make_plan
from tilewise.system.cache import DiskCache

H200 = KNOWN_CARDS["h200"]
E4M3, E5M2 = FLOAT8["float8_e4m3fn"], FLOAT8["float8_e5m2"]
FORMS = [
    (("float32", "float32"), {"boxed": True, "result": "float32"}),
    (("float32", "float32"), {"boxed": False, "result": "float32"}),
    (("int8", "int8"), {"boxed": True, "result": "int32"}),
    (("uint8", "int8"), {"boxed": False, "result": "int32"}),
    (("int8", "int8"), {"boxed": False, "result": "int8"}),
    (("float8_e4m3fn", "float8_e5m2"), {"boxed": True, "result": "float32"}),
    (("float8_e4m3fn", "float8_e4m3fn"), {"boxed": True, "result": "bfloat16", "paired": True}),
    (("float8_e4m3fn", "float8_e4m3fn"), {"boxed": False, "result": "bfloat16", "paired": True}),
    (("float8_e5m2", "float8_e5m2"), {"boxed": False, "result": "float16"}),
    (("float8_e4m3fn", "float8_e4m3fn"), {"boxed": False, "result": "bfloat16", "paired": True, "scaled": True}),
    (("float8_e4m3fn", "float8_e4m3fn"), {"boxed": True, "result": "float32", "scaled": True}),
]

ACROSS_FORMS = [
    {"apart": True, "classes": 4, "boxed": False, "onto": False},
    {"apart": False, "classes": 1, "boxed": True, "onto": False},
    {"apart": False, "classes": 4, "boxed": False, "onto": True},
    {"apart": True, "classes": 1, "boxed": False, "onto": False},
    {"apart": True, "classes": 1, "boxed": True, "onto": False},
]


def problem(m, k, n, dtype_m, dtype_n=None, requested=None, **options):
    made = problem_of_shape(m, k, n, dtype_m, **options)
    return replace(made, dtype_n=dtype_n or made.dtype_m, requested=requested and DTYPES[requested])


SAMPLE = {
    "turn float32": lambda: render_transpose(4),
    "turn int8": lambda: render_transpose(1),
    "pack": lambda: render_pack(E4M3, DTYPES["bfloat16"], False),
    **{f"k_major {i}": lambda i=i: render_k_major(FORMS[i][0], KMajorTile(128, 2), **FORMS[i][1]) for i in (0, 3, 6)},
    **{f"k_across {i}": lambda i=i: render_k_across(ACROSS_TILES[i], **ACROSS_FORMS[i]) for i in (0, 3)},
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_compiles(tmp_path, name):
    assert compile_source(SAMPLE[name](), "sm_90a", DiskCache("cubin", tmp_path))[:4] == b"\x7fELF"


def ptxas_reports_nothing_bad(path, text):
    path.write_text(text)
    arch, target = "-gencode=arch=compute_90a,code=sm_90a", str(path.with_suffix(".cubin"))
    command = ["nvcc", "-std=c++17", arch, "-Xptxas", "-v", "-cubin", "-o", target, str(path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert re.findall(r"(\d+) bytes spill", output) == ["0", "0"]
    assert "C75" not in output, "ptxas serialises wgmma"


needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="ptxas speaks through nvcc")


def named(tile):
    return f"{tile.rows}x{tile.cols}c{tile.cluster}{'beside' * tile.beside}"


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("tile", TILES, ids=named)
def test_no_form_spills_or_serialises(tmp_path, tile):
    for number, (kinds, form) in enumerate(FORMS):
        if tile.takes(KINDS[kinds[0]]):  # else it is never planned
            ptxas_reports_nothing_bad(tmp_path / f"{number}.cu", render_k_major(kinds, tile, **form))


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("tile", ACROSS_TILES, ids=named)
def test_no_form_from_registers_spills_or_serialises(tmp_path, tile):
    for number, form in enumerate(ACROSS_FORMS):
        ptxas_reports_nothing_bad(tmp_path / f"{number}.cu", render_k_across(tile, **form))


def test_every_tile_fits_a_multiprocessor():
    for tile in (*TILES, *ACROSS_TILES):
        assert tile.shared_bytes <= UNIT_SHARED
        assert tile.stages >= 4
        assert all(lines % 8 == 0 for lines in tile.fetched)  # whole pieces of the swizzle


def test_blocks_side_by_side_leave_no_half_of_a_cluster_below_P():
    """4097 rows are 33 of tiles: a pair of blocks above one another would have nothing to do 20 times."""
    columns = Layout(1, 4097)  # of N, k side by side
    config = make_plan(replace(problem(4097, 4097, 4097, "float32", precision="tf32"), layout_n=columns), H200).config
    assert config.tile.beside
    assert "2 blocks, side by side, share their tiles of M" in config.notes()
    columns = Layout(1, 4096)
    config = make_plan(replace(problem(4096, 4096, 4096, "float32", precision="tf32"), layout_n=columns), H200).config
    assert not config.tile.beside


@pytest.mark.parametrize(
    ("size", "routes"),
    [
        (2047, (BY_CLASSES, ACROSS)),
        (3001, (TRANSPOSED, TRANSPOSED)),
        (4096, ("as it is", ACROSS)),
        (4097, (TRANSPOSED, ACROSS)),
        (8191, (TRANSPOSED, TRANSPOSED)),
    ],
)
def test_N_stays_as_it_lies_where_that_was_measured_sooner_done(size, routes):
    plan = make_plan(problem(size, size, size, "float32", precision="tf32"), H200)
    assert plan.config.routes == routes
    from_registers = "N goes to the tensor cores from registers, contiguous across k"
    assert (from_registers in plan.config.notes()) == (routes[1] == ACROSS)
    assert any("k_across(" in text_of(text) for text in recipe_of(plan).sources) == (routes[1] == ACROSS)
    columns = replace(problem(size, size, size, "float32", precision="tf32"), layout_n=Layout(1, size))
    assert ACROSS not in make_plan(columns, H200).config.routes  # its k lies side by side


def test_plans_choose_it_on_hopper_alone():
    for requested in (
        problem(4096, 4096, 4096, "float32", precision="tf32"),
        problem(4096, 4096, 4096, "int8"),
        problem(4096, 4096, 4096, "uint8", DTYPES["int8"], "int32"),
        problem(4096, 4096, 4096, E4M3),
        problem(4096, 4096, 4096, E4M3, E5M2, "bfloat16"),
    ):
        plan = make_plan(requested, H200)
        assert plan.kernel == "k_major"
        assert plan.packs == ()
        assert plan.predicted >= plan.floor
        assert make_plan(requested, KNOWN_CARDS["a100"]).kernel != "k_major"
    assert make_plan(problem(4096, 4096, 4096, "int8", requested="int64"), H200).kernel == "plain"
    assert make_plan(problem(4096, 4096, 4096, "int8", semiring="min_plus"), H200).kernel == "plain"
    assert make_plan(problem(4096, 4096, 4096, "float32"), H200).kernel == "bf16x6"


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        (problem(64, 64, 64, "float32"), "multiplies float32 with precision='tf32', and 8-bit"),
        (problem(64, 64, 64, "float64"), "not float64 by float64 into float64"),
        (problem(64, 64, 64, "int8", requested="int64"), "not int8 by int8 into int64"),
        (problem(64, 64, 64, "int8", semiring="max_plus"), "supports only plus_times"),
    ],
)
def test_a_refused_request_names_the_reason(requested, message):
    with pytest.raises(tw.UsageError, match=message):
        make_plan(requested, H200, "k_major")


@pytest.mark.parametrize(
    ("strides", "expected"),
    [
        ((64, 1, 16), "as it is"),
        ((65, 1, 16), "transposed"),  # lines start anywhere
        ((64, 1, 4), "transposed"),  # so does the first
        ((1, 64, 16), "transposed"),  # k across the lines
        ((64, 2, 16), "transposed"),  # elements apart
        ((-64, 1, 16), "transposed"),
        ((0, 1, 16), "transposed"),  # broadcast
    ],
)
def test_the_route_follows_the_strides(strides, expected):
    line, k, alignment = strides
    assert route(line, k, 32, 48, alignment, 4) == expected
    assert route(64, 1, 32, 48, 16, 1) == "as it is"
    assert route(24, 1, 32, 20, 16, 1) == "transposed"


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (1, 16, 5), (5, 1, 1), (129, 65, 257), (64, 64, 64), (3, 5000, 30), (40, 40, 255)]
)
@pytest.mark.parametrize(
    ("kind", "requested"), [("float32", None), ("int8", "int32"), ("int8", None), (E4M3, "bfloat16")]
)
def test_tensor_maps_are_multiples_of_16_bytes(shape, kind, requested):
    """Addresses and strides of every tensor map, for every layout; the TMA refuses any others."""
    m, k, n = shape
    maps_seen = 0
    for extra, transposed in itertools.product((0, 1, 16), (False, True)):
        variant = problem(m, k, n, kind, requested=requested, precision="tf32")
        layout_m = Layout(1, m + extra) if transposed else Layout(k + extra, 1)
        layout_n = Layout(1, k + extra) if transposed else Layout(n + extra, 1)
        variant = replace(variant, layout_m=layout_m, layout_n=layout_n, layout_p=Layout(n + extra, 1))
        for step in recipe_of(make_plan(variant, H200, "k_major")).steps:
            for made in (made for argument in step.arguments for _, made in argument.maps):
                size, maps_seen = {"uint8": 1, "uint16": 2}.get(made.kind, 4), maps_seen + 1
                assert made.address % 16 == made.lead % 16 == 0
                assert made.lines >= 1
                whole = made.length * size % 16 == 0
                assert made.address.base != "P" or whole, "it would write whole 16 bytes where P ends"
                assert made.lead >= made.length * size or made.lines == 1
                assert made.box * size == 128 if made.swizzled else made.box in (132, 136)
                assert made.box_lines <= 256
    assert maps_seen >= 12


def test_how_P_is_stored_follows_its_rows():
    assert boxed(Layout(64, 1), 32, 36, 16, 4)
    assert boxed(Layout(65, 1), 1, 36, 16, 4)  # of one row
    assert boxed(Layout(64, 1), 32, 40, 16, 2)
    assert not boxed(Layout(65, 1), 32, 36, 16, 4)
    assert not boxed(Layout(64, 1), 32, 33, 16, 4)  # rows end anywhere
    assert not boxed(Layout(64, 1), 32, 36, 16, 2)
    assert not boxed(Layout(64, 1), 32, 36, 8, 4)
    assert not boxed(Layout(64, 1), 32, 64, 16, 1)
    assert paired(Layout(64, 1), 32, 33, 4, 2)
    assert not paired(Layout(65, 1), 32, 33, 4, 2)


def test_tiles_cover_P_in_every_config():
    for shape in ((4097, 4097, 4097), (1, 1, 1), (300, 5, 7), (128, 65536, 128)):
        m, _, n = shape
        for config, _ in timed(KMajor().tables(problem(*shape, "float32", precision="tf32"), H200)):
            assert config.tiles(m, n) * config.tile.cluster * config.tile.rows * config.tile.cols >= m * n
            assert config.blocks(m, n, 132) % config.tile.cluster == 0


def test_dtype_is_numpys():
    M, N = np.full((3, 300), 100, np.int8), np.full((300, 2), 100, np.int8)
    assert tw.matmul(M, N, dtype="int32").tolist() == np.matmul(M, N, dtype=np.int32).tolist()
    assert tw.matmul(M, N, dtype=np.int64).dtype == np.int64
    assert tw.matmul(M, N).dtype == np.int8
    out = np.zeros((3, 2), np.int32)
    assert tw.matmul(M, N, dtype=np.int32, out=out) is out
    assert out[0, 0] == 3_000_000
    with pytest.raises(tw.DtypeError, match="dtype='int32' cannot hold a product of float64"):
        tw.matmul(M * 1.0, N, dtype="int32")
    with pytest.raises(tw.DtypeError, match="'words' is not known"):
        tw.matmul(M, N, dtype="words")
    assert dtype_given(np.float32) == DTYPES["float32"]


@pytest.mark.parametrize("name", FLOAT8)
def test_eight_bit_floats_are_multiplied_as_float32(name):
    kind = getattr(ml_dtypes, name)
    rng = np.random.default_rng(0)
    M, N = rng.standard_normal((5, 70)).astype(kind), rng.standard_normal((70, 6)).astype(kind)
    exact = M.astype(np.float64) @ N.astype(np.float64)
    P = tw.matmul(M, N)
    assert P.dtype == np.float32
    assert np.allclose(P, exact, rtol=1e-5, atol=1e-5)
    assert tw.matmul(M, N, dtype="bfloat16").dtype == ml_dtypes.bfloat16
    assert promote(FLOAT8[name], DTYPES["float64"]) == DTYPES["float64"]
    rows, cols = rng.random(5, np.float32), rng.random((1, 6), np.float32)
    assert np.allclose(tw.matmul(M, N, scales=(rows, cols)), rows[:, None] * exact * cols, rtol=1e-5, atol=1e-5)
    assert np.allclose(tw.matmul(M, N, scales=(0.5, rows[:1])), 0.5 * exact * rows[0], rtol=1e-5, atol=1e-5)
    scaled = tw.matmul(M, N, scales=(None, 3), dtype="bfloat16", out=np.zeros((5, 6), ml_dtypes.bfloat16))
    assert np.allclose(scaled.astype(np.float64), 3 * exact, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    ("scales", "error", "message"),
    [
        (2.0, tw.UsageError, "scales must be a pair"),
        (
            (np.ones(4, np.float32), 1),
            tw.ShapeError,
            r"the scale of M has shape \(4,\): pass one number, or 5 in a vector",
        ),
        ((1, np.ones(6)), tw.DtypeError, "the scale of N has dtype float64: pass float32"),
    ],
)
def test_scales_that_do_not_fit_say_so(scales, error, message):
    M, N = np.ones((5, 7), ml_dtypes.float8_e4m3fn), np.ones((7, 6), ml_dtypes.float8_e4m3fn)
    with pytest.raises(error, match=message):
        tw.matmul(M, N, scales=scales)


@pytest.mark.parametrize("dtype", [E4M3, DTYPES["float32"]])
def test_the_order_of_a_batch_is_one_for_any_rows(dtype):
    """k in one piece, from its first element on; rows of M not by alignment classes."""
    for k, n in ((4096, 1024), (777, 333), (4096, 14336)):
        configs = [
            make_plan(problem_of_shape(m, k, n, dtype, precision="tf32", reproducible="batch"), H200, "k_major").config
            for m in (1, 7, 100, 1000, 5000)
        ]
        assert all(config.splits == 1 and BY_CLASSES not in config.routes for config in configs)
    with pytest.raises(tw.UsageError, match="adds up in an order of its own"):
        make_plan(problem_of_shape(70, 100, 90, dtype, precision="tf32", reproducible="everywhere"), H200, "k_major")


def test_a_symmetric_product_is_planned_by_its_upper_tiles():
    whole = replace(problem_of_shape(8192, 2048, 8192, "float32", precision="tf32"), layout_n=Layout(1, 2048))
    plan, half = (make_plan(replace(whole, symmetric=x), H200) for x in (False, True))
    assert half.config.symmetric
    assert half.predicted < 0.65 * plan.predicted
    assert half.notes[-1] == "symmetric: 0.52 of the tiles"
    small = replace(whole, m=2048, n=2048, layout_p=Layout(2048, 1), symmetric=True)
    assert not make_plan(small, H200).config.symmetric  # one wave either way, and its tiles are stored twice
