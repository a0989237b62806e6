"""Every number on the page is the engine's: all states of the 4x4 and 3x3 examples are walked, by keyboard."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

import seeds
from page_variants import variant
from tilewise.teaching.page.picture import number
from tilewise.teaching.page.replay import Replay
from tilewise.teaching.trace.table import block_loads

SEEN = """
const all = (selector, read) => Object.fromEntries([...document.querySelectorAll(selector)].map(read));
return {
  shared: all('.shared [data-cell]', (g) => [g.dataset.cell, [g.querySelector('.value').textContent, g.dataset.how]]),
  writers: all('.shared [data-cell]', (g) => [g.dataset.cell, g.querySelector('.writer').textContent]),
  registers: [...document.querySelectorAll('.thread .register')].map((r) => r.textContent),
  stored: all('.matrices text[data-cell]', (t) => [t.dataset.cell, t.textContent]),
  counters: all('td[data-counter]', (t) => [t.dataset.counter + ' ' + t.dataset.scope, t.textContent]),
  marks: all('.matrices .now[data-asked]', (g) => [g.dataset.asked, g.getAttribute('class').split(' ')[1]]),
  lines: [...document.querySelectorAll('li.here')].map((l) => l.value),
  arrows: document.querySelectorAll('.matrices .reach').length,
  title: document.querySelector('.caption .state').textContent,
};
"""


def expected_shared(state):
    return {
        f"{name}[{row}][{col}]": [number(held.value), held.kind]
        for name, cells in state.shared.items()
        for (row, col), held in cells.items()
    }


def compare(seen, replay, state, run):
    assert seen["shared"] == expected_shared(state)
    wide = run.block[0]
    for name, cells in state.shared.items():
        for (row, col), held in cells.items():
            writer = f"← x{held.thread % wide} y{held.thread // wide}"
            assert seen["writers"][f"{name}[{row}][{col}]"] == writer
    sums = {thread: value for (_, thread), value in state.sums.items()}
    assert seen["registers"] == [number(sums[t]) if t in sums else "–" for t in range(wide * run.block[1])]
    assert seen["stored"] == {f"P[{row}][{col}]": number(a.value) for (row, col), a in state.stored.items()}
    lines = set()
    if state.frame:
        lines = set(replay.events.line[state.frame.first : state.frame.last].tolist())
    assert set(seen["lines"]) == lines
    expected = {f"{a.array}[{a.requested[0]}][{a.requested[1]}]": a.kind for a in state.touched if a.array}
    assert {k: v for k, v in seen["marks"].items() if v != "filled"} == expected
    assert sum(v == "filled" for v in seen["marks"].values()) == sum(a.kind == "filled" for a in state.touched)
    assert seen["arrows"] == sum(a.kind == "silent" for a in state.touched)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("name", "drops"), [("4x4", ""), ("3x3", ""), ("3x3", "check-M"), ("3x3", "check-N,check-P")])
def test_every_state_shows_what_the_engine_did(browser, pages, name, drops):
    page, address = pages(name)
    made = variant(page, drops.split(",")) if drops else page.trace
    run = made.run
    whole = dict.fromkeys(("loads", "fills", "stores", "uses", "barriers"), 0)
    for block in made.blocks:
        by, bx = divmod(block, run.grid[0])
        browser.open(f"{address}#lecture=0&block={bx},{by}" + (f"&drop={drops}" if drops else ""))
        replay = Replay(made, block)
        for frame in range(-1, len(replay.frames)):
            if frame >= 0:
                browser.press("right")
            seen = browser.js(SEEN)
            compare(seen, replay, replay.state(frame), run)
        counters = seen["counters"]
        for key in whole:
            assert counters[f"{key} sofar"] == counters[f"{key} block"]
            assert counters[f"{key} grid"] == str(run.counters[key])
            whole[key] += int(counters[f"{key} block"])
        assert (int(counters["loads block"]), int(counters["without block"])) == block_loads(made, block)
        assert counters["without grid"] == str(run.counters["loads without tiles"])
    assert whole == {key: run.counters[key] for key in whole}, "the blocks together are the grid"


def test_the_course_s_figures_stand_on_the_page(browser, pages):
    _, address = pages("4x4")
    browser.open(address)
    counters = browser.js(SEEN)["counters"]
    assert (counters["loads block"], counters["loads grid"], counters["without grid"]) == ("16", "64", "128")
    assert "128 loads without tiles ÷ 64 with them = 2" in browser.text(".ratio")
    _, address = pages("3x3")
    browser.open(address)
    counters = browser.js(SEEN)["counters"]
    assert (counters["loads grid"], counters["fills grid"], counters["stores grid"]) == ("36", "28", "9")


def test_every_variant_shows_its_own_faults(browser, pages):
    page, address = pages("3x3")
    browser.open(address)
    every = [some for size in range(6) for some in combinations(page.drops, size)]
    for some in random.Random(seeds.next_seed()).sample(every, seeds.sample_size(32)):
        browser.js(f"location.hash = '#drop={','.join(some)}'")
        names = ",".join(sorted(some))
        browser.wait(
            "[...document.querySelectorAll('.toggle[id^=drop-][aria-pressed=true]')]"
            f".map((b) => b.id.slice(5)).sort().join() === '{names}'"
        )
        shown = browser.js(
            "return [...document.querySelectorAll('.findings li.fault')].map((l) => [l.dataset.kind, +l.dataset.count])"
        )
        assert shown == [[str(f.kind), f.count] for f in variant(page, some).run.faults]


PAINTED = """
const canvas = document.querySelector(`.${arguments[0]} canvas`);
const scale = canvas.width / canvas.clientWidth;
const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
copy.drawImage(canvas, 0, 0);
return [...canvas.over].map(([name, one]) => {
  const [, , , seen] = copy.getImageData((one.x + canvas.cell / 2) * scale, (one.y + 1.5) * scale, 1, 1).data;
  return [name, one.text ?? null, one.how ?? null, Boolean(one.now), seen > 0];
});
"""


def test_cells_painted_on_a_canvas_show_what_the_engine_did(browser, pages):
    page, address = pages("16x16x16")
    replay = Replay(page.trace, 0)
    browser.open(address)
    for frame in range(len(replay.frames)):
        browser.press("right")
        state = replay.state(frame)
        shared = {(name, how, text) for name, text, how, _, _ in browser.js(PAINTED, "shared")}
        assert shared == {
            (f"{name}{row * 16 + col}", held.kind, number(held.value))
            for name, cells in state.shared.items()
            for (row, col), held in cells.items()
        }
        cells = browser.js(PAINTED, "matrices")
        assert all(seen for _, _, how, now, seen in cells if now)
        marked = {name: how for name, _, how, now, _ in cells if now}
        roles = {matrix.name: role for role, matrix in page.trace.matrices.items()}
        assert marked == {f"{roles[a.array]}{a.requested[0]},{a.requested[1]}": a.kind for a in state.touched}
        stored = {name: float(text) for name, text, _, _, _ in cells if name.startswith("P") and text is not None}
        assert stored == {f"P{row},{col}": a.value for (row, col), a in state.stored.items()}
