"""The page as a file: self-contained, small, and made of the trace; variants, samples and refusals."""

from __future__ import annotations

import base64
import json
import re
import zlib
from itertools import combinations

import pytest
from simt_support import KERNELS

import tilewise as tw
from page_variants import variant
from tilewise.emulator.limits import Limits
from tilewise.errors import LimitError, UsageError
from tilewise.teaching.page import compute
from tilewise.teaching.page.exploring import explore
from tilewise.teaching.page.frames import frames_of
from tilewise.teaching.page.replay import Replay, geometry_of
from tilewise.teaching.page.variants import drops_of, without
from tilewise.teaching.trace import sample
from tilewise.teaching.trace.rungs import rung_text

EVERY = ["check-M", "check-N", "check-P", "barrier-1", "barrier-2"]
RUNGS = {
    "naive": ["check-P"],
    "tiled": ["barrier-1", "barrier-2"],
    "tiled_edges": EVERY,
    "coarsened": EVERY,
    "register_tiled": EVERY,
}


def tile_of(kernel):
    return 16 if kernel == "register_tiled" else 2


def drops_of_rung(kernel):
    return drops_of(tw.trace(kernel, shape=(5, 3, 6), tile=tile_of(kernel), blocks="all"))


@pytest.fixture(scope="module")
def three():
    return explore("tiled_edges", shape=(3, 3, 3), tile=2, limits=Limits(seconds=300))


def unpacked(page):
    packed = json.loads(re.search(r'id="scenes">(.*?)</script>', page.html, re.S)[1])
    return [json.loads(zlib.decompress(base64.b64decode(one))) for one in packed]


def test_the_page_loads_nothing_beyond_itself(three):
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", three.html)
    assert "default-src 'none'" in three.html
    assert "@@" not in three.html


def test_the_page_carries_the_trace_and_nothing_else(three):
    scene = unpacked(three)[0]["trace"]
    want = three.trace.to_json()
    assert scene["events"]["thread"] == want["events"]["thread"]
    assert scene["counters"] == want["counters"]
    assert scene["source"] == three.trace.source
    assert set(scene) == set(want)


def test_a_page_has_a_module_for_each_tile_width_and_names_what_can_be_dropped(three):
    assert three.drops == ("check-M", "check-N", "check-P", "barrier-1", "barrier-2")
    assert len(three.scenes) == 1
    assert three.compute["tiles"] == [2, 4, 8, 16, 32]
    modules = [json.loads(zlib.decompress(base64.b64decode(one))) for one in three.compute["modules"]]
    assert [one["block"][0] for one in modules] == [2, 4, 8, 16, 32]
    assert all(base64.b64decode(one["binary"]).startswith(b"\0asm") for one in modules)
    assert [one["grid"] for one in modules] == [[[3, t], [1, t], [0, 1]] for t in (2, 4, 8, 16, 32)]
    assert "wasm-unsafe-eval" in three.html


@pytest.mark.parametrize(
    ("name", "shared"),
    [("dynamic_tiles", [["tiles", 4, [32]]]), ("loads_by_a_function", [["Ms", 4, [4, 4]], ["Ns", 4, [4, 4]]])],
)
def test_tiles_of_the_launch_and_tiles_of_functions_are_computed(monkeypatch, name, shared):
    monkeypatch.setattr(compute, "TILES", ())
    page = explore(str(KERNELS / "right" / f"{name}.cu"), shape=(3, 3, 3))
    (module,) = (json.loads(zlib.decompress(base64.b64decode(one))) for one in page.compute["modules"])
    assert [[array, size, lengths] for array, _, size, lengths in module["shared"]] == shared


@pytest.mark.slow
def test_a_kernel_that_cannot_be_recorded_compiled_has_recorded_variants():
    page = explore("register_tiled", shape=(5, 3, 6), tile=8, limits=Limits(seconds=300))
    assert page.compute is None
    assert "wasm-unsafe-eval" not in page.html
    assert page.drops
    assert {s.drops[0] for s in page.scenes if s.drops} == set(page.drops)


def test_m_and_n_hold_different_values(three):
    one, two = (set(three.trace.matrices[role].values.ravel().tolist()) for role in "MN")
    assert one == set(range(1, 10))
    assert two == set(range(11, 20))


def test_the_course_s_kernel_is_the_default():
    page = explore(what_if=False)
    assert page.trace.run.entry == "MatrixMulKernel"
    assert "tileMs[ty][tx] = M.elements[row*M.width + i*TILE_WIDTH + tx];" in page.trace.source
    assert (page.trace.run.shape, page.trace.run.tile) == ((3, 3, 3), 2)


@pytest.mark.slow  # 7 s of emulation
def test_a_page_of_16_stays_under_a_megabyte():
    page = explore("tiled_edges", shape=(16, 16, 16), tile=4, limits=Limits(seconds=300))
    assert len(page.html.encode()) < 1_000_000
    assert len(page.trace.blocks) == 16


def test_a_large_grid_is_sampled():
    assert sample(4, 4, 9) == ((0, 0), (0, 3), (1, 1), (3, 0), (3, 3))
    assert sample(4, 4, 2) == ((0, 0), (3, 3))
    page = explore("tiled_edges", shape=(64, 64, 64), tile=16, what_if=False)
    assert page.trace.blocks == (0, 15)


def test_a_run_too_large_for_a_page_is_refused():
    with pytest.raises(LimitError, match=r"a block of this run has .* choose a smaller shape or tile"):
        explore("tiled_edges", shape=(32, 640, 32), tile=32, what_if=False)


def test_a_launch_that_fails_is_explained():
    text = (
        "__global__ void mul(float* A, float* B, float* C, int n) { C[threadIdx.y * n + threadIdx.x] = A[0] * B[0]; }\n"
        "int main() { float *A, *B, *C; int n = 64; dim3 block(64, 64); mul<<<1, block>>>(A, B, C, n); }"
    )
    with pytest.raises(UsageError, match=r"there is nothing to show: .*1024"):
        explore(text, shape=(4, 4, 4))


@pytest.mark.parametrize("kernel", RUNGS)
def test_variants_change_only_their_own_line(kernel):
    drops = drops_of_rung(kernel)
    assert [d.name for d in drops] == RUNGS[kernel]
    text = rung_text(kernel, tile_of(kernel), "plus_times", "float32").text
    for some in [some for size in range(1, len(drops) + 1) for some in combinations(drops, size)]:
        changed = without(text, some)
        lines = [i + 1 for i, (a, b) in enumerate(zip(text.split("\n"), changed.split("\n"), strict=True)) if a != b]
        assert lines == sorted(d.line for d in some)
        assert changed.count("// was: ") == len(some)


OWN = """
__global__ void own(float* A, float* B, float* C, int w) {
    __shared__ float a[2][2], b[2][2];
    int r = blockIdx.y * 2 + threadIdx.y, c = blockIdx.x * 2 + threadIdx.x;
    float s = 0;
    for (int p = 0; p < (w + 1) / 2; ++p) {
        a[threadIdx.y][threadIdx.x] = r < w && p * 2 + threadIdx.x < w ? A[r * w + p * 2 + threadIdx.x] : 0;
        b[threadIdx.y][threadIdx.x] = (p * 2 + threadIdx.y < w && c < w) ? B[(p * 2 + threadIdx.y) * w + c] : 0;
        __syncthreads();  // all loaded
        for (int i = 0; i < 2; ++i) s += a[threadIdx.y][i] * b[i][threadIdx.x];
        __syncthreads();
    }
    if (r < w && c < w) {
        C[r * w + c] = s;
    }
}
"""


def test_a_kernel_of_one_s_own_has_its_checks_and_barriers_too():
    made = tw.trace(OWN, shape=(3, 3, 3), block=(2, 2), blocks="all")
    drops = drops_of(made)
    assert [(d.name, d.line) for d in drops] == [
        ("check-M", 7), ("check-N", 8), ("check-P", 13), ("barrier-1", 9), ("barrier-2", 11)
    ]  # fmt: skip
    assert not made.run.faults
    for drop in drops:
        text = without(made.source, (drop,))
        assert tw.trace(text, shape=(3, 3, 3), block=(2, 2)).run.faults, drop.name
    assert "// all loaded  // was: __syncthreads();" in without(made.source, drops[3:4])


def test_frames_follow_the_course(three):
    replay = Replay(three.trace, 0)
    stages = [(f.phase, f.stage) for f in replay.frames]
    one = ["load", "load", "barrier", "use", "use", "barrier"]
    assert stages == [(0, s) for s in one] + [(1, s) for s in one] + [(1, "store")]


@pytest.mark.parametrize("kernel", RUNGS)
def test_frames_hold_every_event_once(kernel):
    made = tw.trace(kernel, shape=(5, 3, 6), tile=tile_of(kernel), blocks="all")
    for block in made.blocks:
        events = made.events.where(made.events.block == block)
        frames = frames_of(events)
        assert [f.first for f in frames] == [0, *(f.last for f in frames[:-1])]
        assert frames[-1].last == len(events)


def test_a_naive_kernel_steps_once_per_product():
    replay = Replay(tw.trace("naive", shape=(2, 3, 4), tile=2), 0)
    assert [f.stage for f in replay.frames] == ["use"] * 3 + ["store"]


def test_tiles_lie_where_the_notes_draw_them(three):
    geometry = geometry_of(Replay(three.trace, 3))
    assert geometry.feeds == {"Mds": "M", "Nds": "N"}
    assert geometry.tiles == {"M": {0: (2, 0), 1: (2, 2)}, "N": {0: (0, 2), 1: (2, 2)}}
    assert (geometry.rows, geometry.cols) == (range(2, 4), range(2, 4))


def test_shared_cells_have_their_writer_and_former_value(three):
    replay = Replay(three.trace, 0)
    held = replay.state(replay.last_of(1, "load")).shared["Mds"][0, 1]
    assert (held.value, held.thread, held.kind, held.former) == (0.0, 1, "filled", 2.0)


def test_a_trace_shows_itself(three):
    made = three.trace
    assert made.to_html("vi").startswith("<!doctype html>")
    assert '<html lang="vi"' in made.to_html("vi")
    assert made._repr_html_().startswith("<iframe")
    assert made.to_svg(1).startswith("<svg")
    assert "Page(tiled_edges" in repr(three)


def test_nan_and_infinity_reach_the_page(three):
    page = explore("tiled_edges", shape=(3, 3, 3), tile=2, semiring="min_plus", what_if=False)
    assert "inf" in unpacked(page)[0]["trace"]["events"]["value"]
    outside = explore(variant(three, ["check-N"]))
    assert None in unpacked(outside)[0]["trace"]["events"]["value"]


def test_a_cell_that_is_read_belongs_to_the_tile_though_no_thread_wrote_it():
    text = rung_text("tiled_edges", 2, "plus_times", "float32").text
    lonely = text.replace("Mds[ty][tx] = PAD_M", ";").replace("Nds[ty][tx] = PAD_N", ";")
    assert geometry_of(Replay(tw.trace(lonely, shape=(1, 1, 1), tile=2), 0)).sizes == {"Mds": (2, 2), "Nds": (2, 2)}


def test_a_trace_holds_what_is_drawn_text_and_matrices():
    made = tw.trace("tiled_edges", shape=(2, 3, 2), tile=2)
    document = made.to_json()
    assert "__global__ void tiled_edges" in document["source"]
    assert document["matrices"]["N"] == {"name": "N", "rows": 3, "cols": 2, "values": [11, 12, 13, 14, 15, 16]}
    assert document["matrices"]["P"]["values"] == [82, 88, 199, 214]


def test_a_race_gets_a_failing_order_on_request():
    text = without(rung_text("tiled_edges", 2, "plus_times", "float32").text, drops_of_rung("tiled_edges")[4:])
    quiet = tw.trace(text, shape=(4, 4, 4), tile=2).run.faults
    shown = tw.trace(text, shape=(4, 4, 4), tile=2, adversarial=True).run.faults
    assert [f.wrong for f in quiet] == [None, None]
    assert shown[0].wrong.order == "first to last"
    assert shown[0].to_json()["wrong"]["expected"] == shown[0].wrong.expected == 300


def test_where_time_runs_short_variants_are_left_out_and_the_page_comes(monkeypatch):
    monkeypatch.setattr("tilewise.teaching.page.exploring.SHARE_OF_VARIANTS", -1.0)
    page = explore("tiled_edges", shape=(3, 3, 3), tile=2)
    assert len(page.scenes) == 1
    assert page.compute["tiles"] == [2]
