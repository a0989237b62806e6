"""The screenshots of the page beside this file: `python docs/page/shots.py` (needs selenium and Chromium)."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

import tilewise as tw
from tilewise.emulator.limits import Limits

HERE = Path(__file__).parent
SHOTS = {  # file: (link, width, height, dark)
    "silent-en.png": ("#block=0,0&phase=1&step=0&thread=0,1&drop=check-M", 1440, 1180, False),
    "fill-vi-dark.png": ("#block=0,0&phase=1&step=1&thread=1,0&lang=vi", 1440, 1180, True),
    "multiply-pt-phone.png": ("#block=0,0&phase=1&step=3&thread=1,0&lang=pt", 360, 1500, False),
    "beside-en.png": ("#block=1,1&phase=1&step=0&thread=0,1&drop=check-M&beside=1", 1440, 1250, False),
    "lecture-1280.png": ("#lecture=1&block=0,0&phase=1&step=0&thread=0,1&drop=check-M", 1280, 720, False),
    "lecture-warps.png": ("#lecture=1&tile=16&phase=0&step=3&lens=warps", 1280, 720, False),
    "lecture-failing.png": ("#lecture=1&block=0,0&phase=1&step=3&drop=barrier-2&schedule=1", 1920, 1080, False),
    "page-768.png": ("#block=0,0&phase=1&step=1&thread=1,0", 768, 1024, False),
}


def main() -> None:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"):
        options.add_argument(argument)
    folder = Path(tempfile.mkdtemp())
    options.add_argument(f"--user-data-dir={folder / 'profile'}")
    address = tw.explore(limits=Limits(seconds=60)).save(folder / "page.html").as_uri()
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        for name, (link, width, height, dark) in SHOTS.items():
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            features = [
                {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                {"name": "prefers-reduced-motion", "value": "reduce"},
            ]
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            driver.get("about:blank")
            driver.get(address + link)
            while driver.execute_script("return document.body.dataset.ready") != "yes":
                time.sleep(0.05)
            driver.save_screenshot(str(HERE / name))
            print(name)
    finally:
        driver.quit()


if __name__ == "__main__":
    sys.exit(main())
