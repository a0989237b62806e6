"""Three languages, each complete: the same keys and placeholders, and all that the page asks for."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from tilewise.emulator.machine.findings import Kind
from tilewise.errors import UsageError
from tilewise.i18n.messages import LANGUAGES, gaps, say, words
from tilewise.teaching.page.export import SCRIPTS, STYLES, resource


def test_no_language_lacks_a_sentence_or_a_placeholder():
    assert gaps() == []


def test_a_missing_sentence_is_named(monkeypatch):
    less = {key: text for key, text in words("vi").items() if key != "mine"}
    monkeypatch.setattr("tilewise.i18n.messages.words", lambda language: less if language == "vi" else words(language))
    assert gaps() == ["vi: mine is missing"]
    with pytest.raises(UsageError, match="'vi' has no sentence for 'mine'"):
        say("vi", "mine")


def test_other_placeholders_are_named(monkeypatch):
    odd = {**words("pt"), "mine": "Thread {linha}"}
    monkeypatch.setattr("tilewise.i18n.messages.words", lambda language: odd if language == "pt" else words(language))
    assert gaps() == ["pt: mine has other placeholders than en"]


def test_an_unknown_language_is_refused_in_one_sentence():
    with pytest.raises(UsageError, match="language 'xx' is not known; there are en"):
        words("xx")


def test_every_sentence_that_the_script_says_is_there_and_every_sentence_is_said():
    script = "\n".join(resource(f"script/{name}") for name in SCRIPTS)
    script += "\n".join(resource(name) for name in ("picture.py", "replay.py"))
    plain = set(re.findall(r"(?:say|card)\([^'\"`]*?['\"]([\w.-]+)['\"]", script))
    plain |= set(re.findall(r"'([a-z]+(?:\.[\w-]+)+)'", script)) & set(words("en"))
    known = set(words("en"))
    assert {key for key in plain if "." in key and not key.endswith(".")} - known == {"card.matrices"} - known
    built = [
        *(f"finding.{kind}" for kind in Kind), "legend.", "kinds.", "stored.", "did.", "thread.", "counters.", "keys.",
        "drop.", "why.", "theme.", "gate.", "wrong.", "barrier.", "use.", "direct.",
        "lens.", "traffic.", "warps.", "roofline.", "alone.", "count.", "grade.", "learn.", "kind.", "table.",
        "findings.shapes", "check.", "verdict.", "run.", "said.",
    ]  # fmt: skip
    unused = {k for k in known if k not in plain and not k.startswith(tuple(built)) and f"'{k}'" not in script}
    assert unused - {"mine", "legend", "card.matrices"} == set()


def test_every_kind_of_finding_and_every_drop_has_its_words():
    known = words("en")
    for kind in Kind:
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
    text = " ".join(words(language).values()).lower()
    for term in terms:
        assert term in text


def test_every_file_of_the_page_is_put_into_it():
    folder = files("tilewise.teaching.page")
    assert {f.name for f in folder.joinpath("script").iterdir()} == set(SCRIPTS)
    assert {f.name for f in folder.iterdir() if f.name.endswith(".css")} == set(STYLES)
    assert {f.name for f in files("tilewise").joinpath("i18n", "languages").iterdir()} == {
        f"{c}.json" for c in LANGUAGES
    }
