"""Whole steps of every model: all competitors learn the same."""

from __future__ import annotations

import json
import math

import pytest

from tilewise.bench import model, models, report
from tilewise.cli.main import run
from tilewise.errors import UsageError
from tilewise.torch import choice


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", models.KINDS)
def test_all_competitors_learn_the_same_with_our_products(kind, monkeypatch):
    real = choice.Account._decide

    def all_win(self, *arguments):
        made = real(self, *arguments)
        made.routed = True
        return made

    monkeypatch.setattr(choice.Account, "_decide", all_win)
    monkeypatch.setattr(choice.ACCOUNTS["plan"], "_choices", {})
    monkeypatch.setattr(choice.ACCOUNTS["plan"], "met", {})
    rows = model.train(kind, "odd", "cpu", compiled=False, steps=3)
    assert [row["kernel"] for row in rows] == ["torch", "tilewise patch", "tilewise accelerate"]
    assert choice.ACCOUNTS["plan"].routed
    for row in rows:
        assert row["loss"] == pytest.approx(row["loss_of_torch"], rel=1e-4)
        assert row["seconds"] > 0
    if kind != "mlp":
        sizes = models.sizes_of(kind, "odd", "cpu")
        assert rows[0]["loss"] < 1.1 * math.log(sizes.vocabulary), "about a guess over all classes, or better"
    ((_, head, cells),) = report.tables({"suite": "model", "rows": rows})
    assert all(len(row) == len(head) for row in cells)


def test_the_command_prints_a_document(capsys):
    assert run(["bench", "model", "--model", "mlp", "--odd", "--quick", "--device", "cpu", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["case"] for row in rows} == {"mlp 509 · 66 · 31"}


def test_an_unknown_model_is_named():
    with pytest.raises(UsageError, match="'gpt5' is not known; known are gpt2"):
        model.train("gpt5", "odd", "cpu", compiled=False)
