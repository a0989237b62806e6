"""Findings, tables and verdicts in every language: no sentence is missing, none is in another language."""

from __future__ import annotations

import pytest

import tilewise as tw
from tilewise.cli.main import run
from tilewise.emulator.machine.findings import Finding, Touch, Wrong
from tilewise.i18n.messages import LANGUAGES
from tilewise.teaching.trace.findings_text import KERNEL_KINDS, sentence_of, wrong_cells_of

UNCHECKED = "tests/emulator/kernels/tiled_unchecked.cu"
ENGLISH = (" of ", "barrier at", " loads", "seen at", "Race", "so far")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_of_finding_has_its_sentence(language):
    touch = Touch((0, 1), (1, 0), 2, requested=(3, 4), reached=(1, 2))
    for kind in KERNEL_KINDS:
        for access in ("load", "store"):
            for hazard in ("RAW", "WAR", "WAW"):
                for scope in ("within a block", "between blocks"):
                    f = Finding(kind, "", None, "M", access, hazard=hazard, scope=scope, count=3)
                    f.touches = [touch]
                    assert "{" not in sentence_of(f, language)
                    f.touches = []
                    assert sentence_of(f, language)
    for order in ("together", "first to last", "last to first"):
        f.wrong = Wrong(2, (0, 1), 3.0, 4.5, order)
        assert "4.5" in wrong_cells_of(f, language)


def test_a_report_and_a_table_are_in_one_language(capsys):
    broken = tw.trace("tiled", shape=(3, 3, 3), tile=2, blocks="all")
    assert broken.run.faults
    for language in set(LANGUAGES) - {"en"}:
        text = broken.text(100, None, language)
        assert [phrase for phrase in ENGLISH if phrase in text] == []
    assert "Every shared value" in tw.trace("tiled_edges", shape=(4, 4, 4), tile=2).text()


def test_check_and_trace_take_the_requested_language_or_the_locale_s(capsys, monkeypatch):
    from pathlib import Path

    import tilewise

    kernel = Path(tilewise.__file__).parents[2] / UNCHECKED
    assert run(["check", str(kernel), "--shape", "3x3x3", "--lang", "pt"]) == 1
    assert "Cargas fora de M" in capsys.readouterr().out
    assert run(["check", str(kernel), "--lang", "xx"]) == 2
    assert "language 'xx' is not known" in capsys.readouterr().err
    monkeypatch.setenv("LC_ALL", "vi_VN.UTF-8")
    assert run(["trace", "--shape", "3x3x3"]) == 0
    assert "Khối (x 0, y 0)" in capsys.readouterr().out
