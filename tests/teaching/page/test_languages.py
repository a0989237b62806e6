"""The page has every message that its script uses; `tests/i18n` finds those that no code uses."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from tilewise.i18n.messages import LANGUAGES, messages
from tilewise.teaching.page.export import SCRIPTS, STYLES, resource
from tilewise.teaching.trace.findings_text import KERNEL_KINDS


def test_every_message_that_the_script_names_is_there():
    script = "\n".join(resource(f"script/{name}.js") for name in SCRIPTS)
    script += "\n".join(resource(name) for name in ("picture.py", "replay.py"))
    plain = set(re.findall(r"(?:say|card)\([^'\"`]*?['\"]([\w.-]+)['\"]", script))
    assert len(plain) > 100
    assert {key for key in plain if "." in key and not key.endswith(".")} <= set(messages("en"))


def test_every_kind_of_finding_and_every_drop_has_its_messages():
    known = messages("en")
    for kind in KERNEL_KINDS:
        assert any(key == f"finding.{kind}" or key.startswith(f"finding.{kind}.") for key in known), kind
    for drop in ("check-M", "check-N", "check-P", "barrier-1", "barrier-2", "check.line", "barrier.line"):
        assert f"drop.{drop}" in known
        assert f"why.{drop}" in known


@pytest.mark.parametrize(
    ("language", "terms"),
    [
        ("vi", ["ô", "pha", "luồng", "khối", "rào cản", "bộ nhớ chia sẻ", "thanh ghi"]),
        ("pt", ["tile", "fase", "thread", "bloco", "barreira", "memória compartilhada", "registrador"]),
    ],
)
def test_the_terms_are_those_of_the_lecture_notes(language, terms):
    text = " ".join(messages(language).values()).lower()
    for term in terms:
        assert term in text


def test_every_file_of_the_page_is_put_into_it():
    folder = files("tilewise.teaching.page")
    assert {f.name for f in folder.joinpath("script").iterdir()} == {f"{name}.js" for name in SCRIPTS}
    assert {f.name for f in folder.iterdir() if f.name.endswith(".css")} == set(STYLES)
    assert {f.name for f in files("tilewise").joinpath("i18n", "languages").iterdir()} == {
        f"{c}.json" for c in LANGUAGES
    }
