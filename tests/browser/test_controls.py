"""Every control does what it says, by mouse and by keyboard alone; links lead to states."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from page_variants import variant

POSITION = "return Number(document.querySelector('.tick.here').dataset.position)"
KERNELS = sorted((Path(__file__).parents[1] / "emulator" / "kernels").rglob("*.cu"))
FOCUS = "const e = document.activeElement; return e.id || e.className || e.tagName"


def pressed(browser):
    chosen = ".toggle:not(.plain)[aria-pressed=true]"
    return browser.js("return [...document.querySelectorAll(arguments[0])].map((b) => b.id)", chosen)


def test_the_step_buttons_step(browser, pages):
    _, address = pages("3x3")
    browser.open(address)
    assert browser.js(POSITION) == 0
    browser.click("#next")
    browser.click("#next")
    assert browser.js(POSITION) == 2
    browser.click("#back")
    assert browser.js(POSITION) == 1
    browser.click("#last")
    last = browser.js(POSITION)
    assert last == 13
    assert browser.title() == "Write P"
    browser.click("#next")
    assert browser.js(POSITION) == last, "there is nothing after the end"
    browser.click("#first")
    assert browser.js(POSITION) == 0


def test_play_goes_on_and_stops_at_the_end(browser, pages):
    _, address = pages("3x3")
    browser.open(f"{address}#block=1,1&phase=1&step=5")  # the last block: a lecture plays through all of them
    start = browser.js(POSITION)
    browser.click("#play")
    assert browser.js("return document.getElementById('play').getAttribute('aria-label')") == "Pause"
    browser.wait(f"Number(document.querySelector('.tick.here').dataset.position) > {start}", 5)
    browser.wait("document.getElementById('play').getAttribute('aria-label') === 'Play'", 8)
    assert browser.title() == "Write P"
    browser.press(" ")  # the play button has the focus: the space bar starts again, from the beginning
    browser.wait("document.getElementById('play').getAttribute('aria-label') === 'Pause'", 3)
    browser.press(" ")
    browser.wait("document.getElementById('play').getAttribute('aria-label') === 'Play'", 3)


def test_the_phase_slider_the_block_picker_and_the_timeline(browser, pages):
    _, address = pages("3x3")
    browser.open(address)
    browser.js("const s = document.getElementById('phase'); s.value = 1; s.dispatchEvent(new Event('input'))")
    assert browser.title() == "Phase 1: load the tile of M into Mds"
    browser.choose("block", 3)
    assert "block=1,1" in browser.hash()
    assert browser.title() == "Phase 1: load the tile of M into Mds", "another block, the same place in time"
    browser.click(".tick[data-position='3']")
    assert browser.title().startswith("Phase 0: barrier")


def test_zoom_makes_cells_larger_and_never_the_page_wider(browser, pages):
    _, address = pages("16x16")
    browser.open(f"{address}#block=0,0&phase=1", width=768)
    width = "return document.querySelector('.matrices svg').width.baseVal.value"
    before = browser.js(width)
    browser.js("const z = document.getElementById('zoom'); z.value = 4; z.dispatchEvent(new Event('input'))")
    assert browser.js(width) > 3 * before
    assert browser.js("return document.documentElement.scrollWidth") <= 768


def test_a_thread_is_chosen_by_click_and_by_arrow(browser, pages):
    _, address = pages("4x4")
    browser.open(f"{address}#block=0,0&phase=0&step=3")
    browser.click(".thread[data-thread='3']")
    assert "thread=1,1" in browser.hash()
    assert browser.text(".mine").startswith("Thread (x 1, y 1): reads Mds[1][0] = 5, Nds[0][1] = 22;")
    browser.press("left")
    assert "thread=0,1" in browser.hash()
    browser.press("up")
    assert "thread" not in browser.hash()
    assert browser.js(FOCUS).startswith("thread"), "the focus stays in the grid"
    assert browser.js("return document.querySelectorAll('.matrices .line').length") == 3


def test_a_thread_of_many_is_chosen_on_the_picture_and_by_arrow(browser, pages):
    """256 threads are painted; the chosen one is a button."""
    _, address = pages("16x16x16")
    browser.open(f"{address}#block=0,0&phase=0&step=3")
    painted = "return [...document.querySelector('.threads canvas').over.values()].map((one) => one.how ?? one.ring)"
    point = """
      const host = document.querySelector('.threads'); const svg = host.querySelector('svg').getBoundingClientRect();
      const [row, col] = arguments; const { cell } = host.layout;
      const where = { clientX: svg.left + (col + .5) * cell, clientY: svg.top + (row + .5) * cell, bubbles: true };
      host.querySelector('svg').dispatchEvent(new MouseEvent('click', where));
    """
    assert browser.js("return document.querySelectorAll('.thread').length") == 1
    browser.js(point, 2, 5)
    assert "thread=5,2" in browser.hash()
    assert "(x 5, y 2)" in browser.text(".mine")
    label = "return document.querySelector('.thread').getAttribute('aria-label')"
    assert browser.js(label).startswith("Thread (x 5, y 2): ")
    browser.js("document.querySelector('.thread').focus()")
    browser.press("down")
    browser.press("left")
    assert "thread=4,3" in browser.hash()
    assert browser.js(FOCUS).startswith("thread"), "the focus stays in the picture"
    seen = []
    for _ in range(3):
        browser.js("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft' }))")
        seen.append(browser.js(painted))
    assert seen == [["waiting"] * 256, ["loaded"] * 256, ["loaded"] * 256]


def test_dropping_a_check_and_a_barrier_and_putting_the_right_kernel_beside(browser, pages):
    _, address = pages("3x3")
    browser.open(f"{address}#block=0,0&phase=1")
    assert browser.js("return document.querySelector('.verdict').dataset.faults") == "0"
    browser.click("#drop-check-M")
    browser.wait("document.querySelector('.verdict').dataset.faults === '3'")
    assert browser.title() == "Phase 1: load the tile of M into Mds", "the state stays"
    assert browser.js("return document.querySelectorAll('.matrices .reach').length") == 2
    assert "if (true)  // was: if (row < m" in browser.text("li.changed")
    browser.click("#drop-barrier-1")
    browser.wait("document.querySelectorAll('li.changed').length === 2")
    assert pressed(browser) == ["drop-check-M", "drop-barrier-1"]
    browser.click("#beside")
    browser.wait("document.querySelectorAll('.pane').length === 2")
    panes = browser.js("return [...document.querySelectorAll('.verdict')].map((v) => v.dataset.faults)")
    assert panes[0] == "0"
    assert int(panes[1]) > 3
    browser.press("end")
    titles = browser.js("return [...document.querySelectorAll('.caption .state')].map((t) => t.textContent)")
    assert titles == ["Write P", "Write P"]
    browser.click("#drop-check-M")
    browser.wait("document.querySelectorAll('li.changed').length === 1")
    browser.click("#drop-barrier-1")
    browser.wait("document.querySelectorAll('.pane').length === 1")


@pytest.mark.parametrize(
    ("drop", "expected"),
    [
        ("barrier-1", "With threads run one at a time"),
        ("barrier-2", "with no barrier between them"),
        ("check-P", "overwrites"),
    ],
)
def test_what_breaks_is_reported_with_its_line(browser, pages, drop, expected):
    page, address = pages("3x3")
    browser.open(f"{address}#drop={drop}")
    faults = variant(page, [drop]).run.faults
    assert expected in browser.text(".findings")
    assert browser.text(".findings .fault .where") == f"line {faults[0].line}"


def test_links_lead_to_states_and_bad_links_to_the_nearest(browser, pages):
    _, address = pages("3x3")
    browser.open(f"{address}#block=1,1&phase=1&step=1&thread=0,1&lang=pt")
    assert browser.title() == "Fase 1: carregar o tile de N em Nds"
    assert browser.js("return document.getElementById('block').value") == "3"
    assert browser.text(".mine").startswith("Thread (x 0, y 1):")
    link = browser.hash()
    browser.press("right")
    assert browser.hash() != link
    browser.js(f"location.hash = '{link}'")
    browser.wait(f"location.hash === '{link}' && document.querySelector('.caption .state').textContent.includes('Nds')")
    for wild in ("#block=9,9&phase=77&step=99", "#phase=x&thread=-1,5", "#drop=nothing&lang=xx", "#%%%"):
        browser.open(f"{address}{wild}")
        assert browser.title()


def test_everything_by_keyboard_alone(browser, pages):
    _, address = pages("3x3")
    browser.open(address)
    order = []
    for _ in range(60):
        browser.press("tab")
        order.append(browser.js(FOCUS))
        if order[-1] in ("BODY", "HTML") or "skip" in order[1:]:
            break
    order = (
        order[: order.index("skip", 1)] if "skip" in order[1:] else order
    )  # the page alone has the focus: it goes round
    wanted = ["skip", "first", "back", "play", "next", "last", "phase", "block", "tile", "language", "theme"]
    wanted += ["drop-check-M", "drop-check-N", "drop-check-P", "drop-barrier-1", "drop-barrier-2"]
    assert [name for name in order if name in wanted] == wanted
    assert any(name.startswith("thread") for name in order)
    assert any("listing" in name for name in order), "the source can be scrolled"

    browser.open(address)
    browser.press("right")
    assert browser.js(POSITION) == 1
    browser.press("right", shift=True)
    assert browser.title().startswith("Phase 1")
    browser.press("left", shift=True)
    assert browser.title().startswith("Phase 0")
    browser.press("]")
    assert "block=1,0" in browser.hash()
    browser.press("[")
    assert "block=0,0" in browser.hash()
    browser.press("end")
    assert browser.title() == "Write P"
    browser.press("left")
    assert browser.title().startswith("Phase 1: barrier")
    browser.press("home")
    assert browser.js(POSITION) == 0
    browser.press(" ")
    assert browser.js("return document.getElementById('play').getAttribute('aria-label')") == "Pause"
    browser.press(" ")
    browser.js("document.getElementById('drop-barrier-2').focus()")
    browser.press("enter")
    browser.wait("document.querySelector('.verdict').dataset.faults !== '0'")
    assert browser.js(FOCUS) == "drop-barrier-2", "the focus stays on the toggle"


def test_states_are_announced(browser, pages):
    _, address = pages("3x3")
    browser.open(address)
    before = browser.text("#live")
    browser.press("right")
    assert browser.text("#live") != before
    assert browser.text("#live").startswith("Phase 0: load the tile of M into Mds")
    assert "Loaded: (x 0, y 0) M[0][0]" in browser.text("#live")


def test_the_theme_can_be_chosen(browser, pages):
    _, address = pages("3x3")
    browser.open(address)
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = browser.js(colour)
    browser.choose("theme", "dark")
    dark = browser.js(colour)
    assert dark != light
    browser.open(address, dark=True)
    assert browser.js(colour) == dark
    browser.choose("theme", "light")
    assert browser.js(colour) == light


def test_two_kernels_stand_side_by_side_and_step_together(browser, pages):
    _, address = pages("compare")
    browser.open(address)
    assert browser.js("return document.querySelectorAll('.pane').length") == 2
    assert browser.js("return getComputedStyle(document.getElementById('whatif')).display") == "none"
    state = "return [...document.querySelectorAll('.caption .state')].map((t) => t.textContent)"
    seen = []
    for _ in range(40):
        browser.press("right")
        seen.append(tuple(browser.js(state)))
    assert seen[-1] == ("Write C", "Write C")
    assert any("barrier" in two and "barrier" not in one for one, two in seen), "one waits where the other does not"
    assert ("Phase 1: load the tile of A into As",) * 2 in seen


def test_a_page_of_64_is_sampled_and_quick(browser, pages):
    page, address = pages("64x64")
    start = time.monotonic()
    browser.open(f"{address}#block=3,3&phase=3&step=10")
    assert time.monotonic() - start < 20
    assert "2 of 16 blocks are recorded" in browser.text(".sampled")
    start = time.monotonic()
    for _ in range(5):
        browser.press("right")
    assert time.monotonic() - start < 15  # a second or two; five where six share two cores
    assert page.trace.blocks == (0, 15)


def test_a_faulty_kernel_of_one_s_own(browser, pages):
    page, address = pages("wrong")
    browser.open(address)
    assert browser.js("return document.querySelector('.verdict').dataset.faults") == str(len(page.trace.run.faults))
    names = browser.js("return [...document.querySelectorAll('.toggle')].map((b) => b.textContent)")
    assert names == ["Lecture", "no barrier in line 12", "Predict"]
    for _ in range(len(browser.js("return [...document.querySelectorAll('.tick')].map((t) => 1)"))):
        browser.press("right")
    assert browser.title() == "Write C"


def test_a_kernel_that_is_no_product_and_one_without_shared_memory(browser, pages):
    _, address = pages("vector")
    browser.open(address)
    assert "not a product" in browser.text(".matrices")
    browser.press("end")
    _, address = pages("naive")
    browser.open(f"{address}#lecture=0")
    assert "no shared memory" in browser.text(".shared")
    assert "no barrier" in browser.text(".gate")
    browser.press("right")
    assert browser.title() == "Phase 0: read, multiply and add, step 1 of 3"


def test_infinity_is_the_fill_of_min_plus(browser, pages):
    _, address = pages("min_plus")
    browser.open(f"{address}#block=0,0&phase=1")
    assert "Filled with ∞" in browser.text(".kinds .filled")


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.stem)
def test_the_kernels_of_the_collection_open_and_step(browser, tmp_path, kernel):
    """Right and wrong ones, as students write them: a page without a complaint, or one sentence why not."""
    from tilewise.errors import TilewiseError
    from tilewise.teaching.page.exploring import explore

    try:
        page = explore(kernel)
    except TilewiseError:
        return
    browser.open(page.save(tmp_path / "kernel.html").as_uri())
    steps = browser.js("return document.querySelectorAll('.tick').length")
    for _ in range(min(steps, 25)):
        browser.js("document.getElementById('next').click()")
    assert browser.title()
    assert browser.complaints() == [], kernel.name


def test_the_worst_access_of_a_thread_gives_its_colour(browser, pages):
    """Without shared memory a thread loads twice in a step: one access outside is not hidden by a right one."""
    browser.open(f"{pages('naive3')[1]}#block=1,1&phase=0&step=1&drop=check-P")
    shown = browser.js("return [...document.querySelectorAll('.thread')].map((t) => t.className.split(' ')[1])")
    assert shown == ["loaded", "silent", "outside", "outside"]
    assert "Outside the memory of M" in browser.text(".kinds .outside")


def test_a_dropped_check_that_breaks_nothing_is_reported(browser, pages):
    _, address = pages("naive")
    browser.open(f"{address}#drop=check-P")
    assert browser.js("return document.querySelector('.verdict').dataset.faults") == "0"
    assert "At this size nothing breaks" in browser.text(".findings")
