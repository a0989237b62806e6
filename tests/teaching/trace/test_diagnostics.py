"""Diagnostics for editors: findings by place, and the traffic of a line."""

from __future__ import annotations

from pathlib import Path

from tilewise.emulator.limits import DEFAULT
from tilewise.teaching.trace import trace
from tilewise.teaching.trace.diagnostics import diagnosed, traffic_of

KERNELS = Path(__file__).parents[2] / "emulator" / "kernels"


def test_a_finding_has_its_place_its_level_and_what_to_change():
    text = (KERNELS / "tiled_unchecked.cu").read_text()
    found = diagnosed(text, None, "en", DEFAULT)["diagnostics"]
    first = next(d for d in found if d["code"] == "out-of-bounds")
    assert text.splitlines()[first["line"] - 1][first["column"] - 1 :].startswith("M[Row")
    assert "load only where" in first["message"]
    assert {d["level"] for d in found} <= {"error", "warning", "information", "hint"}


def test_a_text_that_cannot_be_read_has_one_diagnostic_at_its_line():
    assert (
        diagnosed("__global__ void k(float* x) {\n  x[0] = = 1;\n}\n", None, "en", DEFAULT)["diagnostics"][0]["line"]
        == 2
    )
    assert diagnosed("", None, "en", DEFAULT)["diagnostics"][0]["line"] == 1


def test_headers_beside_a_saved_file_are_found(tmp_path):
    (tmp_path / "two.cuh").write_text("#define TWO 2\n")
    text = '#include "two.cuh"\n__global__ void k(float* x) { x[threadIdx.x] = TWO; }\n'
    (tmp_path / "k.cu").write_text(text)
    found = diagnosed(text, tmp_path / "k.cu", "en", DEFAULT)["diagnostics"]
    assert not [d for d in found if "two.cuh" in d["message"]]


def test_traffic_of_a_line_counts_loads_and_how_often_each_element():
    made = trace("tiled_edges", shape=(4, 4, 4), tile=2, blocks="all")
    texts = "\n".join(traffic_of(made).values())
    assert "M: 32 loads from global memory of 16 different elements, each 2 times" in texts
    assert "P: 16 stores to 16 different elements, each 1 time" in texts
