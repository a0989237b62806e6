"""The tutorial is what its build makes, in three languages, and the slips it lists are slips."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import tilewise as tw
from tilewise.i18n.messages import REVIEWED
from tilewise.teaching.page.replay import Replay

FOLDER = Path(__file__).parents[2] / "docs" / "tutorial"


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("tutorial_build", FOLDER / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wanted(build):
    return build.build()


def test_text_and_pictures_are_up_to_date(wanted):
    old = [str(p.name) for p, text in wanted.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    assert old == [], "python docs/tutorial/build.py makes them again"


def test_check_finds_a_picture_that_is_out_of_date(build, monkeypatch, capsys):
    path = FOLDER / "pictures" / "en" / "shortest.svg"
    monkeypatch.setattr(build, "build", lambda: {path: "another picture"})
    assert build.main(["--check"]) == 1
    assert "pictures/en/shortest.svg" in capsys.readouterr().err.replace("\\", "/")


@pytest.mark.parametrize("language", REVIEWED)
def test_every_language_has_the_same_chapters_pictures_and_links(language):
    text = (FOLDER / f"{language}.md").read_text(encoding="utf-8")
    english = (FOLDER / "en.md").read_text(encoding="utf-8")
    assert text.count("\n## ") == english.count("\n## ") == 10
    pictures = re.findall(r"\]\((pictures/[^)]+)\)", text)
    assert [p.split("/")[-1] for p in pictures] == [
        p.split("/")[-1] for p in re.findall(r"\]\((pictures/[^)]+)\)", english)
    ]
    assert all(p.startswith(f"pictures/{language}/") for p in pictures)
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (FOLDER / target).exists(), target
    assert "{{" not in text
    figures = [sorted(re.findall(r"\{\{\w+\}\}", (FOLDER / "source" / f"{code}.md").read_text(encoding="utf-8")))
               for code in ("en", language)]  # fmt: skip
    assert figures[0] == figures[1], "the same figures are named in all of them"


def test_the_slips_are_slips():
    made = tw.trace("tiled_edges", shape=(4, 4, 4), tile=2)
    replay = Replay(made, 0)
    uses = [replay.state(i) for i, f in enumerate(replay.frames) if (f.stage, f.phase) == ("use", 1)]
    first = {name: state.shared[name][cell].origin for state in uses[:1] for t, name, cell, _ in state.used if t == 0}
    assert [(o.array, o.requested) for o in first.values()] == [("M", (0, 2)), ("N", (2, 0))], "N2,0, not M2,0"
    readers = {
        t for i, f in enumerate(replay.frames) if (f.stage, f.phase) == ("use", 0)
        for t, name, cell, _ in replay.state(i).used if (name, cell) == ("Mds", (1, 1))
    }  # fmt: skip
    assert readers == {2, 3}, "threads (1,0) and (1,1), not (0,1)"
    unchecked = tw.check("tiled", shape=(3, 3, 3), tile=2)
    assert unchecked.faults
    replay = Replay(tw.trace("tiled_edges", shape=(3, 3, 3), tile=2), 0)
    fills = {
        f.phase
        for f in replay.frames
        for a in replay.accesses(f)
        if (a.kind, a.target, a.put) == ("filled", "Nds", (1, 0))
    }
    assert fills == {1}, "thread (1,0) of block (0, 0) meets N3,0 in phase 1"
