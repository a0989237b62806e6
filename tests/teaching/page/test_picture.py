"""A phase as a picture: well-formed, complete, and with the engine's own numbers."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

import tilewise as tw
from page_variants import variant
from tilewise.emulator.limits import Limits
from tilewise.errors import UsageError
from tilewise.i18n.messages import LANGUAGES, say
from tilewise.teaching.page.exploring import explore
from tilewise.teaching.page.picture import draw_phase, number

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def marks(svg):
    found = [e.get("class", "").split() for e in ElementTree.fromstring(svg).iter(f"{SVG}g")]
    return {kind: sum(c[-1] == kind for c in found) for kind in ("loaded", "filled", "silent", "outside")}


@pytest.fixture(scope="module")
def three():
    return explore("tiled_edges", shape=(3, 3, 3), tile=2, limits=Limits(seconds=300))


def test_the_notes_figure_of_phase_1(three):
    svg = draw_phase(three.trace, 1, 0)
    assert "4 loads, 4 fills" in texts(svg)
    assert "Barriers in lines 45, 49" in texts(svg)
    for value in ("90", "96", "216", "231"):
        assert texts(svg).count(value) == 2, "in P and in the thread's register"
    # twice each (matrix and shared memory), the four stores of P, one in the legend
    assert marks(svg) == {"loaded": 13, "filled": 9, "silent": 1, "outside": 1}


def test_arrows_lead_from_the_requested_cell_to_the_cell_reached(three):
    broken = variant(three, ["check-M"])
    root = ElementTree.fromstring(draw_phase(broken, 1, 0))
    assert sum(e.get("class") == "reach" for e in root.iter(f"{SVG}path")) == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_pictures_in_three_languages(three, language):
    svg = draw_phase(three.trace, 0, 3, language)
    assert say(language, "svg.title", block="(x 1, y 1)", phase=0) in texts(svg)
    assert say(language, "legend.silent") in texts(svg)


def test_one_file_a_phase_and_block(three, tmp_path):
    made = three.save_svgs(tmp_path / "new")
    assert [p.name for p in made] == [
        f"block-{b}-phase-{p}.svg" for b in ("x0-y0", "x1-y0", "x0-y1", "x1-y1") for p in (0, 1)
    ]
    for path in made:
        ElementTree.parse(path)


@pytest.mark.parametrize("kernel", ["naive", "tiled", "coarsened"])
def test_other_rungs_are_drawn_too(kernel):
    svg = tw.trace(kernel, shape=(4, 4, 4), tile=2).to_svg(0)
    assert f"{kernel}  4×4×4  TILE_WIDTH 2" in texts(svg)
    assert marks(svg)["loaded"] > 1, "more than the legend's"


def test_what_cannot_be_drawn_is_refused_in_one_sentence(three):
    with pytest.raises(UsageError, match="phase 7 is not there: the run has phases 0 to 1"):
        three.trace.to_svg(7)
    with pytest.raises(UsageError, match="was not recorded"):
        tw.trace("tiled_edges", shape=(3, 3, 3), tile=2).to_svg(0, block=3)
    with pytest.raises(UsageError, match="up to 32x32"):
        tw.trace("tiled_edges", shape=(40, 4, 4), tile=2).to_svg(0)


def test_numbers_are_short():
    assert [number(v) for v in (3.0, -2.5, float("nan"), float("inf"), 1234567.0)] == [
        "3",
        "−2.5",
        "?",
        "∞",
        "1.23e+06",
    ]
