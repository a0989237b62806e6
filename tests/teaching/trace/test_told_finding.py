"""Findings, tables and verdicts in every language: no sentence is missing, none is in another language."""

from __future__ import annotations

import pytest

import tilewise as tw
from tilewise.cli.main import run
from tilewise.emulator.machine.findings import Finding, Kind, Touch, Wrong
from tilewise.i18n.messages import LANGUAGES, chosen_language
from tilewise.teaching.trace.told_finding import told, told_wrong

UNCHECKED = "tests/emulator/kernels/tiled_unchecked.cu"
ENGLISH = (" blocks of ", "barrier at", " loads", "seen at", "Race", "so far")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_of_finding_has_its_sentence(language):
    touch = Touch((1, 0), (0, 1), 2, asked=(3, 4), reached=(1, 2))
    for kind in Kind:
        for access in ("load", "store"):
            for hazard in ("RAW", "WAR", "WAW"):
                for scope in ("within a block", "between blocks"):
                    f = Finding(kind, "", None, "M", access, hazard=hazard, scope=scope, count=3)
                    f.touches = [touch]
                    assert "{" not in told(f, language)
                    f.touches = []
                    assert told(f, language)
    for order in ("together", "first to last", "last to first"):
        f.wrong = Wrong(2, (0, 1), 3.0, 4.5, order)
        assert "4.5" in told_wrong(f, language)


def test_a_report_and_a_table_speak_one_language(capsys):
    broken = tw.trace("tiled", shape=(3, 3, 3), tile=2, blocks="all")
    assert broken.run.faults
    for language in set(LANGUAGES) - {"en"}:
        text = broken.text(100, None, language)
        assert [word for word in ENGLISH if word in text] == []
    assert "Every shared value" in tw.trace("tiled_edges", shape=(4, 4, 4), tile=2).text()


def test_check_and_trace_take_the_language_asked_for_or_the_locale_s(capsys, monkeypatch):
    from pathlib import Path

    import tilewise

    kernel = Path(tilewise.__file__).parents[2] / UNCHECKED
    assert run(["check", str(kernel), "--shape", "3x3x3", "--lang", "pt"]) == 1
    assert "Cargas fora de M" in capsys.readouterr().out
    assert run(["check", str(kernel), "--lang", "xx"]) == 2
    assert "language 'xx' is not known" in capsys.readouterr().err
    monkeypatch.setenv("LC_ALL", "vi_VN.UTF-8")
    assert run(["trace", "--shape", "3x3x3"]) == 0
    assert "Khối (0, 0)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"LANG": "pt_BR.UTF-8"}, "pt"),
        ({"LC_ALL": "C.UTF-8", "LANG": "vi_VN"}, "en"),
        ({"LANG": "de_DE"}, "en"),
        ({}, "en"),
    ],
)
def test_the_locale_chooses(monkeypatch, values, code):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    assert chosen_language(None) == code
    assert chosen_language("vi") == "vi"
