"""The mma.sync kernel where there is no card: every form compiles for every arch, few spill, plans choose it."""

from __future__ import annotations

import itertools
import math
import re
import shutil
import subprocess
from dataclasses import replace

import pytest

import tilewise as tw
from tilewise.algebra.dtypes import DTYPES, FLOAT8
from tilewise.backends.cuda.compile import compile_source
from tilewise.core.epilogue import Epilogue
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Layout, problem_of_shape
from tilewise.core.recipe import Address
from tilewise.kernels.mma_gemm.mma_sync.family import MmaSync
from tilewise.kernels.mma_gemm.mma_sync.routes import line_bytes
from tilewise.kernels.mma_gemm.mma_sync.text import Form, generation, render_mma_sync
from tilewise.kernels.mma_gemm.mma_sync.tiles import tiles_of
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.shared.fragments import ATOMS
from tilewise.kernels.shared.placed import Placed
from tilewise.kernels.transforms.realign import LinesOfStack, Realigned, render_realign, scratch_bytes
from tilewise.kernels.transforms.sums import render_add_parts
from tilewise.planning.choose import make_plan
from tilewise.system.cache import DiskCache

H200, A100, RTX4090 = (KNOWN_CARDS[name] for name in ("h200", "a100", "rtx4090"))
ARCHS = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_120")
NAMES = ("bfloat16", "float16", "float32", "float64", "int8", "uint8", "float8_e4m3fn")
BF16 = DTYPES["bfloat16"]


def text_of(name, tile, arch, form, epilogue=None):
    dtype = dtype_of_name(name)
    result = DTYPES["float32"] if name in FLOAT8 else dtype
    return render_mma_sync(dtype, result, tile, tile.stages(arch), form, epilogue or Epilogue(), generation(arch))


def dtype_of_name(name):
    return DTYPES.get(name) or FLOAT8[name]


def every_tile(name, arch):
    return tiles_of("float8" if name in FLOAT8 else name, dtype_of_name(name).itemsize, arch)


def forms(size):
    smallest = max(4, size)
    return [
        Form(True, False),
        Form(False, True),
        Form(False, True, smallest, size),
        Form(True, True, smallest, 16, accumulate=True),
        Form(False, False, smallest, max(size, 8), split=True),
        Form(True, True, 16, 16, symmetric=True),
    ]


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("arch", "name", "number"),
    [
        ("sm_75", "float16", 0),
        ("sm_75", "int8", 1),
        ("sm_80", "bfloat16", 1),
        ("sm_80", "float64", 0),
        ("sm_89", "float16", 3),
        ("sm_89", "float8_e4m3fn", 0),
        ("sm_90a", "float64", 0),
        ("sm_90a", "bfloat16", 0),
        ("sm_120", "float32", 0),
        ("sm_120", "int8", 0),
    ],
)
def test_a_sample_compiles(arch, name, number, tmp_path):
    size = dtype_of_name(name).itemsize
    tile = every_tile(name, arch)[number]
    assert tile.fits(arch)
    text = text_of(name, tile, arch, forms(size)[number])
    assert compile_source(text, arch, DiskCache("cubin", tmp_path))[:4] == b"\x7fELF"


def test_what_goes_with_it_compiles_for_ampere(tmp_path):
    cache = DiskCache("cubin", tmp_path)
    for text in (
        render_realign(),
        render_add_parts(BF16, BF16, 8, Epilogue(2.0, BF16, "gelu")),
        render_add_parts(DTYPES["float64"], DTYPES["float64"], 1, Epilogue(1.0, None, "gelu_tanh")),
        render_add_parts(DTYPES["int8"], DTYPES["int8"], 1),
    ):
        assert compile_source(text, "sm_80", cache)[:4] == b"\x7fELF"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="ptxas speaks through nvcc")
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_spills(arch, name, tmp_path):
    size, before = dtype_of_name(name).itemsize, int(arch[3:].rstrip("a")) < ATOMS[name].since
    after = None if size == 1 else Epilogue(0.5, DTYPES[name], "gelu")
    for number, (tile, form) in enumerate(itertools.product(() if before else every_tile(name, arch), forms(size))):
        if not tile.fits(arch) or not tile.takes(form.n_along_k, form.vector):
            continue  # never planned
        path = tmp_path / f"{number}.cu"
        path.write_text(text_of(name, tile, arch, form, after if number % 2 else None))
        target = f"-gencode=arch={arch.replace('sm', 'compute')},code={arch}"
        command = [
            "nvcc",
            "-std=c++17",
            target,
            "-Xptxas",
            "-v",
            "-cubin",
            "-o",
            str(path.with_suffix(".cubin")),
            str(path),
        ]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        most = 0 if arch == "sm_90a" else 64  # elsewhere a few registers of the loop over checked phases
        assert all(int(spilled) <= most for spilled in re.findall(r"(\d+) bytes spill", output)), (tile, form)


def test_plans_choose_it_where_it_reaches_the_tensor_cores():
    def kernel(shape, dtype, machine, **how):
        return make_plan(problem_of_shape(*shape, dtype, **how), machine).kernel

    large, odd = (4096, 4096, 4096), (4097, 4097, 4097)
    for machine in (A100, RTX4090):
        assert kernel(large, "bfloat16", machine) == "mma_sync"
        assert kernel(odd, "float16", machine) == "mma_sync"
        assert kernel(large, "int8", machine) == "mma_sync"
        assert kernel(large, "float32", machine) == "plain"  # tf32 only by request
        assert kernel(large, "bfloat16", machine, semiring="min_plus") == "plain"
    assert (
        kernel(large, "float64", H200) == kernel(odd, "float64", H200) == kernel(large, "float64", A100) == "mma_sync"
    )
    assert kernel(large, "float32", A100, precision="tf32") == "mma_sync"
    assert kernel(large, "float32", RTX4090, precision="tf32") == "plain"  # as many steps a second, and exact
    assert kernel(large, "float64", RTX4090) == "plain"  # its tensor cores are no faster there
    assert kernel(large, "bfloat16", H200) == kernel((128, 65536, 128), "bfloat16", H200) == "wgmma_half"
    t4 = KNOWN_CARDS["t4"]
    assert kernel(large, "float16", t4) == kernel(odd, "float16", t4) == kernel(large, "int8", t4) == "mma_sync"
    for precision in ("tf32", "high"):  # Turing has no tensor cores for these, and the plan says so
        assert kernel(large, "float32", t4, precision=precision) == "plain"
    assert kernel(large, "bfloat16", t4) == "plain"


@pytest.mark.parametrize(
    ("dtype", "semiring", "card", "message"),
    [
        ("float32", "plus_times", "a100", "multiplies float32 with precision='tf32', not 'high'"),
        ("int16", "plus_times", "a100", "int8, uint8, float8_e4m3fn and float8_e5m2, not int16"),
        ("float64", "max_plus", "h200", "supports only plus_times, not max_plus"),
        ("bfloat16", "plus_times", "t4", "multiplies bfloat16 from Ampere on .sm_80., and this is sm_75"),
    ],
)
def test_a_refused_request_names_the_reason(dtype, semiring, card, message):
    with pytest.raises(tw.UsageError, match=message):
        make_plan(problem_of_shape(64, 64, 64, dtype, semiring), KNOWN_CARDS[card], "mma_sync")


def test_a_plan_prints_what_is_special():
    notes = make_plan(problem_of_shape(4097, 4097, 4097, "float64"), H200).notes
    assert "M is realigned first, onto 128-byte lines" in notes
    assert any(note.startswith("thin edges (1 rows, 1 columns of P)") for note in notes)
    small = make_plan(problem_of_shape(501, 151, 501, "float64"), H200, "mma_sync").notes
    assert "M is copied 8 bytes at a time: it is not aligned to 16" in small  # sooner done than another pass
    assert make_plan(problem_of_shape(4096, 4096, 4096, "float64"), H200).notes == ()
    halves = make_plan(problem_of_shape(4097, 4097, 4097, "bfloat16"), A100).notes
    assert any(note.startswith("M is realigned first") for note in halves)  # no copy moves 2 bytes
    tall = make_plan(problem_of_shape(128, 65536, 128, "float64"), H200).config
    assert tall.parts > 8


def test_a_phase_has_whole_lines_where_shared_memory_has_room_for_three():
    for machine, dtype, stages, phase in (
        (A100, "bfloat16", 3, 128),
        (RTX4090, "bfloat16", 4, 64),
        (A100, "int8", 3, 128),
    ):
        tile = make_plan(problem_of_shape(4096, 4096, 4096, dtype), machine).config.tile
        assert (tile.stages(machine.arch), tile.phase) == (stages, phase), machine.name
    assert all(
        tile.stages("sm_89") >= 3 for tile in every_tile("bfloat16", "sm_89") if tile.rows * tile.cols > 128 * 128
    )


def test_only_cards_with_asynchronous_copies_before_and_after_hopper_peel_the_loop():
    for arch, peeled in (("sm_75", 0), ("sm_80", 1), ("sm_89", 1), ("sm_90a", 0), ("sm_120", 1)):
        text = text_of("float16", every_tile("float16", arch)[0], arch, Form(True, True))
        assert f"#define PEELED {peeled}\n" in text, arch


def test_copies_are_as_wide_as_rows_allow():
    assert line_bytes(Layout(64, 1), 9, 64, 2) == 16
    assert line_bytes(Layout(60, 1), 9, 60, 2) == 8
    assert line_bytes(Layout(1, 62), 62, 9, 2) == 4
    assert line_bytes(Layout(61, 1), 9, 61, 2) == 2
    assert line_bytes(Layout(61, 1), 9, 61, 8) == 8
    assert line_bytes(Layout(61, 1), 1, 61, 2) == 16  # one line has no next
    assert line_bytes(Layout(64, 1, misalignment=4), 9, 64, 2) == 4
    assert line_bytes(Layout(128, 2), 9, 64, 2) == 0  # elements apart


@pytest.mark.parametrize("name", NAMES[:6])
@pytest.mark.parametrize("machine", [H200, A100, RTX4090], ids=lambda m: m.arch)
def test_every_config_has_a_text_and_room(name, machine):
    for extra, transposed in ((0, False), (1, True), (2, False)):
        layout_m, layout_n = (
            (Layout(1, 300 + extra), Layout(1, 70 + extra))
            if transposed
            else (Layout(70 + extra, 1), Layout(259 + extra, 1))
        )
        problem = replace(problem_of_shape(300, 70, 259, name, precision="tf32"), layout_m=layout_m, layout_n=layout_n)
        found = MmaSync().configurations(problem, machine)
        assert found
        for config in found:
            assert config.tile.shared_bytes(machine.arch) <= {"sm_80": 163, "sm_89": 99}.get(machine.arch, 227) * 1024
            assert config.tile.threads <= 1024
            if "packed" in config.routes:
                continue
            texts = recipe_of(MmaSync().pinned(problem, machine, config)).sources
            assert any("mma_sync" in text for text in texts)


@pytest.mark.parametrize("name", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("transposed", [False, True])
def test_realigned_rows_are_the_same_bytes_on_boundaries(name, transposed):
    dtype = DTYPES[name]
    size, rows, cols, lead = dtype.itemsize, 37, 45, 51
    own = Layout(1, lead, (3000, 0)) if transposed else Layout(lead, 1, (3000, 0))
    source = Placed(Address("M", 4096, size % 16), dtype, rows, cols, own)
    made = Realigned(source, (2, 5), Address("scratch"))
    length, count = (rows, cols) if transposed else (cols, rows)
    ((argument, lines),) = made.jobs  # one launch for both members; the axis it is broadcast over counts once
    stack, (of_source, of_target) = LinesOfStack.from_buffer_copy(argument.data), (a for _, a in argument.holes)
    job = stack.first
    assert (stack.members, lines) == (2, 2 * count)
    assert of_source == source.pointer
    assert 2 * stack.step == 3000 * size
    assert (job.lines, 2 * job.length, 2 * job.lead) == (count, length * size, lead * size)
    assert of_target.offset % 128 == 2 * job.lead_to % 128 == 2 * stack.step_to % 128 == 0
    assert of_target + 2 * stack.step_to == made.placed.member((1, 4))
    assert of_target.offset + 2 * (stack.step_to + job.lead_to * count) <= scratch_bytes(source, (2, 5))
    assert line_bytes(made.placed.layout, rows, cols, size) == 16
    assert (made.placed.layout.row == 1) == transposed


def test_thin_edges_are_read_as_they_lie():
    """Bytes in misaligned rows are packed first, and the kernels for few would look for them where they were."""
    for name, extra in (("int8", 1), ("float64", 1), ("bfloat16", 1)):
        problem = replace(problem_of_shape(1153, 40, 1025, name), layout_m=Layout(1, 1153 + extra))
        edged = [config for config in MmaSync().configurations(problem, H200) if config.edge_rows or config.edge_cols]
        assert not any("packed" in config.routes for config in edged)
        assert bool(edged) == (name != "int8")


def test_parts_of_k_cover_k_and_thin_edges_leave_whole_tiles():
    for shape in ((128, 65536, 128), (1, 100000, 7), (1025, 130, 4097)):
        for config in MmaSync().configurations(problem_of_shape(*shape, "float64"), H200):
            each = config.phases_each(shape[1], 8)
            assert each * config.parts * 16 >= shape[1]
            if config.edge_rows:
                assert (shape[0] - config.edge_rows) % config.tile.rows == 0
            if config.edge_cols:
                assert (shape[2] - config.edge_cols) % config.tile.cols == 0


def test_a_symmetric_product_is_planned_with_half_the_tiles():
    whole = replace(problem_of_shape(4096, 1024, 4096, "bfloat16"), layout_n=Layout(1, 1024))
    plan, half = (make_plan(replace(whole, symmetric=x), A100) for x in (False, True))
    assert half.kernel == "mma_sync"
    assert 0.45 * plan.predicted < half.predicted < 0.65 * plan.predicted
    share = float(half.notes[-1].removeprefix("symmetric: ").removesuffix(" of the tiles"))
    assert 0.5 < share < 0.57  # printed with two digits
    tile = half.config.tile
    assert recipe_of(half).steps[-1].grid[0] == pytest.approx(
        share * math.ceil(4096 / tile.rows) * math.ceil(4096 / tile.cols), rel=0.02
    )
