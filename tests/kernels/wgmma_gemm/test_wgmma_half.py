"""The tensor-core kernel where there is no card: every form compiles, nothing spills, and plans choose it rightly."""

from __future__ import annotations

import io
import math
import random
import re
import shutil
import subprocess
import time
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cuda.compile import compile_source
from tilewise.core.epilogue import Epilogue
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Layout, problem_of_shape
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.registry import family_named
from tilewise.kernels.shared.layouts import along_columns, contiguous_lines
from tilewise.kernels.transforms.realign import render_realign
from tilewise.kernels.transforms.sums import render_add_parts
from tilewise.kernels.wgmma_gemm.wgmma_half.model import best_config, configs
from tilewise.kernels.wgmma_gemm.wgmma_half.routes import route
from tilewise.kernels.wgmma_gemm.wgmma_half.text import (
    render_realign_with_edges,
    render_wgmma_half,
)
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import CUTS, INSIDE, TILES, TensorTile
from tilewise.planning.choose import make_plan
from tilewise.system.cache import DiskCache

H200 = KNOWN_CARDS["h200"]
BF16 = DTYPES["bfloat16"]
FORMS = [
    {"m_along_k": True, "n_along_k": False, "store": "boxes"},
    {"m_along_k": False, "n_along_k": True, "store": "boxes", "accumulate": True},
    {"m_along_k": True, "n_along_k": True, "store": "carried"},
    {"m_along_k": True, "n_along_k": False, "store": "carried", "classes": 8},
    {"m_along_k": True, "n_along_k": False, "store": "rows", "classes": 8, "edged": True},
    {"m_along_k": False, "n_along_k": False, "store": "rows", "edged": True},
    {"m_along_k": False, "n_along_k": False, "store": "carried", "edged": True},
    {"m_along_k": True, "n_along_k": False, "store": "carried", "edged": True},
    {"m_along_k": True, "n_along_k": False, "store": "carried", "classes": 8, "edged": True},
    {"m_along_k": False, "n_along_k": True, "store": "carried", "edged": True},
    {"m_along_k": True, "n_along_k": True, "store": "carried", "edged": True},
    {"m_along_k": False, "n_along_k": False, "store": "rows", "accumulate": True},
    {"m_along_k": True, "n_along_k": False, "store": "rows", "classes": 1},
    {"m_along_k": True, "n_along_k": False, "store": "partial"},
    {"m_along_k": True, "n_along_k": False, "store": "partial", "accumulate": True},
    {"m_along_k": True, "n_along_k": False, "store": "boxes", "serial": True},
    {"m_along_k": True, "n_along_k": True, "store": "boxes", "symmetric": True},
    {"m_along_k": True, "n_along_k": True, "store": "rows", "symmetric": True, "epilogue": Epilogue(2.0)},
    {"m_along_k": False, "n_along_k": False, "store": "boxes", "symmetric": True, "accumulate": True},
]


PASSES = [
    render_realign,
    partial(render_realign_with_edges, "float16", True),
    partial(render_add_parts, DTYPES["float16"], DTYPES["float16"], 8, wide=2),
    partial(render_add_parts, DTYPES["bfloat16"], DTYPES["bfloat16"], 1, wide=2),
]


def test_a_sample_compiles(tmp_path):
    """Of the passes beside it one and of its forms one, drawn at random; `test_no_form_spills_or_serialises` has all
    forms, `test_every_pass_compiles` all passes."""
    seed = next_seed() % 10**9
    print("seed", seed)
    cache = DiskCache("cubin", tmp_path)
    draw = random.Random(seed)
    texts = [render() for render in draw.sample(PASSES, 1)]
    transposed = TensorTile(128, 176, 2), {"m_along_k": False, "n_along_k": True, "store": "transposed"}
    for tile, form in draw.sample([transposed, *zip(TILES, FORMS, strict=False)], 1):
        texts.append(render_wgmma_half(draw.choice(("bfloat16", "float16")), tile, **form))
    for text in texts:
        assert compile_source(text, "sm_90a", cache)[:4] == b"\x7fELF"


@pytest.mark.slow
def test_every_pass_compiles(tmp_path):
    for render in PASSES:
        assert compile_source(render(), "sm_90a", DiskCache("cubin", tmp_path))[:4] == b"\x7fELF"


def output_of(text, path):
    """What ptxas says about a kernel."""
    path.write_text(text)
    arch = "-gencode=arch=compute_90a,code=sm_90a"
    command = ["nvcc", "-std=c++17", arch, "-Xptxas", "-v", "-cubin", "-o", str(path.with_suffix(".cubin")), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="ptxas speaks through nvcc")
def test_realigning_does_not_spill(tmp_path):
    forms = product(("bfloat16", "float16"), (False, True))
    texts = (render_realign(), *(render_realign_with_edges(*form) for form in forms))
    for number, text in enumerate(texts):
        spilled = re.findall(r"(\d+) bytes spill", output_of(text, tmp_path / f"{number}.cu"))
        assert set(spilled) == {"0"}  # stores and loads of each kernel


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="ptxas speaks through nvcc")
@pytest.mark.parametrize("tile", TILES, ids=lambda t: f"{t.rows}x{t.cols}c{t.cluster}x{t.beside}")
@pytest.mark.parametrize("epilogue", [Epilogue(), Epilogue(0.5, BF16, "gelu")], ids=["bare", "epilogue"])
def test_no_form_spills_or_serialises(tmp_path, tile, epilogue):
    for number, form in enumerate(FORMS):
        rounded = form.get("accumulate") and form["store"] != "partial"
        if (form.get("edges") and not tile.takes_edges) or (rounded and not tile.takes_accumulate):
            continue  # never planned
        if form.get("serial") and not tile.takes_serial:
            continue
        if epilogue and form["store"] == "partial":
            continue  # parts of k are finished by `gather`
        text = render_wgmma_half(("bfloat16", "float16")[number % 2], tile, **form, epilogue=epilogue)
        output = output_of(text, tmp_path / f"{number}.cu")
        assert re.findall(r"(\d+) bytes spill", output) == ["0", "0"]
        assert "C75" not in output, "ptxas serialises wgmma"
        assert tile.shared_bytes(form["store"]) <= 227 * 1024
        assert tile.stages(form["store"]) >= 3


@pytest.mark.parametrize("shape", [(4096, 1024), (2048, 64), (3584, 512), (1900, 512), (4096, 4096), (4099, 1001)])
def test_with_an_order_of_sums_k_and_n_alone_decide_how_k_is_cut(shape):
    k, n = shape
    rng, found, expected = random.Random(3), set(), {(4096, 1024): 4, (4099, 1001): 4}
    for m in (1, 2, 7, 16, 33, 64, 100, 256, 1000, 4096):
        p = problem_of_shape(m, k, n, "bfloat16", reproducible="batch", accumulate=rng.random() < 0.3)
        for layout_m in (p.layout_m, Layout(1, m, (), 16), Layout(k + 3, 1, (), 2), Layout(2 * k, 2, (), 16)):
            stacks = ((), (3,)) if layout_m is p.layout_m else ((),)
            for stack in stacks:
                layouts = [x._replace(stack=(m * k * n,) * len(stack)) for x in (layout_m, p.layout_n, p.layout_p)]
                one = replace(p, stack=stack, layout_m=layouts[0], layout_n=layouts[1], layout_p=layouts[2])
                config = make_plan(one, H200).config
                assert config.in_order
                found.add(config.splits)
    assert found == {expected.get(shape, 1)}


def test_an_empty_product_with_an_order_of_sums_has_a_plan():
    for dtype, m, n in product(("bfloat16", "float32"), (0, 5), (0, 5)):
        make_plan(problem_of_shape(m, 4096, n, dtype, precision="tf32", reproducible="batch"), H200)
    for level in (None, "batch"):
        p = problem_of_shape(3, 40, 30, "bfloat16", reproducible=level)
        layouts = [x._replace(stack=(step,)) for x, step in ((p.layout_m, 120), (p.layout_n, 1200), (p.layout_p, 90))]
        recipe_of(
            make_plan(replace(p, stack=(0,), layout_m=layouts[0], layout_n=layouts[1], layout_p=layouts[2]), H200)
        )
    for m in (1, 4000):  # of one family, which adds nothing to what P holds
        assert make_plan(problem_of_shape(m, 0, 4000, "bfloat16", reproducible="batch"), H200).kernel == "plain"


def test_integers_need_no_order():
    for shape in ((5, 6, 7), (600, 700, 800)):
        p = problem_of_shape(*shape, "int8", reproducible="batch")
        assert make_plan(p, H200).kernel == make_plan(replace(p, reproducible=None), H200).kernel


def test_plans_choose_it_for_halves_on_hopper_alone():
    large = problem_of_shape(4096, 4096, 4096, "bfloat16")
    assert make_plan(large, H200).kernel == "wgmma_half"
    assert make_plan(large, KNOWN_CARDS["a100"]).kernel == "mma_sync"
    assert make_plan(problem_of_shape(4096, 4096, 4096, "bfloat16", "min_plus"), H200).kernel == "plain"
    assert make_plan(problem_of_shape(4096, 4096, 4096), H200).kernel == "bf16x6"
    assert make_plan(problem_of_shape(8, 8, 8, "bfloat16"), H200).kernel == "cells"
    own = tw.Semiring("mine", add=lambda x, y: x + y, mul=lambda x, y: x * y, zero=0)
    assert make_plan(problem_of_shape(4096, 4096, 4096, "float16", own), H200).kernel == "wgmma_half"


@pytest.mark.parametrize(
    ("dtype", "semiring", "card", "message"),
    [
        ("float32", "plus_times", "h200", "multiplies bfloat16 and float16, not float32"),
        ("bfloat16", "min_plus", "h200", "supports only plus_times, not min_plus"),
        ("bfloat16", "plus_times", "a100", "made for Hopper"),
    ],
)
def test_a_refused_request_names_the_reason(dtype, semiring, card, message):
    with pytest.raises(tw.UsageError, match=message):
        make_plan(problem_of_shape(64, 64, 64, dtype, semiring), KNOWN_CARDS[card], "wgmma_half")


def test_a_few_hundred_rows_become_a_tiles_columns():
    config = make_plan(problem_of_shape(333, 8192, 8192, "bfloat16"), H200).config
    assert (config.transposed, config.tile.cols) == (True, 176)
    assert config.tiles(333, 8192) * config.tile.cluster == 128  # one wave
    for odd in ({"n": 8191}, {"accumulate": True}, {"m": 2000}):
        problem = replace(problem_of_shape(333, 8192, 8192, "bfloat16"), **odd)
        assert not make_plan(problem, H200, "wgmma_half").config.transposed


def tensor_config(m, k, n, layouts="NN", lead=0):
    """The config of a bfloat16 product on an H200; `lead` elements more than the rows need."""
    layout_m = Layout(k + lead, 1) if layouts[0] == "N" else Layout(1, m + lead)
    layout_n = Layout(n + lead, 1) if layouts[1] == "N" else Layout(1, k + lead)
    problem = replace(problem_of_shape(m, k, n, "bfloat16"), layout_m=layout_m, layout_n=layout_n)
    return make_plan(problem, H200, "wgmma_half").config


def test_a_ragged_plan_prints_what_is_special():
    notes = make_plan(problem_of_shape(4097, 4097, 4097, "bfloat16"), H200).notes
    assert any(note.startswith("M is taken by 8 classes of rows") for note in notes)
    assert any(note.startswith("N is realigned first") for note in notes)
    assert any("thin edges (1 rows, 1 columns of P)" in note for note in notes)
    aligned = make_plan(problem_of_shape(2048, 2048, 2048, "bfloat16"), H200)
    assert aligned.notes == ()


def test_configs_follow_shape_and_layout():
    assert tensor_config(4096, 4096, 4096).tile.cluster == 2  # blocks share their tiles of N
    assert tensor_config(512, 512, 512).tile.cluster == 1  # and do not where it takes longer than it saves
    assert tensor_config(128, 65536, 128).splits > 8  # a tall k is cut
    assert tensor_config(4096, 4096, 4096).splits == 1
    assert tensor_config(16, 8192, 8192).tile.cols == 16
    assert tensor_config(4096, 50257, 4096).routes == ("by classes", "as it is")
    assert tensor_config(4097, 4097, 4097, "NT").routes == ("realigned", "realigned")  # classes need k across N's lines
    assert tensor_config(4096, 4096, 4096, lead=64).routes == ("as it is", "as it is")
    assert "realigned" in tensor_config(8192, 8192, 8192, lead=8).routes  # lines that straddle 128 bytes cost twice


@pytest.mark.parametrize("shape", [(4097, 4097, 4097), (1, 1, 1), (300, 5, 7), (4096, 128, 40960), (9, 100, 2049)])
def test_tiles_cover_P_in_every_config(shape):
    m, _, n = shape
    for config in configs(problem_of_shape(*shape, "bfloat16"), H200):
        tall, (long, few) = config.tile.rows * config.tile.cluster, (n, m) if config.transposed else (m, n)
        per_class = [len(range(at, long - config.edge_rows, config.classes)) for at in range(config.classes)]
        down = sum(math.ceil(rows / tall) for rows in per_class)
        assert config.tiles(m, n) == down * math.ceil(
            (few - config.edge_cols) / (config.tile.cols * config.tile.beside)
        )
        assert config.blocks(m, n, 132) % config.tile.together == 0
        assert config.blocks(m, n, 132) <= (132 if not config.inside else 3 * 3 * 132)


def test_few_rows_are_cut_over_clusters():
    """Decoding: 32 or 64 tiles leave half the card idle, the blocks of a cluster for each fill it."""
    for m, k, n in ((8, 4096, 4096), (16, 4096, 4096), (32, 4096, 4096)):
        for layouts in ("NN", "NT", "TN", "TT"):
            if (
                m < 32 or layouts[0] == "N"
            ):  # of 32 lines that k lies across, so many strips take as long as whole boxes
                config = tensor_config(m, k, n, layouts)
                assert (config.inside, config.transposed, config.tile.cols) == (True, True, m), (m, k, n, layouts)
                assert 1 < config.splits <= 4
                assert (
                    config.notes()[-1]
                    == f"k is cut over the {config.splits} blocks of a cluster, which add up in order"
                )
            if m < 32 or layouts[1] == "T":
                few = tensor_config(n, k, m, layouts)
                assert (few.inside, few.transposed, few.tile.cols) == (True, False, m), (n, k, m, layouts)
    assert not tensor_config(1, 4096, 4096).inside  # one row has no lines once it is transposed
    assert tensor_config(64, 4096, 4096).tile.cols >= 64  # which whole boxes fill


def test_thin_edges_are_planned_only_where_nothing_spills():
    adding = replace(problem_of_shape(4097, 4097, 4097, "bfloat16"), accumulate=True)
    assert not any(config.edge_rows or config.edge_cols for config in configs(adding, H200))
    found = configs(problem_of_shape(4097, 4097, 4097, "bfloat16"), H200)
    assert {config.tile.rows for config in found if config.edge_rows} == {128}  # 4097 is 64 × 64 + 1 too
    biased = replace(problem_of_shape(4097, 4097, 4097, "bfloat16"), epilogue=Epilogue(1.0, BF16, "gelu"))
    assert {(w.tile.rows, w.tile.cols, w.tile.cluster) for w in configs(biased, H200) if w.edge_rows} == {(128, 256, 2)}


def test_a_plan_is_made_in_no_time():
    def seconds(sizes):
        started = time.process_time()
        for size in sizes:
            best_config(problem_of_shape(size, size, size, "bfloat16"), H200)
        return (time.process_time() - started) / len(sizes)

    seconds(range(2980, 3000))  # what the model is compiled to, for every alignment, is found in no cache yet
    assert seconds(range(3000, 3020)) < 0.02  # once a shape: plans are kept


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (lambda a: a, "as it is"),
        (lambda a: a.T, "as it is"),
        (lambda a: a[:, 1:], "realigned"),
        (lambda a: a[:, 8:24], "as it is"),
        (lambda a: a[:5, :7], "as it is"),
        (lambda a: a[:, ::2], "packed"),
        (lambda a: a[::-1], "packed"),
        (lambda a: a[:, :1], "as it is"),
        (lambda a: np.broadcast_to(a[:1], (9, 32)), "packed"),
        (lambda a: a.reshape(-1)[: 31 * 31].reshape(31, 31), "realigned"),
    ],
)
def test_the_route_follows_the_strides(view, expected):
    memory = np.zeros((32, 32), np.float16)
    shift = memory.ctypes.data % 16
    array = view(memory)
    row, col = (stride // 2 for stride in array.strides)
    address = array.ctypes.data - shift
    layout = Layout(row, col, (), address % 16)
    assert route(layout, *array.shape, BF16, BF16) == expected
    assert route(layout, *array.shape, DTYPES["int8"], BF16) == "packed"


def test_rows_of_a_matrix():
    assert contiguous_lines(Layout(40, 1), 3, 5) == (3, 5, 40)
    assert contiguous_lines(Layout(1, 40), 3, 5) == (5, 3, 40)
    assert contiguous_lines(Layout(2, 40), 3, 5) is None
    assert along_columns(Layout(1, 40), 3, 5)
    assert not along_columns(Layout(40, 1), 3, 5)


def test_every_map_has_rows_sixteen_bytes_apart():
    """The copy engine takes no others; one line of a matrix, transposed, is as many lines of one element."""
    rng, family, shapes = random.Random(next_seed()), family_named("wgmma_half"), [1, 2, 3, 8, 30, 40, 100, 700]
    for m, k, n in [(5, 1, 700), (100, 1, 40), *(tuple(rng.choices(shapes, k=3)) for _ in range(30))]:
        aligned = problem_of_shape(m, k, n, BF16, tw.semirings["plus_times"])
        for config in configs(aligned, H200):
            for step in recipe_of(family.pinned(aligned, H200, config)).steps:
                leads = {made.lead for argument in getattr(step, "arguments", ()) for _, made in argument.maps}
                assert all(lead % 16 == 0 for lead in leads), f"{m}x{k}x{n} {config.spec()}: {leads}"


def ptxas_output(text):
    core, output = pytest.importorskip("cuda.core"), io.StringIO()
    options = core.ProgramOptions(arch="sm_90a", std="c++17", ptxas_options=["-v"])
    core.Program(text, "c++", options).compile("cubin", logs=output)
    return output.getvalue()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("store", CUTS)
@pytest.mark.parametrize("tile", INSIDE, ids=lambda tile: f"{tile.rows}x{tile.cols}")
def test_wgmma_of_cut_tiles_is_not_serialised(tile, store):
    output = ptxas_output(render_wgmma_half("bfloat16", tile, m_along_k=True, n_along_k=False, store=store))
    assert "registers" in output, output
    assert "C75" not in output, output
    assert not re.search(r"[1-9]\d* bytes spill", output), output


@pytest.mark.parametrize(("m", "k", "share"), [(4096, 4096, 0.55), (8192, 2048, 0.52), (768, 3072, 0.67)])
def test_a_symmetric_product_is_planned_by_its_upper_tiles(m, k, share):
    whole = replace(problem_of_shape(m, k, m, "bfloat16"), layout_n=Layout(1, k))
    plan, half = (make_plan(replace(whole, symmetric=x), H200) for x in (False, True))
    assert half.config.symmetric
    assert half.predicted < 0.85 * plan.predicted
    assert f"symmetric: {share} of the tiles" in half.notes
    assert not make_plan(replace(whole, symmetric=True, reproducible="batch"), H200).config.symmetric
