"""Computed runs of the page: the faults, threads and cells of `check` at any shape, tile width and without barriers."""

from __future__ import annotations

from pathlib import Path

import pytest

from page_variants import agrees, computed
from tilewise.teaching.page import compute
from tilewise.teaching.page.exploring import explore

ROOT = Path(__file__).parents[2]
NOT_COMPUTED = {  # these are recorded instead, or have no run at this size
    "right/a_sum_is_no_product", "right/atomics_between_blocks", "wrong/index_overflow", "wrong/integer_ceil",
    "wrong/shared_sum_without_a_barrier", "wrong/too_many_threads", "02-the-sum/starter", "14-transposed/solution",
    "14-transposed/starter", "15-another-algebra/solution", "17-the-host-program/starter",
}  # fmt: skip
OTHERWISE = {  # the page's document says in what it differs: the text itself lacks a barrier, or a pointer walks
    "wrong/first_barrier_missing", "wrong/second_barrier_missing", "wrong/shared_loop_counter",
    "06-wait-for-the-tile/starter", "07-wait-for-the-others/starter", "16-find-the-race/starter",
    "right/walking_pointers",
}  # fmt: skip
FOLDERS = (("tests/emulator/kernels", "*/*.cu"), ("docs/exercises", "*/s*.cu"))
FILES = [path for folder, files in FOLDERS for path in sorted((ROOT / folder).glob(files))]
KERNELS = [
    "naive", "tiled", "tiled_edges",
    *(str(path.relative_to(ROOT)) for path in FILES
      if f"{path.parent.name}/{path.stem}" not in NOT_COMPUTED | OTHERWISE),
]  # fmt: skip


def test_the_lecture_notes_kernel_has_the_faults_of_check_at_other_shapes(browser, pages):
    page, address = pages("course")
    browser.open(address)
    agrees(browser.driver, page)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_has_the_faults_of_check_at_other_shapes(browser, monkeypatch, tmp_path, name):
    monkeypatch.setattr(compute, "TILES", (4,))  # beside its own
    page = explore(str(ROOT / name) if name.endswith(".cu") else name, shape=(3, 3, 3))
    browser.open(page.save(tmp_path / "page.html").as_uri())
    agrees(browser.driver, page)


def test_shape_tile_and_values_change_in_the_page_and_the_link_leads_back(browser, pages):
    _, address = pages("course")
    browser.open(address)
    for name, value in (("m", 5), ("k", 6), ("n", 7)):
        browser.js(
            f"const e = document.getElementById('side-{name}'); e.value = {value}; e.dispatchEvent(new Event('change'))"
        )
        browser.wait(f"document.getElementById('side-{name}').value === '{value}' && location.hash.includes('shape')")
    browser.choose("tile", "4")
    browser.wait("document.querySelector('.pane-title').textContent.includes('5×6×7 · TILE_WIDTH 4')")
    browser.choose("values", "1")
    browser.click("#drop-check-M")
    browser.wait("document.querySelector('.findings .fault') !== null")
    browser.press("right")
    link, title = browser.hash(), browser.title()
    assert "shape=5x6x7" in link
    assert "seed=1" in link
    browser.open(f"{address}{link}")
    assert browser.title() == title
    assert browser.hash() == link


def test_a_step_is_predicted_before_it_is_shown(browser, pages):
    _, address = pages("course")
    browser.open(f"{address}#shape=5x6x7&block=1,1&predict=1&thread=1,0")
    browser.press("right")
    assert browser.title() == "What comes next?"
    assert "Which cell of M does thread (x 1, y 0) load next?" in browser.text(".caption")
    assert browser.js("return document.querySelectorAll('.shared [data-cell]').length") == 0
    point = """
      const host = document.querySelector('.matrices'); const svg = host.querySelector('svg').getBoundingClientRect();
      const [role, row, col] = arguments; const { at, cell } = host.layout;
      const where = { clientX: svg.left + at[role][0] + (col + .5) * cell, clientY: svg.top + at[role][1] + (row + .5) * cell, bubbles: true };
      host.dispatchEvent(new MouseEvent('mousemove', where)); host.dispatchEvent(new MouseEvent('click', where));
    """  # noqa: E501
    browser.js(point, "M", 2, 1)
    assert "Right: M[2][1]." in browser.text(".caption")
    assert browser.title() == "Phase 0: load the tile of M into tileMs"
    browser.press("right")
    browser.js(point, "N", 0, 0)
    assert "Not N[0][0]: N[0][3]." in browser.text(".caption")
    browser.press("right")  # a barrier asks nothing
    assert browser.title() != "What comes next?"
    browser.press("home")
    browser.press("right")
    browser.press("right")
    assert browser.title() == "Phase 0: load the tile of M into tileMs"


def test_a_computed_run_of_64_is_fast_enough_to_step_through(browser, pages):
    _, address = pages("course")
    browser.open(f"{address}#shape=64x64x64&tile=16&block=2,3&phase=3&step=2")
    assert browser.js("return document.getElementById('block').value") == "14"
    made = min((computed(browser.driver, (64, 64, 64), tile=16) for _ in range(3)), key=lambda run: run["milliseconds"])
    assert made["lost"] == 0
    assert made["findings"] == []
    assert made["milliseconds"] < 5000  # 0.3 s where nothing else runs


def test_a_browser_without_64_bit_memories_shows_what_was_recorded_and_why(browser, pages):
    _, address = pages("course")
    script = (
        "const M = WebAssembly.Memory;"
        "WebAssembly.Memory = function (given) { if (given.address) throw new TypeError(); return new M(given); };"
    )
    made = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    try:
        browser.open(f"{address}#shape=5x6x7&drop=check-M")
        assert "WebAssembly with 64-bit addresses" in browser.text("#whatif")
        assert browser.text(".pane-title") == "course.cu · 3×3×3 · TILE_WIDTH 2"
        browser.press("right")
        assert browser.title().startswith("Phase 0")
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", made)
