"""`tilewise plan` of stacks and of groups of rows: `--members` and `--groups`."""

from __future__ import annotations

import json

import pytest

from tilewise.cli.main import run


def test_a_stack_and_groups_are_planned(capsys):
    shape = ["plan", "--shape", "4096x2048x1408", "--dtype", "bfloat16", "--device", "h200", "--json"]
    assert run([*shape, "--groups", "64"]) == 0
    grouped = json.loads(capsys.readouterr().out)
    assert grouped["problem"]["groups"] == {"count": 64, "along": "rows"}
    assert grouped["least_bytes"] > 64 * 2048 * 1408 * 2
    assert run(["plan", "--shape", "333x555x77", "--dtype", "bfloat16", "--device", "h200", "--members", "64"]) == 0
    assert "64·333x555x77" in capsys.readouterr().out


@pytest.mark.parametrize(("device", "operands"), [("h200", "float8_e5m2"), ("cpu", "float32")])
def test_8_bit_floats_are_float32_on_a_cpu_alone(capsys, device, operands):
    assert run(["plan", "--shape", "512x512x512", "--dtype", "float8_e5m2", "--device", device]) == 0
    assert f"512x512x512 {operands} plus_times -> float32" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--groups", "4", "--device", "cpu"], "--groups plans for a card"),
        (["--groups", "4", "--members", "4", "--device", "h200"], "exclude each other"),
        (["--members", "0", "--device", "h200"], "--members 0 must be 1 or more"),
        (["--workers", "0"], "--workers 0 must be 1 or more"),
        (["--memory", ""], "--memory='' is no amount of memory"),
    ],
)
def test_what_cannot_be_is_refused(capsys, options, sentence):
    assert run(["plan", "--shape", "8x8x8", *options]) == 2
    assert sentence in capsys.readouterr().err
