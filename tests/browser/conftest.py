"""A real Chromium for the page. `make test-browser` runs these; each says why where something is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from functools import partial

import numpy as np
import pytest

from made_once import made_once


@pytest.hookimpl(tryfirst=True)  # before -m looks at the markers
def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)


class Browser:
    """A page in Chromium: opened, stepped through, and looked at."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, url, width=1440, height=900, dark=False, media=""):
        self.look(width, height, dark, media)
        self.driver.get("about:blank")
        self.driver.get(url)
        self.wait("document.body.dataset.ready === 'yes'")

    def look(self, width=1440, height=900, dark=False, media=""):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def wait(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.js(f"return {condition}"):
                return
            time.sleep(0.03)
        raise AssertionError(f"not within {seconds} s: {condition}")

    def press(self, *keys, shift=False):
        """Keys by name ("right", "tab", …) or as they are."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        chain = ActionChains(self.driver, duration=0)
        if shift:
            chain.key_down(Keys.SHIFT)
        chain.send_keys(*(getattr(Keys, f"ARROW_{k.upper()}", getattr(Keys, k.upper(), k)) for k in keys))
        if shift:
            chain.key_up(Keys.SHIFT)
        chain.perform()

    def click(self, selector):
        self.js("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        self.driver.find_element("css selector", selector).click()

    def choose(self, name, value):
        from selenium.webdriver.support.ui import Select

        Select(self.driver.find_element("id", name)).select_by_value(str(value))

    def text(self, selector):
        return self.js("return document.querySelector(arguments[0])?.textContent ?? null", selector)

    def title(self):
        return self.text(".caption .state")

    def hash(self):
        time.sleep(0.1)  # the address follows once stepping pauses
        return self.js("return location.hash")

    def complaints(self):
        """The messages of the console, and every requested address that is not the file itself."""
        import json

        messages = [entry["message"] for entry in self.driver.get_log("browser")]
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                address = message["params"]["request"]["url"]
                if not address.startswith(("file:", "data:", "about:", "blob:", "chrome:", "chrome-untrusted:")):
                    messages.append(address)
        return messages


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    selenium = pytest.importorskip("selenium", reason="pip install 'tilewise[browser]'")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if not chromium or not chromedriver:
        pytest.skip("no Chromium with chromedriver here: apt-get install chromium chromium-driver")
    assert selenium
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(chromedriver))
    yield made
    made.quit()


@pytest.fixture
def browser(driver):
    page = Browser(driver)
    page.look()
    page.complaints()
    yield page
    assert page.complaints() == [], "the console is silent and nothing is fetched"


@pytest.fixture(scope="session")
def pages(run_folder):
    """Pages by name, written once for all workers: the course's examples and some harder ones."""
    from tilewise.emulator.limits import Limits
    from tilewise.teaching.page.exploring import explore

    folder = run_folder / "pages"
    folder.mkdir(exist_ok=True)
    made = {}

    def written(name):
        page = RECIPES[name](partial(explore, limits=Limits(seconds=120)))  # browsers beside it take turns
        page.save(folder / f"{name}.html")
        return page

    def page(name):
        if name not in made:
            made[name] = made_once(folder / f"{name}.pickle", partial(written, name))
        return made[name], (folder / f"{name}.html").as_uri()

    return page


WRONG = """
#define TILE_WIDTH 2
__global__ void wrong(float* A, float* B, float* C, int Width) {
    __shared__ float As[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Bs[TILE_WIDTH][TILE_WIDTH];
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;
    float sum = 0;
    for (int p = 0; p < (Width - 1) / TILE_WIDTH + 1; ++p) {
        As[threadIdx.y][threadIdx.x] = A[Row * Width + p * TILE_WIDTH + threadIdx.x];
        Bs[threadIdx.y][threadIdx.x] = B[(p * TILE_WIDTH + threadIdx.y) * Width + Col];
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i) sum += As[threadIdx.y][i] * Bs[i][threadIdx.x];
    }
    C[Row * Width + Col] = sum;
}
"""

RIGHT = WRONG.replace("    }\n    C[", "        __syncthreads();\n    }\n    C[")
TWICE = "__global__ void twice(float* a, int n) { int i = threadIdx.x; if (i < n) a[i] *= 2; }"

# The row of a tile lies along the banks; a thread that reads down a column meets its neighbours there.
BANKS = WRONG.replace("#define TILE_WIDTH 2", "#define TILE_WIDTH 16").replace(
    "As[threadIdx.y][i] * Bs[i][threadIdx.x]", "As[threadIdx.x][i] * Bs[i][threadIdx.y]"
)

RECIPES = {
    "course": lambda explore: explore(),
    "banks": lambda explore: explore(BANKS, shape=(16, 16, 16), what_if=False),
    "33x35x37": lambda explore: explore("tiled_edges", shape=(33, 35, 37), tile=16, what_if=False),
    "4x4": lambda explore: explore("tiled_edges", shape=(4, 4, 4), tile=2),
    "3x3": lambda explore: explore("tiled_edges", shape=(3, 3, 3), tile=2),
    "naive": lambda explore: explore("naive", shape=(2, 3, 4), tile=2),
    "naive3": lambda explore: explore("naive", shape=(3, 3, 3), tile=2),
    "64x64": lambda explore: explore("tiled_edges", shape=(64, 64, 64), tile=16),
    "16x16x16": lambda explore: explore("tiled_edges", shape=(16, 16, 16), tile=16, what_if=False),
    "16x16": lambda explore: explore("tiled_edges", shape=(16, 16, 16), tile=4),
    "wrong": lambda explore: explore(WRONG, shape=(3, 3, 3)),
    "compare": lambda explore: explore(WRONG, compare=RIGHT, shape=(3, 3, 3)),
    "min_plus": lambda explore: explore("tiled_edges", shape=(3, 3, 3), tile=2, semiring="min_plus"),
    "vector": lambda explore: explore(TWICE, args={"n": 4, "a": np.ones(4, "float32")}, block=(4,), grid=(1,)),
}


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """axe-core's text, from TILEWISE_AXE or fetched by npm into a temporary folder."""
    given = os.environ.get("TILEWISE_AXE")
    if given:
        with open(given, encoding="utf-8") as file:
            return file.read()
    npm = shutil.which("npm")
    if not npm:
        pytest.skip("no npm here to fetch axe-core: set TILEWISE_AXE to axe.min.js")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run([npm, "pack", "axe-core@4"], cwd=folder, capture_output=True, text=True, timeout=120)
    if done.returncode:
        pytest.skip(f"npm cannot fetch axe-core: {done.stderr.strip().splitlines()[-1:]}")
    shutil.unpack_archive(next(folder.glob("axe-core-*.tgz")), folder)
    return (folder / "package" / "axe.min.js").read_text(encoding="utf-8")
