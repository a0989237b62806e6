"""Every figure in README and guides is the measured one, and every figure with a unit names its measurement."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "making"))

import diagrams  # noqa: E402
import figures  # noqa: E402


@pytest.mark.parametrize("document", figures.documents())
def test_figures_are_the_measured_ones(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    found = [f"{one.written} is {one.measured}" for one in figures.stale(document, text)]
    assert found == [], "python docs/making/figures.py updates them"
    assert figures.unclaimed(document, text) == [], "name the source in docs/figures.toml"


def test_a_stale_figure_and_one_without_a_source_are_noticed():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    old = figures.claimed("README.md", text)[0]
    worse = text[: old[0]] + "1" + text[old[0] :]
    assert [one.written for one in figures.stale("README.md", worse)] == ["1" + old[2]]
    assert figures.unclaimed("README.md", text + "\nIt runs at 812 TFLOP/s.\n") == [
        "README.md: 812 in 'It runs at 812 TFLOP/s.'"
    ]
    table = "\n| rung | TFLOP/s |\n| --- | ---: |\n| `new` | 9.9 |\n"
    assert len(figures.unclaimed("README.md", text + table)) == 1


def test_a_source_that_is_not_one_row_is_refused():
    with pytest.raises(LookupError, match=r"rows of ladder\.json have"):
        figures.measured({"file": "ladder", "kernel": "naive", "field": "tflops"})


@pytest.mark.parametrize("name", diagrams.PICTURES)
def test_a_diagram_is_its_script_s_output(name):
    written = (diagrams.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert written == diagrams.PICTURES[name](), "python docs/making/diagrams.py updates them"
