"""The plain kernels where there is no card: every form compiles, nothing spills, and plans choose rightly."""

from __future__ import annotations

import io
import itertools
import re

import pytest

import tilewise as tw
from operands import CARD_DTYPES, SEMIRINGS, works
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cuda.compile import compile_source
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import problem_of_shape
from tilewise.kernels.closure.text import ClosureForm, render_closure
from tilewise.kernels.keys import text_of
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.simt_gemm.skinny import skinny_tile
from tilewise.kernels.simt_gemm.text import render_skinny
from tilewise.kernels.simt_gemm.tiled.configs import config_of
from tilewise.kernels.simt_gemm.tiled.model import choose
from tilewise.kernels.simt_gemm.tiled.text import (
    Form,
    render_join,
    render_limit,
    render_pack_words,
    render_plain,
)
from tilewise.kernels.simt_gemm.tiled.tiles import tiles_of
from tilewise.kernels.transforms.sums import render_combine
from tilewise.planning.choose import make_plan
from tilewise.system.cache import DiskCache

H200, A100, T4 = (KNOWN_CARDS[name] for name in ("h200", "a100", "t4"))
ARCHS = {"sm_75": T4, "sm_80": A100, "sm_90a": H200}
ALL = [(s, d) for s in SEMIRINGS for d in CARD_DTYPES if works(s, d)]


def compiled(text, arch):
    """Registers and bytes spilled, as ptxas says."""
    from cuda.core import Program, ProgramOptions

    output = io.StringIO()
    options = ProgramOptions(arch=arch, std="c++17", ptxas_options=["-v"])
    assert bytes(Program(text, "c++", options).compile("cubin", logs=output).code)[:4] == b"\x7fELF"
    registers = re.search(r"Used (\d+) registers", output.getvalue())
    return int(registers.group(1)), sum(map(int, re.findall(r"(\d+) bytes spill", output.getvalue())))


def forms(config):
    """How operands may lie and P be written: each of them at least once."""
    full = 16 // config.word_bytes
    yield Form(config, not config.converts, False, full, full, True, False)
    yield Form(config, False, not config.converts, full, full, True, True)
    if not config.converts:
        yield Form(config, True, False, 1, 1, False, False)
    yield Form(config, False, False, full, full, True, False, split=True)
    yield Form(config, False, False, full, full, False, False, tail=config.name != "where")
    if config.name != "where":
        yield Form(config, False, False, full, full, True, False, symmetric=True)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("arch", "name", "dtype", "how"),
    [
        ("sm_75", "min_plus", "float32", {}),
        ("sm_80", "min_plus", "float16", {}),
        ("sm_90a", "plus_times", "float32", {}),
        ("sm_90a", "min_plus", "float32", {"nonnegative": True}),
        ("sm_90a", "max_plus", "int16", {}),
        ("sm_90a", "min_plus", "float64", {"return_arg": True}),
        ("sm_90a", "lor_land", "bool", {}),
    ],
)
def test_a_sample_compiles_and_does_not_spill(arch, name, dtype, how):
    algebra = tw.semirings[name].over(DTYPES[dtype])
    config = config_of(algebra, ARCHS[arch], **how)
    assert compiled(render_plain(algebra, tiles_of(config)[0], next(forms(config))), arch)[1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("name", "dtype"), ALL)
def test_every_kernel_compiles_for_every_arch_and_none_spills(arch, name, dtype, tmp_path):
    machine, ring, number = ARCHS[arch], tw.semirings[name], DTYPES[dtype]
    algebra = ring.over(number)
    for nonnegative, return_arg in ((False, False), (True, False), (False, True)):
        if return_arg and not ring.selective:
            continue
        config = config_of(algebra, machine, nonnegative, return_arg)
        for tile, form in itertools.product(tiles_of(config), forms(config)):
            if machine is H200:
                assert compiled(render_plain(algebra, tile, form), arch)[1] == 0, f"{config} {tile} {form} spills"
        cache = DiskCache("cubin", tmp_path)
        if machine is not H200:
            compile_source(render_plain(algebra, tiles_of(config)[0], next(forms(config))), arch, cache)
        compile_source(render_combine(algebra, 8, return_arg), arch, cache)
        compile_source(render_limit(algebra, config), arch, cache)
        if config.name != "where":
            compile_source(render_join(algebra, config, tiles_of(config)[0]), arch, cache)
        for side, along_k in (("M", True), ("N", False)):
            compile_source(render_pack_words(algebra, config, side, along_k), arch, cache)
        widest = ((False, 16, 16), (False, 8, 16)) if machine is H200 else ()
        for swapped, few, alignment in ((False, 1, 16), (True, 16, number.itemsize), (False, 5, 4), *widest):
            shape = (64, 64, few) if swapped else (few, 64, 64)
            tile = skinny_tile(problem_of_shape(*shape, dtype, name), machine, swapped, few, alignment)
            if tile is not None and not return_arg:
                assert compiled(render_skinny(algebra, tile, accumulate=True), arch)[1] == 0, f"{tile} spills"


@pytest.mark.drawn(3)
@pytest.mark.parametrize("kernel", ["start", "heaviest", "close_block", "improve", "finish", "lost"])
def test_the_closures_kernels_compile(kernel, tmp_path):
    cache = DiskCache("cubin", tmp_path)
    integers = tw.semirings["min_plus"].over(DTYPES["int32"])
    reach, hops = tw.semirings["lor_land"].over(DTYPES["float16"]), tw.semirings["min_plus"].over(DTYPES["float32"])
    for form in (ClosureForm(integers, integers, 0, 2**30, True), ClosureForm(reach, hops, 0, float("inf"), True)):
        if kernel != "heaviest" or form.given is integers:
            assert compile_source(render_closure(kernel, form), "sm_90a", cache)[:4] == b"\x7fELF"


def test_configs_follow_the_trees_not_the_names():
    own = tw.Semiring("mine", add=tw.minimum, mul=lambda x, y: x + y, zero=tw.largest)
    for dtype in ("float32", "int32", "int16", "float16", "bool", "float64"):
        algebras = [ring.over(DTYPES[dtype]) for ring in (own, tw.semirings["min_plus"])]
        assert config_of(algebras[0], H200) == config_of(algebras[1], H200)
        tile = tiles_of(config_of(algebras[0], H200))[0]
        texts = [render_plain(a, tile, next(forms(config_of(a, H200)))) for a in algebras]
        assert texts[0].replace("mine", "min_plus") == texts[1]


@pytest.mark.parametrize(
    ("name", "dtype", "machine", "how", "config"),
    [
        ("min_plus", "int32", H200, {}, "fused"),
        ("min_plus", "int32", A100, {}, "each"),
        ("max_plus", "uint16", H200, {}, "shorts"),
        ("min_plus", "bfloat16", H200, {}, "pairs"),
        ("min_plus", "bfloat16", A100, {}, "each"),
        ("max_times", "float16", A100, {}, "pairs"),
        ("max_times", "bfloat16", H200, {}, "each"),
        ("min_plus", "float32", H200, {"nonnegative": True}, "three"),
        ("max_times", "float32", H200, {"nonnegative": True}, "each"),  # ∞ · 0 is NaN, which would win as an integer
        ("lor_land", "float64", T4, {}, "bits"),
        ("plus_times", "bool", H200, {}, "bits"),
        ("logaddexp_plus", "float16", H200, {}, "online"),
        ("max_min", "float64", H200, {"return_arg": True}, "where"),
    ],
)
def test_the_config_of_a_semiring_step(name, dtype, machine, how, config):
    assert config_of(tw.semirings[name].over(DTYPES[dtype]), machine, **how).name == config


def test_a_plan_shows_the_text_it_runs():
    for shape in ((512, 512, 512), (4, 5000, 5000), (5000, 5000, 4)):
        plan = make_plan(problem_of_shape(*shape, semiring="min_plus"), H200)
        texts = list(map(text_of, recipe_of(plan).sources))
        assert not any("#include" in text for text in texts)
        assert any(re.search(rf"\b{plan.kernel}\(", text) for text in texts)


def test_last_tiles_in_pieces_compile_and_do_not_spill():
    algebra = tw.semirings["min_plus"].over(DTYPES["float32"])
    config = config_of(algebra, H200)
    tile = tiles_of(config)[0]
    assert (
        compiled(render_plain(algebra, tile, Form(config, False, False, 4, 4, False, False, tail=True)), "sm_90a")[1]
        == 0
    )
    assert compiled(render_join(algebra, config, tile), "sm_90a")[1] == 0
    assert compiled(render_pack_words(algebra, config, "M", True, 0x7F800000), "sm_90a")[1] == 0


@pytest.mark.parametrize("shape", [(5003, 3001, 7013), (8191, 8191, 8191), (2100, 2100, 2100)])
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus"])
def test_pieces_of_the_last_tiles_make_up_k_and_stay_few(shape, semiring):
    m, k, n = shape
    choice = choose(problem_of_shape(m, k, n, semiring=semiring, precision="ieee"), H200)
    if choice.tail is None:
        assert (shape[0], semiring) == (2100, "plus_times")  # smaller tiles fill the card
        return
    tail, tile = choice.tail, choice.tile
    tiles = -(-choice.rows // tile.rows) * -(-choice.cols // tile.cols)
    assert tail.tiles == tiles % H200.units
    whole, first, each = tail.cut(tiles)
    assert whole % H200.units == 0
    assert first + (tail.pieces - 2) * each < k <= first + (tail.pieces - 1) * each
    assert tail.pieces * tail.tiles * tile.rows * tile.cols * 4 <= 128 * 2**20


def test_no_piece_of_the_last_tiles_without_k():
    assert choose(problem_of_shape(5003, 0, 7013, precision="ieee"), H200).tail is None
    assert choose(problem_of_shape(5003, 0, 7013, semiring="min_plus"), H200).otherwise is None


@pytest.mark.parametrize(
    ("semiring", "dtype", "how", "sought"),
    [
        ("min_plus", "float32", {}, True),
        ("max_times", "float32", {}, True),
        ("min_plus", "float32", {"nonnegative": True}, False),  # promised
        ("min_plus", "float32", {"accumulate": True}, False),
        ("plus_times", "float32", {"precision": "ieee"}, False),
        ("min_plus", "float64", {}, False),
    ],
)
def test_what_is_looked_for_on_the_card(semiring, dtype, how, sought):
    choice = choose(problem_of_shape(4096, 4096, 4096, dtype, semiring, **how), H200)
    assert (choice.otherwise is not None) == sought
    assert (choice.limit > 0) == sought
    if sought:
        assert (choice.config.name, choice.otherwise[0].name) == ("three", "each")
        assert choice.limit == (0x7F7FFFFF if semiring == "max_times" else 0x7F800000)


def test_every_tile_fits_a_hopper_multiprocessor():
    for dtype in ("float32", "float64", "complex128", "int16"):
        config = config_of(
            tw.semirings["plus_times" if dtype == "complex128" else "min_plus"].over(DTYPES[dtype]), H200
        )
        for tile in tiles_of(config):
            assert tile.resident * (tile.shared_bytes(config.word_bytes) + 1024) <= 228 * 1024


def test_planes_of_sums_stay_small():
    for m, k, n in ((128, 65536, 128), (8192, 8192, 8192), (16384, 16384, 16384), (1000, 10**6, 1000), (64, 10**7, 64)):
        for name, dtype in (("plus_times", "float32"), ("min_plus", "float64"), ("plus_times", "complex128")):
            choice = choose(problem_of_shape(m, k, n, dtype, name), H200)
            planes = choice.pieces * m * n * DTYPES[dtype].itemsize
            assert choice.pieces == 1 or planes <= 128 * 2**20
    assert choose(problem_of_shape(128, 65536, 128), H200).pieces > 32


@pytest.mark.parametrize(("card", "limit"), [("t4", 64), ("a100", 163), ("rtx4090", 99), ("h200", 227)])
def test_no_tile_needs_more_shared_memory_than_a_block_may_have(card, limit):
    for name, dtype in ALL:
        for nonnegative in (False, True):
            problem = problem_of_shape(4096, 4096, 4096, dtype, name, nonnegative=nonnegative)
            assert make_plan(problem, KNOWN_CARDS[card], "plain").geometry.shared_bytes <= limit * 1024


def test_few_rows_are_refused_where_there_are_many():
    with pytest.raises(tw.UsageError, match="up to 16 rows or columns"):
        make_plan(problem_of_shape(64, 64, 64), H200, "few_rows")


def test_thin_edges_are_left_to_the_kernels_for_few():
    ragged = choose(problem_of_shape(4097, 4097, 4097), H200)
    assert (ragged.rows, ragged.cols) == (4096, 4096)
    near = choose(problem_of_shape(4100, 4100, 4095), H200)
    assert (near.rows, near.cols) == (4096, 4095)
