"""The trace as people read it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tilewise.teaching.page.views import trace
from tilewise.teaching.trace import check

KERNELS = Path(__file__).parents[2] / "emulator" / "kernels"


@pytest.fixture(scope="module")
def four():
    return trace(KERNELS / "collaborative.cu", shape=(4, 4, 4), tile=2)


def test_the_table_shows_loads_products_tiles_and_sums(four):
    text = four.text()
    assert "(x 1, y 0)  d_M[0][1] → Mds[0][1]  d_M[0][3] → Mds[0][1]" in text
    assert "+ Mds[0][0]·Nds[0][1]" in text
    assert "phase 0: barriers at line 17, line 22" in text
    assert "Pvalue so far: x0 y0: 71  x1 y0: 74  x0 y1: 255  x1 y1: 266" in text
    assert "64 loads with this kernel, 128 without tiles" in text
    assert "Every shared value is read by 2 threads" in text
    assert repr(four) == text


@pytest.mark.drawn(3)
@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("tile", [2, 3, 8])
def test_it_fits_the_width_and_names_what_it_left_out(width, tile):
    result = trace(KERNELS / "tiled_edges.cu", shape=(18, 18, 18), tile=tile, blocks="all" if tile > 2 else [(0, 0)])
    lines = result.text(width).splitlines()
    assert max(map(len, lines)) <= width
    assert ("left out" in result.text(width)) == (tile * tile > 16)


def test_phases_can_be_chosen(four):
    text = four.text(phases=(1,))
    assert "phase 1" in text
    assert "phase 0" not in text


def test_wrong_cells_are_marked():
    text = trace(KERNELS / "tiled_unchecked.cu", shape=(3, 3, 3), tile=2).text()
    assert "M[0][3] ✗ [1][0] → ds_M[0][1]" in text
    assert "N[3][0] ✗ outside → ds_N[1][0]" in text


def test_json_is_versioned_and_complete(four):
    data = json.loads(json.dumps(four.to_json()))
    assert data["schema"] == 1
    assert data["shape"] == [4, 4, 4]
    assert len(data["events"]["kind"]) == len(four.events)
    assert set(data["names"]) >= {"d_M", "d_N", "d_P", "Mds", "Nds"}
    report = json.loads(json.dumps(check(KERNELS / "tiled_unchecked.cu", shape=(3, 3, 3)).to_json()))
    assert not report["ok"]
    assert report["runs"][0]["findings"][0]["severity"] == "fault"


def test_a_slip_of_the_notes_thread_1_1_begins_with_m10_and_n01():
    """The notes' 4x4 walk names M11 and N11 in phase 0, iteration 0; they come in iteration 1."""
    from tilewise.emulator.machine.events import EventKind

    made = trace("tiled", shape=(4, 4, 4), tile=2)
    mine = made.events.where((made.events.thread == 3) & (made.events.phase == 0)).of(EventKind.USE)
    cells = [(made.names[a], r, c) for a, r, c in zip(mine.array, mine.row.tolist(), mine.col.tolist(), strict=True)]
    assert cells == [("Mds", 1, 0), ("Nds", 0, 1), ("Mds", 1, 1), ("Nds", 1, 1)]


SUM = """
__global__ void total(const float* x, float* out, int n) {
    __shared__ float s[4];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    if (t < 2) s[t] += s[t + 2];
    __syncthreads();
    if (t == 0) out[blockIdx.x] = s[0];
}
"""


def test_values_of_other_kernels_are_not_multiplied():
    """What a thread reads stands beside each other, and a store that reads in the same line is a store."""
    args = {"x": np.arange(1, 5, dtype=np.float32), "out": np.zeros(1, np.float32), "n": 4}
    text = trace(SUM, args=args, grid=(1,), block=(4,)).text()
    assert "s[0][0], s[0][2]" in text
    assert "out[0][0] = 4" in text
    assert "·" not in text.split("Grid:")[0]
    assert "\0" not in text
