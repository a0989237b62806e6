"""The suite over random shapes on a card, as far as it can be tested without one."""

from __future__ import annotations

import json

import pytest

import tilewise as tw
from seeds import next_seed
from tilewise.bench.card_random import MOST_CALLS, SHAPE_SECONDS, repetitions, row
from tilewise.bench.random_shapes import LARGEST, STEPS, RandomProduct, drawn, kinds_given
from tilewise.bench.report import plans, tables
from tilewise.bench.suites import Request, pieces
from tilewise.bench.torch_products import CUBLAS, CUBLASLT, OURS
from tilewise.cli.main import run
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import problem_of_shape
from tilewise.planning.choose import make_plan


def test_the_shapes_of_a_seed_do_not_depend_on_other_dtypes():
    seed = next_seed() % 10**9
    print(f"seed {seed}")
    alone, beside = drawn(30, seed, ("float32",)), drawn(30, seed, ("bfloat16", "float32"))
    assert alone == beside[30:]
    assert alone != drawn(30, seed + 1, ("float32",))
    for shape in beside + drawn(30, seed, ("tf32", "float64")):
        assert STEPS[0] < shape.m * shape.k * shape.n < STEPS[1]
        assert max(shape.m, shape.k, shape.n) <= LARGEST.get(shape.kind, 16384)
        assert min(shape.k, shape.n) >= 8


def test_dtypes_by_either_name():
    assert kinds_given("bf16, float64,tf32") == ("bfloat16", "float64", "tf32")
    with pytest.raises(tw.UsageError, match="'bf17' is not known; known are bf16"):
        kinds_given("bf16,bf17")
    with pytest.raises(tw.UsageError, match="names none"):
        kinds_given(",")


def test_it_needs_a_card():
    with pytest.raises(tw.UsageError, match="bench random measures a card"):
        pieces(Request("random", "cpu"))


def test_a_hundred_shapes_a_dtype_are_measured_in_minutes():
    assert repetitions(5e-6, 7) == (MOST_CALLS, 7)
    for slowest in (1e-5, 1e-4, 1e-3, 5e-3):
        calls, rounds = repetitions(slowest, 7)
        assert rounds >= 3
        assert 3 * rounds * slowest * (calls + 1 + min(calls, 20)) <= max(SHAPE_SECONDS, 3 * 3 * 5 * slowest)
    assert repetitions(0.03, 7) == (2, 3)
    assert repetitions(0.03, 2) == (2, 2)


def document(ours: tuple[float, ...]) -> dict:
    """Rows as a card would leave them: the better of the two peers takes 10 µs by both clocks."""
    rows = []
    for number, seconds in enumerate(ours):
        shape = RandomProduct(100 + number, 200, 300, "NT", "float32", "tf32" if number % 2 else "high")
        plan = make_plan(problem_of_shape(shape.m, shape.k, shape.n), KNOWN_CARDS["h200"])
        clocks = {OURS: seconds, CUBLAS: 10e-6, CUBLASLT: 12e-6}
        rows.append(row(shape, clocks, clocks, 1e-3 * (number + 1), (1e-7, 1e-7), plan))
    card = {"kind": "cuda", "name": "a card", "units": 1, "float32_steps": 1.0, "bandwidth": 1.0}
    return {"version": 1, "suite": "random", "device": card, "date": "today", "command": "", "rows": rows}


def test_the_tables_show_what_was_measured():
    by_dtype, by_kernel, firsts, worst = tables(document((10e-6, 20e-6, 2.5e-6)))
    assert by_dtype[2] == [
        ["float32", "2", "2.00", "1.00", "0 %", "2.00", "1.00", "0 %"],
        ["tf32", "1", "0.50", "0.50", "100 %", "0.50", "0.50", "100 %"],
    ]
    assert sum(int(line[1]) for line in by_kernel[2]) == 3
    assert firsts[2][0] == ["float32", "3 ms", "3 ms", "3 ms", "3 ms", "4 ms"]
    assert [line[0] for line in worst[2]] == ["tf32 101x200x300 NT", "float32 100x200x300 NT", "float32 102x200x300 NT"]


def test_the_lowest_ten_come_with_their_plans():
    shown = plans(document(tuple(1e-6 * (number + 1) for number in range(12))))
    assert len(shown) == 10
    assert shown[0][0].startswith("tf32 111x200x300")
    assert "expected" in shown[0][1]


@pytest.mark.slow  # Matplotlib draws for 2.6 s; test_the_rows_make_a_picture draws too
def test_a_document_is_shown_and_drawn(tmp_path, capsys):
    saved, drawn_to = tmp_path / "random.json", tmp_path / "random.png"
    saved.write_text(json.dumps(document((10e-6, 20e-6, 2.5e-6))))
    assert run(["bench", "--from", str(saved), "--plot", str(drawn_to)]) == 0
    out = capsys.readouterr().out
    assert "the lowest ten, card alone" in out
    assert drawn_to.read_bytes()[:4] == b"\x89PNG"
