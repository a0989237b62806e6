"""The live page in a browser: an edit shows at once, an error at its line, and keys typed in the editor stay there."""

from __future__ import annotations

import threading
import time

import pytest

from tilewise.page.live import Server, Workbench


@pytest.fixture
def live(tmp_path, request, browser):
    file = tmp_path / "mine.cu"
    file.write_text(request.getfixturevalue("course_text"), encoding="utf-8")
    made = Server(Workbench(file, watch=request.param, settings={"shape": (4, 4, 4)}), "en")
    worker = threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True)
    worker.start()
    yield made, file
    browser.driver.get("about:blank")  # a page that asks a server that is gone would complain in the next test
    browser.complaints()
    made.shutdown()
    made.server_close()


@pytest.fixture
def course_text():
    from tilewise.page.recording import COURSE

    return COURSE.read_text(encoding="utf-8")


def silent_but_for(browser, address):
    return [said for said in browser.complaints() if not said.startswith(address)]


def change(browser, old, new):
    """The editor's text changed as typing would; how long until it is shown."""
    before = browser.js("return Number(document.body.dataset.shown)")
    started = time.monotonic()
    browser.js(
        "const t = document.getElementById('text'); t.value = t.value.replace(arguments[0], arguments[1]);"
        "t.dispatchEvent(new Event('input'))", old, new,
    )  # fmt: skip
    browser.wait(f"Number(document.body.dataset.shown) > {before}", 20)
    return time.monotonic() - started


@pytest.mark.parametrize("live", [False], indirect=True)
def test_an_edit_shows_within_a_second_and_an_error_at_its_line(browser, live):
    server, _ = live
    browser.open(server.address)
    browser.wait("document.body.dataset.shown === '1'")
    assert browser.text("#said").startswith("No fault.")
    took = [change(browser, "__syncthreads();\n    }", "}"), change(browser, "pValue);", "pValue );")]
    assert browser.text("#said").startswith("Faults found:")
    assert browser.js("return document.getElementById('schedule') !== null"), "the order that fails comes along"
    took.append(change(browser, "tileNs[j][tx];\n\n        }", "tileNs[j][tx];\n        __syncthreads(); }"))
    assert min(took) < 1, took
    browser.js(
        "const t = document.getElementById('text'); t.value = t.value.replace('float pValue = 0;', 'float pValue = ;');"
        "t.dispatchEvent(new Event('input'))"
    )
    browser.wait("document.querySelector('#gutter .bad') !== null")
    assert browser.js("return document.querySelector('#gutter .bad').textContent.trim()") == "22"
    assert ":22:" in browser.text("#said")
    browser.js("document.getElementById('text').focus()")
    position = browser.js("return Number(document.querySelector('.tick.here').dataset.position)")
    browser.press("right", "l", ".")
    assert browser.js("return Number(document.querySelector('.tick.here').dataset.position)") == position
    assert not browser.js("return document.body.classList.contains('lecture')")
    assert silent_but_for(browser, server.address) == []


@pytest.mark.parametrize("live", [True], indirect=True)
def test_a_file_that_is_saved_shows(browser, live):
    server, file = live
    browser.open(server.address)
    browser.wait("document.body.dataset.shown === '1'")
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("pValue", "sum"), encoding="utf-8")
    browser.wait("Number(document.body.dataset.shown) > 1")
    assert "float sum = 0;" in browser.text(".listing")
    browser.driver.get("about:blank")
    assert silent_but_for(browser, server.address) == []
