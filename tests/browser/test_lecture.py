"""Lecture mode: one screen with everything on it; the order that fails; lenses, stories of cells; regressions."""

from __future__ import annotations

import pytest

from cut_text import CUT
from page_variants import variant
from tilewise.i18n.messages import LANGUAGES

SCREENS = [(1280, 720), (1920, 1080)]
STATES = {
    "start": "#lecture=1",
    "fill": "#lecture=1&block=0,0&phase=1&step=1&thread=0,1",
    "silent": "#lecture=1&block=0,0&phase=1&step=0&thread=1,0&drop=check-M",
    "roofline": "#lecture=1&block=1,1&phase=1&step=3&lens=roofline",
    "warps": "#lecture=1&tile=16&phase=0&step=3&lens=warps",
    "schedule": "#lecture=1&block=0,0&phase=1&step=3&drop=barrier-2&schedule=1",
    "beside": "#lecture=1&block=0,0&phase=1&step=0&drop=check-M&beside=1",
}
# What leaves its frame: the page its screen, a picture its card, the narration its box.
FOLD = """
const bad = [];
if (document.documentElement.scrollHeight > innerHeight) bad.push(`page ${document.documentElement.scrollHeight}`);
for (const name of ['caption', 'matrices', 'shared', 'threads', 'lens']) {
  for (const e of document.querySelectorAll(`.${name}`)) {
    if (e.clientHeight && e.scrollHeight > e.clientHeight + 2) bad.push(`${name} ${e.scrollHeight} in ${e.clientHeight}`);
    if (e.clientWidth && e.scrollWidth > e.clientWidth + 2) bad.push(`${name} wide ${e.scrollWidth} in ${e.clientWidth}`);
  }
}
for (const name of ['.caption', '.card-matrices', '.card-listing', '.card-counters']) {
  for (const e of document.querySelectorAll(name)) {
    const r = e.getBoundingClientRect();
    if (r.height < 20 || r.bottom > innerHeight + 1) bad.push(`${name} ends at ${r.bottom} of ${innerHeight}`);
  }
}
for (const row of document.querySelectorAll('li.here')) {
  const [r, l] = [row.getBoundingClientRect(), row.closest('.listing').getBoundingClientRect()];
  if (row === row.closest('.listing').querySelector('li.here') && (r.top < l.top - 1 || r.top > l.bottom - 12)) bad.push(`line ${row.value}`);
}
return bad;
"""  # noqa: E501
FRAME = "requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))"


@pytest.mark.drawn(2)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_everything_stands_on_one_screen(browser, pages, width, height, language):
    _, address = pages("course")
    for name, state in STATES.items():
        browser.open(f"{address}{state}&lang={language}", width=width, height=height)
        browser.driver.execute_async_script(FRAME)  # which scrolls the listing
        assert browser.js(FOLD) == [], f"{name} at {width}x{height} in {language}"
        assert browser.js(CUT) == [], f"{name} at {width}x{height} in {language}"


def test_axe_finds_no_violation_in_a_lecture(browser, pages, axe):
    _, address = pages("course")
    for name, state in STATES.items():
        browser.open(f"{address}{state}", width=1280, height=720)
        browser.js(axe)
        found = browser.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document).then((r) => done(r.violations.map((v) => [v.id, v.nodes[0].failureSummary])))"
        )
        assert found == [], name


def test_a_clicker_s_keys_step_and_l_and_escape_change_the_mode(browser, pages):
    _, address = pages("course")
    browser.open(address, width=1280, height=720)
    assert browser.js("return document.body.classList.contains('lecture')"), "the layout to begin with"
    browser.press("l")
    browser.wait("!document.body.classList.contains('lecture')")
    assert "lecture=0" in browser.hash()
    browser.press("l")
    browser.wait("document.body.classList.contains('lecture')")
    browser.press("page_down")
    assert browser.title() == "Phase 0: load the tile of M into tileMs"
    browser.press("page_up")
    assert browser.title() == "Block (x 0, y 0), before the first phase"
    browser.press(".")
    assert browser.js("return document.body.classList.contains('blank')")
    browser.press(".")
    browser.press("escape")
    browser.wait("!document.body.classList.contains('lecture')")


def test_playing_goes_through_the_blocks_and_fills_p(browser, pages):
    _, address = pages("course")
    browser.open(f"{address}#lecture=1", width=1280, height=720)
    browser.choose("speed", "4")
    browser.click("#play")
    browser.wait("document.getElementById('block').value === '1'", 12)
    browser.press(" ")
    filled = browser.js("return [...document.querySelectorAll('.matrix.P .value.earlier')].map((t) => t.textContent)")
    assert filled == ["90", "96", "216", "231"]


def test_the_order_that_fails_ends_with_the_wrong_p(browser, pages):
    page, address = pages("course")
    for name in ("barrier-1", "barrier-2"):
        made = variant(page, [name]).failing
        browser.open(f"{address}#drop={name}&lecture=0")  # one block's P at a time
        browser.click("#schedule")
        browser.wait("document.querySelector('.dropped + .dropped') !== null")
        browser.press("right")
        assert browser.title() == "Phase 0: only thread (x 0, y 0) runs, line 26"
        wrong = {f"P[{r}][{c}]" for r, c in made.wrong}
        shown = set()
        for block in made.blocks:
            browser.choose("block", block)
            browser.js("document.activeElement.blur()")
            browser.press("end")
            shown |= set(browser.js("return [...document.querySelectorAll('.value.bad')].map((t) => t.dataset.cell)"))
            held = browser.js(
                "return [...document.querySelectorAll('.matrix.P text[data-cell]')]"
                ".map((t) => [t.dataset.cell, t.textContent])"
            )
            for cell, text in held:
                row, col = (int(part.rstrip("]")) for part in cell[2:].split("["))
                value = made.matrices["P"].values[row, col]
                assert text in ("?", str(int(value)) if value == value else "?")
        assert shown == wrong, name


def test_traffic_grows_beside_the_naive_kernel_s(browser, pages):
    _page, address = pages("course")
    browser.open(f"{address}#lens=traffic")
    read = "return ['naive', 'tiled'].map((n) => Number(document.querySelector(`[data-traffic=${n}]`).textContent))"
    seen = []
    for _ in range(13):
        browser.press("right")
        seen.append(tuple(browser.js(read)))
    assert seen == sorted(seen)
    assert seen[-1] == (24, 12), "block (x 0, y 0) of 3x3 computes 4 cells from 3 products each, and loads 12 elements"


def test_warps_are_drawn_with_their_sectors_and_banks(browser, pages):
    _, address = pages("banks")
    browser.open(f"{address}#phase=0&step=3&lens=warps")
    drawn = browser.js(
        "return [...document.querySelectorAll('.request')]"
        ".map((r) => [r.dataset.request, +r.dataset.count, +r.dataset.least])"
    )
    assert ["use", 8, 1] in drawn, "a column of a 16-wide tile falls into two banks, eight words deep"
    assert browser.js("return document.querySelectorAll('.place.bad').length") > 0


def test_a_cell_shows_which_threads_load_and_use_it(browser, pages):
    _, address = pages("course")
    browser.open(address)
    browser.js("document.querySelector('.matrices').focus()")
    browser.press("right")
    story = browser.text(".story")
    assert story.startswith(
        "M[0][0] = 1: loaded 2× from global memory (thread (x 0, y 0) of block (x 0, y 0) in phase 0, "
    )
    assert "used 4× by 4 threads" in story
    browser.press("up")
    assert browser.text(".story").startswith("N[2][0] = 17: loaded 2×")
    from selenium.webdriver.common.action_chains import ActionChains

    host = browser.driver.find_element("css selector", ".matrices svg")
    ActionChains(browser.driver, duration=0).move_to_element_with_offset(host, 60, 60).perform()
    assert browser.text(".story").startswith("P[")


def test_the_tile_width_is_a_choice(browser, pages):
    _, address = pages("course")
    browser.open(address)
    browser.choose("tile", "16")
    browser.wait("document.querySelector('.threads [role=img]')?.getAttribute('aria-label') === '256 threads'")
    assert "tile=16" in browser.hash()
    browser.choose("tile", "")
    browser.wait("document.querySelectorAll('.thread').length === 4")


def test_zoom_shows_what_happens_at_every_size(browser, pages):
    _, address = pages("16x16")
    browser.open(f"{address}#block=3,3&phase=3&step=1", width=1440)
    for zoom in (2, 4, 6):
        browser.js(f"const z = document.getElementById('zoom'); z.value = {zoom}; z.dispatchEvent(new Event('input'))")
        inside = browser.js(
            "const h = document.querySelector('.matrices').getBoundingClientRect();"
            "const canvas = document.querySelector('.matrices canvas'), c = canvas.getBoundingClientRect();"
            "return [...canvas.over.values()].filter((one) => one.now && c.left + one.x > h.left - 1"
            "&& c.left + one.x < h.right && c.top + one.y > h.top - 1 && c.top + one.y < h.bottom).length"
        )
        assert inside > 0, f"zoom {zoom} shows a cell that is loaded now"


def test_the_end_scrolls_the_source_to_its_line(browser, pages):
    for name in ("course", "16x16"):
        _, address = pages(name)
        browser.open(address, height=700)
        browser.press("end")
        assert browser.js(
            "const r = document.querySelector('li.here').getBoundingClientRect(),"
            "l = document.querySelector('.listing').getBoundingClientRect();"
            "return r.top >= l.top - 1 && r.bottom <= l.bottom + 1"
        ), name


def test_old_and_new_values_of_a_shared_cell_do_not_overlap(browser, pages):
    _, address = pages("16x16")
    browser.open(f"{address}#block=3,3&phase=3&step=1&lecture=0", width=1440)
    overlaps = """
    return [...document.querySelectorAll('.shared .former')].filter((f) => {
      const a = f.getBoundingClientRect(), b = f.parentElement.querySelector('.value').getBoundingClientRect();
      return a.right > b.left + 1.5;
    }).length"""
    assert browser.js("return document.querySelectorAll('.shared .former').length") > 0
    assert browser.js(overlaps) == 0


def test_texts_that_were_wrong(browser, pages):
    _, address = pages("course")
    browser.open(f"{address}#block=1,0")
    assert "rows 0–1 and column 2 of P" in browser.text(".caption"), "not 2–3: P has three columns"
    browser.open(f"{address}#drop=barrier-2")
    assert "thread –" not in browser.text(".findings")
    assert "while another thread may still read it" in browser.text(".findings")
    _, naive = pages("naive")
    browser.open(naive)
    assert "in 1 phase." in browser.text(".caption")


def test_at_33_by_35_by_37_the_last_block_is_whole(browser, pages):
    _, address = pages("33x35x37")
    browser.open(f"{address}#block=2,2&phase=2&step=1", width=1440, height=900)
    assert browser.js("const h = document.querySelector('.matrices'); return h.scrollHeight <= h.clientHeight + 1")


def test_on_a_phone_the_picture_comes_first(browser, pages):
    _, address = pages("course")
    browser.open(address, width=360, height=740)
    assert browser.js("return document.querySelector('.card-matrices').getBoundingClientRect().bottom") < 740
    assert browser.js("return document.querySelector('#pickers').getBoundingClientRect().top") > 740


def test_two_kernels_are_not_a_tower_and_the_code_is_on_the_first_screen(browser, pages):
    _, address = pages("compare")
    browser.open(address, width=1440, height=900)
    assert browser.js("return document.documentElement.scrollHeight") < 2200
    assert browser.js("return document.querySelector('.card-listing').getBoundingClientRect().top") < 900
