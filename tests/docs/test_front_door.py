"""The README is short, has three parts, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_is_short_and_has_three_parts():
    assert len(TEXT.split()) <= 900
    assert re.findall(r"^## (\d) · (\w+)", TEXT, re.M) == [("1", "Learn"), ("2", "Compute"), ("3", "Read")]
    for name in ("make demo", "make test", "macOS", "Windows", "pip install .", "docs/benchmarks.md"):
        assert name in TEXT


def test_the_first_command_installs_from_the_checkout():
    first = re.search(r"```sh\n(.*?)```", TEXT, re.S)[1]
    assert first.startswith("python3 -m pip install . ")


def test_every_link_of_the_readme_leads_somewhere():
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", TEXT):
        assert (ROOT / target).exists(), target


def test_the_picture_moves_and_its_numbers_are_the_walk_s():
    svg = (ROOT / "docs" / "page" / "walk.svg").read_text(encoding="utf-8")
    assert svg.count("<animate ") == 20
    for value in ("90", "96", "102", "216", "231", "246", "342", "366", "390"):
        assert f">{value}</text>" in svg


def test_the_demo_installs_only_what_a_user_needs():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^demo: \$\(BASE\)$", makefile, re.M)
    locked = (ROOT / "requirements-base.lock").read_text(encoding="utf-8")
    names = set(re.findall(r"^([\w-]+)==", locked, re.M))
    assert {"numpy", "llvmlite", "click", "rich"} <= names
    assert not names & {"pytest", "torch", "matplotlib", "sphinx", "dask", "selenium"}
    whole = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for pin in re.findall(r"^([\w-]+==[\w.]+)", locked, re.M):
        assert pin in whole, f"{pin} is not what the tests run with: make lock"
