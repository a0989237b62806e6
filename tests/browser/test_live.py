"""The live page in a browser: an edit shows at once, an error at its line, and keys typed in the editor stay there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import tilewise
from tilewise.teaching.page.live import Server, Workbench
from tilewise.teaching.page.recording import COURSE


@pytest.fixture
def live(tmp_path, request, browser):
    file = tmp_path / "mine.cu"
    file.write_text(request.getfixturevalue("course_text"), encoding="utf-8")
    made = Server(Workbench(file, watch=request.param, settings={"shape": (4, 4, 4)}), "en")
    worker = threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True)
    worker.start()
    yield made, file
    browser.driver.get("about:blank")  # a page whose server is gone would log an error in the next test
    browser.complaints()
    made.shutdown()
    made.server_close()


@pytest.fixture
def course_text():
    return COURSE.read_text(encoding="utf-8")


def silent_but_for(browser, address):
    return [entry for entry in browser.complaints() if not entry.startswith(address)]


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
def test_an_edit_shows_soon_and_an_error_at_its_line(browser, live):
    server, _ = live
    browser.open(server.address)
    browser.wait("document.body.dataset.shown === '1'")
    assert browser.text("#said").startswith("No fault.")
    took = [change(browser, "__syncthreads();\n    }", "}"), change(browser, "pValue);", "pValue );")]
    assert browser.text("#said").startswith("Faults found:")
    browser.wait("document.getElementById('schedule') !== null")  # the order that fails follows
    took.append(change(browser, "tileNs[j][tx];\n\n        }", "tileNs[j][tx];\n        __syncthreads(); }"))
    assert min(took) < 3, took  # alone it is a fraction of a second; other browsers run beside it
    browser.js(
        "const t = document.getElementById('text'); t.value = t.value.replace('float pValue = 0;', 'float pValue = ;');"
        "t.dispatchEvent(new Event('input'))"
    )
    browser.wait("document.querySelector('.gutter .fault')?.textContent.trim() === '22'")
    assert ":22:" in browser.text("#said")
    browser.js("document.getElementById('text').focus()")
    lecture = browser.js("return document.body.classList.contains('lecture')")
    position = browser.js("return Number(document.querySelector('.tick.here').dataset.position)")
    browser.press("right", "l", ".")
    assert browser.js("return Number(document.querySelector('.tick.here').dataset.position)") == position
    assert browser.js("return document.body.classList.contains('lecture')") == lecture
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


# by the command line, for longer than the limits of one command

BARRIER = "__syncthreads();\n    }"
ENDLESS = "__global__ void f(float* A, float* B, float* C, int Width) { while (Width > 0) C[threadIdx.x] += 1; }\n"
HUGE = "__shared__ float huge[1 << 28]; float pValue = 0;"  # 1 GiB


class Commanded:
    """`tilewise explore FILE --watch` or `--live`, with its limits as they come."""

    def __init__(self, file, mode):
        command = [sys.executable, "-m", "tilewise", "explore", str(file), mode, "--no-open", "--shape", "8x8x8"]
        environment = {**os.environ, "PYTHONPATH": str(Path(tilewise.__file__).parents[1])}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()

    def end(self):
        self.process.terminate()
        assert self.process.wait(10) == -signal.SIGTERM
        self.process.stdout.close()


def save(file, text):
    file.with_suffix(".new").write_text(text, encoding="utf-8")
    file.with_suffix(".new").replace(file)


def variant(number, text):
    """The text of an edit, and how its verdict begins."""
    kind = number % 6
    if kind == 2:
        return f"// edit {number}\n{text.replace(BARRIER, '}')}", "Faults found:"
    if kind == 3:
        return f"// edit {number}\n{text.replace('float pValue = 0;', 'float pValue = ;')}", "<text>:23:"
    if kind == 4:
        return f"// edit {number}\n{ENDLESS}", "stopped"
    if kind == 5:
        return (
            f"// edit {number}\n{text.replace('float pValue = 0;', HUGE)}",
            "there is nothing to show: this launch fails: 1073741856 bytes of static shared memory",
        )
    return f"// edit {number}\n{text}", "No fault."


def edited(browser, mode, file, number, text):
    """An edit, saved or typed; the seconds until its verdict shows."""
    new, verdict = variant(number, text)
    browser.js("document.getElementById('said').textContent = ''")
    started = time.monotonic()
    if mode == "--watch":
        save(file, new)
    else:
        browser.js(
            "const t = document.getElementById('text'); t.value = arguments[0]; t.dispatchEvent(new Event('input'))",
            new,
        )
    browser.wait("document.getElementById('said').textContent !== ''", 20)
    took = time.monotonic() - started
    assert browser.text("#said").startswith(verdict), (number, browser.text("#said"))
    assert browser.js("return document.getElementById('text').value").startswith(f"// edit {number}\n")
    stale = browser.js("return document.body.classList.contains('stale')")
    assert stale == (number % 6 in (3, 4, 5)), "pictures of an earlier edit are marked"
    return took


def comes_late(browser, address, number, text):
    """A second window: whatever it shows is of the file as it is now."""
    new, verdict = variant(number, text)
    first = browser.driver.current_window_handle
    browser.driver.switch_to.new_window("tab")
    browser.driver.get(address)
    seen = set()
    end = time.monotonic() + 20
    while time.monotonic() < end and not seen - {""}:
        status, listing = browser.js(
            "const shown = document.getElementById('panes').checkVisibility();"
            "return [document.getElementById('said')?.textContent ?? '',"
            "shown ? document.querySelector('.listing').textContent : null]"
        )
        seen.add(status)
        assert listing is None or f"// edit {number}" in listing, "pictures of another kernel"
    assert all(status == "" or status.startswith(verdict) for status in seen), seen
    assert browser.js("return document.getElementById('text').value") == new
    assert browser.driver.title == "mine.cu – tilewise"
    assert browser.js("return document.getElementById('panes').checkVisibility()") == (number % 6 not in (3, 4, 5))
    browser.driver.close()
    browser.driver.switch_to.window(first)


def for_long(browser, folder, mode, seconds, edits):
    """So many edits over so many seconds; how long each took to show."""
    file = folder / "mine.cu"
    text = COURSE.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    command = Commanded(file, mode)
    try:
        began, took = time.monotonic(), []
        browser.open(command.address)
        browser.wait("document.body.dataset.shown === '1'")
        for number in range(1, edits + 1):
            time.sleep(max(0.0, began + seconds * number / edits - time.monotonic()))
            took.append(edited(browser, mode, file, number, text))
            if mode == "--watch":
                comes_late(browser, command.address, number, text)
        assert time.monotonic() - began > seconds
        assert command.process.poll() is None
    finally:
        browser.driver.get("about:blank")
        complaints = silent_but_for(browser, command.address)
        command.end()
    assert complaints == []
    endless = [t for number, t in enumerate(took, 1) if number % 6 == 4]
    others = [t for number, t in enumerate(took, 1) if number % 6 != 4]
    print(f"{mode}: {edits} edits in {seconds} s; shown after {sorted(others)[len(others) // 2]:.2f} s in the median, "
          f"{max(others):.2f} at most; endless ones after {max(endless):.2f} at most")  # fmt: skip
    return took


@pytest.mark.drawn(1)  # half a minute; that each edit has its own limit: tests/teaching/page/test_live.py
@pytest.mark.parametrize("mode", ["--watch", "--live"])
def test_edits_go_on_for_longer_than_a_command_may_take(browser, tmp_path, mode):
    for_long(browser, tmp_path, mode, 26, 6)


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "seconds", "edits"), [("--watch", 300, 20), ("--live", 600, 60)])
def test_many_edits_in_ten_minutes(browser, tmp_path, mode, seconds, edits):
    for_long(browser, tmp_path, mode, seconds, edits)
