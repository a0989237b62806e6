"""Whole steps of a model: all competitors learn the same."""

from __future__ import annotations

import json
import math

import pytest

from tilewise.bench import model, models, report
from tilewise.cli.main import run
from tilewise.torch import choice


def test_all_competitors_learn_the_same_with_our_products(monkeypatch):
    real = choice.Account._decide

    def all_win(self, *arguments):
        made = real(self, *arguments)
        made.routed = True
        return made

    monkeypatch.setattr(choice.Account, "_decide", all_win)
    monkeypatch.setattr(choice.ACCOUNTS["plan"], "_choices", {})
    monkeypatch.setattr(choice.ACCOUNTS["plan"], "cached", {})
    rows = model.train("odd", "cpu", compiled=False, steps=3)
    assert [row["kernel"] for row in rows] == ["torch", "tilewise patch", "tilewise accelerate"]
    assert choice.ACCOUNTS["plan"].routed
    for row in rows:
        assert row["loss"] == pytest.approx(row["loss_of_torch"], rel=1e-4)
        assert row["seconds"] > 0
    assert rows[0]["loss"] < 1.1 * math.log(models.SIZES["cpu", "odd"].vocabulary), "about a guess, or better"
    ((_, head, cells),) = report.tables({"suite": "model", "rows": rows})
    assert all(len(row) == len(head) for row in cells)


def test_the_command_prints_a_document(capsys):
    assert run(["bench", "model", "--odd", "--quick", "--device", "cpu", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["case"] for row in rows} == {"gpt2 509 · 66 · 31"}
