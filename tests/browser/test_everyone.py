"""For everyone: three languages, small and large screens, light and dark, print, reduced motion, and axe-core."""

from __future__ import annotations

import json

import pytest

from cut_text import CUT
from tilewise.i18n.messages import LANGUAGES, messages

STATES = {
    "start": "",
    "fill": "#block=0,0&phase=1&step=0&thread=1,0",
    "silent": "#block=0,0&phase=1&step=0&thread=1,0&drop=check-M",
    "outside": "#block=1,1&phase=1&step=3&thread=1,1&drop=check-M,check-N,check-P",
    "race": "#block=0,0&phase=1&step=2&drop=barrier-1&beside=1",
    "store": "#block=1,1&phase=1&step=6",
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("width", [360, 768, 1440])
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_cut_off(browser, pages, width, language):
    _, address = pages("3x3")
    for name, state in STATES.items():
        browser.open(f"{address}{state or '#'}&lang={language}", width=width)
        assert browser.js(CUT) == [], f"{name} at {width}"
    for name in ("64x64", "16x16", "compare"):
        _, other = pages(name)
        browser.open(f"{other}#phase=1&step=2&lang={language}", width=width)
        assert browser.js(CUT) == [], f"{name} at {width}"


@pytest.mark.drawn(2)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_on_the_page_is_in_its_language(browser, pages, language):
    """What is shown comes from the language's file: no sentence of another language is left over."""
    _, address = pages("3x3")
    browser.open(address)
    browser.choose("language", language)
    browser.wait(f"document.documentElement.lang === '{language}'")
    mine = messages(language)
    assert browser.text(".card-matrices h3") == mine["card.matrices"]
    assert browser.text("label[for=block]") == mine["control.block"]
    others = {
        text
        for code in LANGUAGES
        if code != language
        for key, text in messages(code).items()
        if "{" not in text and len(text) > 12 and text not in mine.values()
    }
    for _ in range(14):
        shown = browser.js("return document.body.innerText")
        left = [text for text in others if text in shown]
        assert left == []
        assert "{" not in browser.text(".caption")
        browser.press("right") if browser.js("return document.activeElement.tagName") != "SELECT" else browser.js(
            "document.activeElement.blur()"
        )


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_violation(browser, pages, axe, dark):
    _, address = pages("3x3")
    looked = [(f"{address}{state}", name) for name, state in STATES.items()]
    looked += [(f"{address}#phase=1&lang={language}", language) for language in LANGUAGES]
    looked += [(pages(name)[1] + "#phase=0&step=1", name) for name in ("16x16", "compare", "wrong", "vector", "naive")]
    for target, name in looked:
        browser.open(target, dark=dark)
        browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        browser.js(axe)
        found = browser.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document).then((r) => done(r.violations.map((v) => "
            "[v.id, v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + ' ' + n.failureSummary)])))"
        )
        assert found == [], f"{name}: {json.dumps(found, indent=1)}"


@pytest.mark.drawn(1)
@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080), (768, 1024), (360, 740)], ids=str)
def test_axe_and_the_console_are_quiet_at_every_size(browser, pages, axe, size):
    """Where the page lies otherwise, lecture mode where there is room for it."""
    _, address = pages("course")
    states = ["#block=1,0", "#block=0,0&phase=1&step=0&thread=1,0&drop=check-M"]
    for state in [*states, *(["#lecture=1&phase=1&step=3&drop=barrier-2&schedule=1"] if size[0] >= 1280 else [])]:
        browser.open(f"{address}{state}", width=size[0], height=size[1])
        assert browser.js("return document.documentElement.scrollWidth <= innerWidth"), state
        browser.js(axe)
        found = browser.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document).then((r) => done(r.violations.map((v) => [v.id, v.nodes[0].failureSummary])))"
        )
        assert found == [], state
    assert [entry["message"] for entry in browser.driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_nothing_moves_where_motion_is_reduced(browser, pages):
    _, address = pages("3x3")
    browser.open(f"{address}{STATES['silent']}")
    moving = browser.js("return document.getAnimations().length")
    assert moving == 0


def test_it_prints_without_controls_and_in_full(browser, pages):
    _, address = pages("3x3")
    browser.open(f"{address}{STATES['silent']}", width=768, media="print", dark=True)
    assert browser.js("return getComputedStyle(document.body).backgroundColor") == "rgb(251, 250, 247)", (
        "on white paper"
    )
    shown = "return getComputedStyle(document.querySelector(arguments[0])).display"
    assert browser.js(shown, ".toolbar") == "none"
    assert browser.js("const l = document.querySelector('.listing'); return l.scrollHeight <= l.clientHeight + 1")
    assert browser.js(CUT) == []


def test_the_notebook_s_frame_shows_the_page(browser, pages, tmp_path):
    page, _ = pages("3x3")
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><title>notebook</title><body>{page.trace._repr_html_()}", encoding="utf-8")
    browser.driver.get(file.as_uri())
    browser.driver.switch_to.frame(0)
    browser.wait("document.body.dataset.ready === 'yes'")
    browser.press("right")
    browser.click("#next")
    assert browser.title()
    browser.driver.switch_to.default_content()
