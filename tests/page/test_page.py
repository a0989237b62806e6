"""The page as a file: self-contained, small, and made of the trace; variants, samples and refusals."""

from __future__ import annotations

import base64
import json
import re
import zlib

import pytest

import tilewise as tw
from tilewise.errors import LimitError, UsageError
from tilewise.page import explore
from tilewise.page.frames import frames_of
from tilewise.page.recording import sample
from tilewise.page.replay import Replay, geometry_of
from tilewise.page.variants import DROPS, combinations_of, drops_of, line_of, without
from tilewise.tracing.rungs import rung_text


@pytest.fixture(scope="module")
def three():
    return explore("tiled_edges", shape=(3, 3, 3), tile=2)


def unpacked(page):
    packed = json.loads(re.search(r'id="scenes">(.*?)</script>', page.html, re.S)[1])
    return [json.loads(zlib.decompress(base64.b64decode(one))) for one in packed]


def test_the_page_asks_for_nothing_beyond_itself(three):
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", three.html)
    assert "default-src 'none'" in three.html
    assert "@@" not in three.html


def test_the_page_carries_the_trace_and_nothing_else(three):
    scene = unpacked(three)[0]["trace"]
    want = three.trace.to_json()
    assert scene["events"]["thread"] == want["events"]["thread"]
    assert scene["counters"] == want["counters"]
    assert scene["source"] == three.trace.source
    assert set(scene) - set(want) == {"frames"}


def test_every_check_and_barrier_can_be_dropped_in_every_combination(three):
    assert three.drops == ("check-M", "check-N", "check-P", "barrier-1", "barrier-2")
    assert len(three.scenes) == 2**5
    assert three.left_out == 0
    assert not three.scenes[0].trace.run.faults
    assert all(scene.trace.run.faults for scene in three.scenes[1:]), "each of them breaks 3x3"


def test_a_page_of_16_stays_under_a_megabyte():
    page = explore("tiled_edges", shape=(16, 16, 16), tile=4)
    assert len(page.html.encode()) < 1_000_000
    assert len(page.trace.blocks) == 16
    assert page.left_out == 26, "each drop alone is there, and the page says what is not"


def test_a_large_grid_is_sampled():
    assert sample(4, 4, 9) == ((0, 0), (0, 3), (1, 1), (3, 0), (3, 3))
    assert sample(4, 4, 2) == ((0, 0), (3, 3))
    page = explore("tiled_edges", shape=(64, 64, 64), tile=16, what_if=False)
    assert page.trace.blocks == (0, 15)


def test_a_run_too_large_for_a_page_says_so():
    with pytest.raises(LimitError, match=r"a block of this run has .* choose a smaller shape or tile"):
        explore("tiled_edges", shape=(32, 640, 32), tile=32, what_if=False)


def test_a_launch_that_fails_says_why():
    text = (
        "__global__ void mul(float* A, float* B, float* C, int n) { C[threadIdx.y * n + threadIdx.x] = A[0] * B[0]; }\n"
        "int main() { float *A, *B, *C; int n = 64; dim3 block(64, 64); mul<<<1, block>>>(A, B, C, n); }"
    )
    with pytest.raises(UsageError, match=r"there is nothing to show: .*1024"):
        explore(text, shape=(4, 4, 4))


@pytest.mark.parametrize("kernel", DROPS)
def test_variants_change_only_their_own_line(kernel):
    text = rung_text(kernel, 16 if kernel == "register_tiled" else 2, "plus_times", "float32").text
    for some in combinations_of(drops_of(kernel)):
        changed = without(text, some)
        lines = [i + 1 for i, (a, b) in enumerate(zip(text.split("\n"), changed.split("\n"), strict=True)) if a != b]
        assert lines == sorted(line_of(text, d) for d in some)
        assert changed.count("// was: ") == len(some)


def test_a_variant_of_a_kernel_that_has_no_such_line_is_an_error():
    with pytest.raises(ValueError, match="no line of the kernel"):
        without("__global__ void f() {}", drops_of("tiled")[:1])


def test_frames_follow_the_course(three):
    replay = Replay(three.trace, 0)
    stages = [(f.phase, f.stage) for f in replay.frames]
    one = ["load", "load", "barrier", "use", "use", "barrier"]
    assert stages == [(0, s) for s in one] + [(1, s) for s in one] + [(1, "store")]


@pytest.mark.parametrize("kernel", DROPS)
def test_frames_hold_every_event_once(kernel):
    made = tw.trace(kernel, shape=(5, 3, 6), tile=16 if kernel == "register_tiled" else 2, blocks="all")
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


def test_shared_cells_remember_who_wrote_and_what_was_there(three):
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


def test_nan_and_infinity_travel(three):
    page = explore("tiled_edges", shape=(3, 3, 3), tile=2, semiring="min_plus", what_if=False)
    assert "inf" in unpacked(page)[0]["trace"]["events"]["value"]
    outside = next(s for s in three.scenes if s.drops == ("check-N",))
    index = three.scenes.index(outside)
    assert None in unpacked(three)[index]["trace"]["events"]["value"]


def test_a_cell_that_is_read_belongs_to_the_tile_though_nobody_wrote_it():
    text = rung_text("tiled_edges", 2, "plus_times", "float32").text
    lonely = text.replace("Mds[ty][tx] = PAD_M", ";").replace("Nds[ty][tx] = PAD_N", ";")
    assert geometry_of(Replay(tw.trace(lonely, shape=(1, 1, 1), tile=2), 0)).sizes == {"Mds": (2, 2), "Nds": (2, 2)}


def test_a_trace_holds_what_is_drawn_text_and_matrices():
    made = tw.trace("tiled_edges", shape=(2, 3, 2), tile=2)
    document = made.to_json()
    assert "__global__ void tiled_edges" in document["source"]
    assert document["matrices"]["N"] == {"name": "N", "rows": 3, "cols": 2, "values": [1, 2, 3, 4, 5, 6]}
    assert document["matrices"]["P"]["values"] == [22, 28, 49, 64]


def test_a_race_is_acted_out_when_asked():
    text = without(rung_text("tiled_edges", 2, "plus_times", "float32").text, drops_of("tiled_edges")[4:])
    quiet = tw.trace(text, shape=(4, 4, 4), tile=2).run.faults
    shown = tw.trace(text, shape=(4, 4, 4), tile=2, adversarial=True).run.faults
    assert [f.wrong for f in quiet] == [None, None]
    assert shown[0].wrong.order == "first to last"
    assert shown[0].to_json()["wrong"]["expected"] == shown[0].wrong.expected == 100
