"""The suite over other dtypes on a card, as far as it can be tested without one."""

from __future__ import annotations

import pytest

import tilewise as tw
from tilewise.bench import card_dtypes
from tilewise.bench.report import tables
from tilewise.bench.suites import Request, pieces
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import problem_of_shape
from tilewise.planning.choose import make_plan


def test_every_kind_has_cases():
    assert set(card_dtypes.CASES) == set(card_dtypes.KINDS)
    for kind, cases in card_dtypes.CASES.items():
        assert len({case.name for case in cases}) == len(cases), kind


def test_float32_cases_are_the_tensor_cores():
    for case in card_dtypes.FLOAT32_CASES:
        assert make_plan(problem_of_shape(*case.shape), KNOWN_CARDS["h200"]).kernel == "bf16x6"


def test_it_needs_a_card():
    with pytest.raises(tw.UsageError, match="bench dtypes measures a card"):
        pieces(Request("dtypes", "cpu"))


def test_speeds_and_errors_in_one_table():
    row = {"what": "x", "case": "4³", "kernel": "k", "predicted_over_measured": None, "ratio": 2.0}
    rows = [
        {**row, "unit": "TFLOP/s", "ours": 100.0, "vendor": 50.0},
        {**row, "unit": "of ‖P‖", "ours": 1e-7, "vendor": 5e-8},
    ]
    ((_, _, cells),) = tables({"suite": "dtypes", "rows": rows})
    assert cells == [["x, TFLOP/s", "4³", "100.0", "50.0", "2.00"], ["x, of ‖P‖", "4³", "1.0e-07", "5.0e-08", "2.00"]]
