"""The page in Firefox: it computes the faults of `check` there too, and steps show them."""

from __future__ import annotations

import shutil
import time

import pytest

from page_variants import agrees


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    pytest.importorskip("websocket", reason="pip install 'tilewise[browser]'")
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        pytest.skip("no Firefox here: apt-get install firefox-esr")
    from firefox import Firefox

    made = Firefox(program, tmp_path_factory.mktemp("firefox"))
    yield made
    made.quit()


def opened(firefox, address):
    firefox.get("about:blank")
    firefox.get(address)
    until = time.monotonic() + 20
    while firefox.execute_script("return document.body.dataset.ready") != "yes":
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_lecture_notes_kernel_has_the_faults_of_check(firefox, pages):
    page, address = pages("course")
    opened(firefox, address)
    agrees(firefox, page)


def test_steps_of_a_computed_run_are_shown(firefox, pages):
    _, address = pages("course")
    opened(firefox, f"{address}#shape=16x16x16&tile=16")
    step = "document.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));"
    cells = "document.querySelector('.shared canvas').over.size"
    shown = f"return [document.querySelector('.caption .state').textContent, {cells}]"
    titles = [firefox.execute_script(step + shown) for _ in range(3)]
    assert titles[0] == ["Phase 0: load the tile of M into tileMs", 256]
    assert titles[1] == ["Phase 0: load the tile of N into tileNs", 512]
    assert titles[2][0].startswith("Phase 0: barrier")
