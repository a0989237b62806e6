"""`tilewise plan` of products larger than one memory, or than one machine."""

from __future__ import annotations

import json

from tilewise.cli.main import run


def planned(capsys, *arguments):
    assert run(["plan", *arguments]) == 0
    return capsys.readouterr().out


def test_a_card_that_is_not_here(capsys):
    out = planned(
        capsys,
        "--shape",
        "150000x150000x150000",
        "--dtype",
        "bfloat16",
        "--device",
        "h200",
        "--memory",
        "9GB",
        "--json",
    )
    schedule = json.loads(out)["schedule"]
    assert schedule["needs"] <= 9 * 10**9
    assert schedule["floor_seconds"] <= schedule["predicted_seconds"] < 2.5 * schedule["floor_seconds"]
    assert "phases a tile" in planned(capsys, "--shape", "9000x9000x9000", "--device", "h200", "--memory", "100MB")


def test_many_workers(capsys):
    out = planned(capsys, "--shape", "1000000x1000000x1000000", "--device", "h200", "--workers", "1024")
    assert "2-D" in out
    assert "2.5-D" in out
    spreads = json.loads(
        planned(capsys, "--shape", "1000x1000x1000", "--device", "h200", "--workers", "8", "--memory", "1GB", "--json")
    )
    assert spreads["spreads"][spreads["best"]]["memory_a_worker"] <= 10**9


def test_a_budget_too_small(capsys):
    assert run(["plan", "--shape", "9000x9000x9000", "--device", "h200", "--memory", "1kB"]) == 2
    assert "the least that works is" in capsys.readouterr().err
