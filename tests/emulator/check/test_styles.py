"""Kernels as many people write them: each runs as it stands, is bound by itself, and is found clean or wanting."""

from __future__ import annotations

import pytest
from simt_support import KERNELS

from tilewise.emulator.machine.findings import Kind
from tilewise.teaching.trace import check

STYLES = {
    "half_precision": (5, 5, 5),
    "typed_template": (9, 10, 11),
    "sub_matrix": (8, 12, 4),
    "one_dimension": (7, 7, 7),
    "vector_loads": (32, 16, 64),
    "walking_pointers": (6, 6, 6),
    "index_variables": (6, 6, 6),
    "grid_stride_tiles": (6, 6, 6),
    "atomic_product": (6, 6, 6),
    "block_tiled": (64, 16, 64),
    "sdk_template": (32, 16, 48),
    "collaborative": (32, 32, 32),
    "matrix_struct": (17, 5, 20),
}


@pytest.mark.parametrize("name", STYLES)
def test_the_style_runs_clean(name):
    report = check(KERNELS / f"{name}.cu", shape=STYLES[name])
    assert report.ok, [str(f) for f in report.faults]
    assert (
        report.runs[0].counters["stores"] + report.runs[0].counters["atomics"] >= STYLES[name][0] * STYLES[name][2] / 4
    )


@pytest.mark.parametrize("name", ["sub_matrix", "block_tiled", "sdk_template", "collaborative"])
def test_the_ones_without_checks_overrun_silently_at_odd_sizes(name):
    shape = (19, 19, 19) if name == "collaborative" else (66, 17, 67)
    report = check(
        KERNELS / f"{name}.cu", shape=shape, grid=(17, 17) if name == "sub_matrix" else None, adversarial=False
    )
    kinds = {f.kind for f in report.seen}
    assert kinds & {Kind.SILENT_OVERRUN, Kind.OUT_OF_BOUNDS}
    overruns = [t for f in report.seen if f.kind is Kind.SILENT_OVERRUN for t in f.touches]
    assert all(t.requested != t.reached for t in overruns)


def test_an_index_without_a_leading_dimension_is_not_decidable():
    report = check(KERNELS / "one_dimension.cu", shape=(7, 7, 7))
    assert [f.array for f in report.findings if f.kind is Kind.NOT_DECIDABLE] == ["c"]


def test_blocks_may_take_different_numbers_of_phases():
    report = check(KERNELS / "grid_stride_tiles.cu", shape=(10, 10, 10))
    assert report.ok
    assert report.runs[0].counters["barriers"] == 9 * 3 * 2
