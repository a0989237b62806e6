"""What the page takes in Chromium: from a key to the next frame, and to compute a run; an empty page as the floor.

    python tests/support/page_steps.py [STEPS [SEED]] [-v]        tables, with -v every step by what it was spent on

A key is sent as the system would send it. The time runs from the event's own time stamp to the first task after the
frame that shows its effect: handlers, style, layout, paint and the wait for that frame are in it. Beside it stands the
processor time of the page's main thread, which other programs of a busy machine change less.
"""
# ruff: noqa: E501

from __future__ import annotations

import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from websocket import create_connection

from tilewise.teaching.page.exploring import explore

EMPTY = """<!doctype html><title>empty</title><body data-ready="yes"><p id="here">0</p>
<script>addEventListener('keydown', () => { document.getElementById('here').textContent = Math.random(); })</script>"""
LISTEN = """
window.took = [];
addEventListener('keydown', ({ timeStamp }) => {
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => window.took.push(performance.now() - timeStamp);
    port2.postMessage(0);
  });
}, true);
"""
COMPUTE = """
const [side, tile, done] = arguments;
window.tilewise.compute([side, side, side], { tile }).then((run) => done(run.milliseconds), (error) => done(String(error)));
"""
SPENT = {
    "EventDispatch": "handler", "FireAnimationFrame": "animation", "UpdateLayoutTree": "style", "Layout": "layout",
    "PrePaint": "paint", "Paint": "paint", "Layerize": "paint",
}  # fmt: skip
FRAME = "ProxyMain::BeginMainFrame"
ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--window-size=1440,900",
)  # fmt: skip


@contextmanager
def chromium() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    with tempfile.TemporaryDirectory() as profile:
        for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
            options.add_argument(argument)
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            metrics = {"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            driver.set_script_timeout(100)
            yield driver
        finally:
            driver.quit()


def opened(driver: Any, address: str) -> None:
    driver.get("about:blank")
    driver.get(address)
    while not driver.execute_script("return document.body?.dataset.ready === 'yes'"):
        time.sleep(0.05)
    time.sleep(1)


def stepped(
    driver: Any, address: str, steps: int, draw: random.Random, events: list[dict[str, Any]] | None = None
) -> list[float]:
    """Milliseconds of each step, forward to the end and back again, with the browser's trace in `events`. The keys come
    at times that have nothing to do with the display's."""
    opened(driver, address)
    driver.execute_script(LISTEN)
    there = max(1, driver.execute_script("return document.querySelectorAll('.tick').length - 1"))
    with traced(driver, events):
        for step in range(steps):
            key, code = (("ArrowRight", 39), ("ArrowLeft", 37))[step // there % 2]
            for kind in ("rawKeyDown", "keyUp"):
                event = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
                driver.execute_cdp_cmd("Input.dispatchKeyEvent", event)
            time.sleep(0.12 + 0.05 * draw.random())
    return list(driver.execute_script("return window.took"))


@contextmanager
def traced(driver: Any, found: list[dict[str, Any]] | None) -> Iterator[None]:
    """Every event of the browser's trace meanwhile."""
    if found is None:
        yield
        return
    with urlopen(f"http://{driver.capabilities['goog:chromeOptions']['debuggerAddress']}/json/version") as answer:
        address = json.load(answer)["webSocketDebuggerUrl"]
    socket = create_connection(address, suppress_origin=True)
    given = {"transferMode": "ReportEvents", "traceConfig": {"includedCategories": ["devtools.timeline", "cc"]}}
    socket.send(json.dumps({"id": 1, "method": "Tracing.start", "params": given}))
    while "id" not in json.loads(socket.recv()):
        pass
    yield
    socket.send(json.dumps({"id": 2, "method": "Tracing.end"}))
    while (message := json.loads(socket.recv())).get("method") != "Tracing.tracingComplete":
        if message.get("method") == "Tracing.dataCollected":
            found += message["params"]["value"]
    socket.close()


def is_key(event: dict[str, Any]) -> bool:
    return event["name"] == "EventDispatch" and event["args"]["data"]["type"] == "keydown"


def spent(events: list[dict[str, Any]]) -> list[dict[str, float]]:
    """For each key the milliseconds of the main thread's processor time up to the frame that follows, by their use (a
    layout that a script asks for counts for both)."""
    main = {(event["pid"], event["tid"]) for event in events if is_key(event)}
    out: list[dict[str, float]] = []
    mine = [event for event in events if (event["pid"], event["tid"]) in main and event.get("ph") == "X"]
    for event in sorted(mine, key=lambda event: event["ts"]):
        took = event.get("tdur", 0) / 1000
        if is_key(event):
            out.append({"all": took, "frames": 0})
        elif out and event["name"] == FRAME:
            out[-1]["all"] += took if out[-1]["frames"] == 0 else 0
            out[-1]["frames"] += 1
        if out and event["name"] in SPENT and out[-1]["frames"] < 2:
            use = SPENT[event["name"]]
            out[-1][use] = out[-1].get(use, 0) + took
    return out


def quantiles(times: list[float]) -> str:
    ordered = sorted(times)
    p95 = ordered[round(0.95 * (len(ordered) - 1))]
    return f"median {statistics.median(times):5.1f}  p95 {p95:5.1f}  most {ordered[-1]:5.1f}"


def main(steps: int, seed: int, every: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.html"
        empty.write_text(EMPTY)
        pages = {"an empty page": empty.as_uri()}
        for side in (16, 64):
            path = Path(folder) / f"{side}.html"
            explore("tiled_edges", shape=(side, side, side), tile=16).save(path)
            pages[f"{side}³, TILE_WIDTH 16"] = path.as_uri()
            pages[f"{side}³, computed there"] = f"{path.as_uri()}#seed=1"
        for name, address in pages.items():
            events: list[dict[str, Any]] = []
            with chromium() as driver:
                times = stepped(driver, address, steps, random.Random(seed))
                stepped(driver, address, steps, random.Random(seed), events)
            parts = spent(events)
            print(
                f"{name:20} {quantiles(times)} ms; main thread: {quantiles([part['all'] for part in parts])} ms",
                flush=True,
            )
            for use in ("all", *dict.fromkeys(SPENT.values())) if every else ():
                print(f"   {use:10}", " ".join(f"{part.get(use, 0):4.1f}" for part in parts))
        course = Path(folder) / "course.html"
        explore().save(course)
        print(
            f"the course's page: {course.stat().st_size / 1e6:.2f} MB; milliseconds to compute a run, least and most of 5, the first left out:"
        )
        with chromium() as driver:
            opened(driver, course.as_uri())
            for side in (16, 64):
                for tile in (2, 4, 8, 16, 32):
                    times = [driver.execute_async_script(COMPUTE, side, tile) for _ in range(6)][1:]
                    print(f"{side}³, TILE_WIDTH {tile:2}: {min(times):6.1f} {max(times):6.1f}", flush=True)


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    main(*[*given, *(50, 1)[len(given) :]], every="-v" in sys.argv)
