"""The tensor-core kernel where there is no card: every form compiles, nothing spills, and plans choose it rightly."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

import tilewise as tw
from tilewise.algebra.dtypes import DTYPES
from tilewise.cache import DiskCache
from tilewise.engines.cuda.compile import compile_source
from tilewise.kernels.render_hopper import render_realign, render_tensor_cores
from tilewise.machine import KNOWN_CARDS
from tilewise.planning import make_plan
from tilewise.problem import Layout, problem_of_shape
from tilewise.tensor_tiles import TILES, along_columns, contiguous_lines, route

H200 = KNOWN_CARDS["h200"]
BF16 = DTYPES["bfloat16"]
FORMS = [
    {"m_along_k": m, "n_along_k": n, "p_aligned": m, "accumulate": n} for m in (False, True) for n in (False, True)
]
FORMS += [form | {"unrounded": True} for form in FORMS]
UNROUNDED = render_tensor_cores("float16", TILES[0], **FORMS[-1])


def test_a_sample_compiles(tmp_path):
    cache = DiskCache("cubin", tmp_path)
    for text in (render_realign(), render_tensor_cores("bfloat16", TILES[0], **FORMS[2]), UNROUNDED):
        assert compile_source(text, "sm_90a", cache)[:4] == b"\x7fELF"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="ptxas speaks through nvcc")
@pytest.mark.parametrize("tile", TILES, ids=lambda t: f"{t.rows}x{t.cols}")
def test_no_form_spills_or_serialises(tmp_path, tile):
    for number, form in enumerate(FORMS):
        path = tmp_path / f"{number}.cu"
        path.write_text(render_tensor_cores(("bfloat16", "float16")[number % 2], tile, **form))
        arch = "-gencode=arch=compute_90a,code=sm_90a"
        command = [
            "nvcc",
            "-std=c++17",
            arch,
            "-Xptxas",
            "-v",
            "-cubin",
            "-o",
            str(path.with_suffix(".cubin")),
            str(path),
        ]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        assert re.findall(r"(\d+) bytes spill", said) == ["0", "0"]
        assert "C75" not in said, "ptxas serialises wgmma"
        assert tile.geometry.shared_bytes <= 227 * 1024


def test_plans_choose_it_for_halves_on_hopper_alone():
    large = problem_of_shape(4096, 4096, 4096, "bfloat16")
    assert make_plan(large, H200).kernel == "tensor_cores"
    assert make_plan(large, KNOWN_CARDS["a100"]).kernel == "register_tiled"
    assert make_plan(problem_of_shape(4096, 4096, 4096, "bfloat16", "min_plus"), H200).kernel == "register_tiled"
    assert make_plan(problem_of_shape(4096, 4096, 4096), H200).kernel == "register_tiled"
    assert make_plan(problem_of_shape(8, 8, 8, "bfloat16"), H200).kernel == "tiled_edges"
    own = tw.Semiring("mine", add=lambda x, y: x + y, mul=lambda x, y: x * y, zero=0)
    assert make_plan(problem_of_shape(4096, 4096, 4096, "float16", own), H200).kernel == "tensor_cores"


@pytest.mark.parametrize(
    ("dtype", "semiring", "card", "says"),
    [
        ("float32", "plus_times", "h200", "multiplies bfloat16 and float16, not float32"),
        ("bfloat16", "min_plus", "h200", "knows plus_times alone, not min_plus"),
        ("bfloat16", "plus_times", "a100", "made for Hopper"),
    ],
)
def test_asked_for_where_it_cannot_be_it_says_why(dtype, semiring, card, says):
    with pytest.raises(tw.UsageError, match=says):
        make_plan(problem_of_shape(64, 64, 64, dtype, semiring), KNOWN_CARDS[card], "tensor_cores")


def test_a_ragged_plan_says_what_is_realigned():
    plan = make_plan(problem_of_shape(4097, 4097, 4097, "bfloat16"), H200)
    assert [note.split(":")[0] for note in plan.notes] == ["M is realigned first", "N is realigned first"]
    assert make_plan(problem_of_shape(4096, 4096, 4096, "bfloat16"), H200).notes == ()


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
    layout = Layout(row, col, (), min(16, address & -address))
    assert route(layout, *array.shape, BF16, BF16) == expected
    assert route(layout, *array.shape, DTYPES["int8"], BF16) == "packed"


def test_lines_of_a_matrix():
    assert contiguous_lines(Layout(40, 1), 3, 5) == (3, 5, 40)
    assert contiguous_lines(Layout(1, 40), 3, 5) == (5, 3, 40)
    assert contiguous_lines(Layout(2, 40), 3, 5) is None
    assert along_columns(Layout(1, 40), 3, 5)
    assert not along_columns(Layout(40, 1), 3, 5)
