"""Members of a stack that share N are rows of one taller product, wherever their rows go on where the last ones end."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.options import Options
from tilewise.dispatch.bind import bind
from tilewise.planning.choose import make_plan

H200 = KNOWN_CARDS["h200"]


def problem_of(M, N, out=None):
    return bind(M, N, Options(out=out)).problem


@pytest.mark.parametrize(
    ("m", "n", "wanted"),
    [
        ((4, 5, 6, 7), (7, 3), (120, ())),
        ((4, 1, 7), (7, 3), (4, ())),
        ((4, 5, 6, 7), (4, 1, 7, 3), (30, (4,))),
        ((4, 5, 6, 7), (4, 5, 7, 3), (6, (4, 5))),
        ((4, 5, 6, 7), (1, 5, 7, 3), (6, (4, 5))),  # the inner axis has an N each
        ((6, 7), (4, 7, 3), (6, (4,))),
    ],
)
def test_members_that_share_n_are_rows(m, n, wanted):
    p = problem_of(np.ones(m, np.float32), np.ones(n, np.float32)).folded
    assert (p.m, p.stack) == wanted


def test_rows_that_do_not_go_on_stay_apart():
    M, N = np.ones((4, 6, 14), np.float32)[:, ::2], np.ones((14, 3), np.float32)
    assert problem_of(M, N).folded.stack == ()  # every second row, from member to member too
    assert problem_of(np.ones((4, 7, 14), np.float32)[:, :6], N).folded.stack == (4,)
    out = np.ones((4, 7, 3), np.float32)[:, :6]
    assert problem_of(np.ones((4, 6, 14), np.float32), N, out).folded.stack == (4,)


def test_the_plan_reports_it():
    plan = make_plan(problem_of(np.ones((8, 16, 64), np.float32), np.ones((64, 32), np.float32)), H200)
    assert plan.problem.shape == "128x64x32"
    assert plan.notes[-1] == "members share N: 8 of 16 rows are 1 of 128"
    assert tw.plan(np.ones((8, 16, 64)), np.ones((64, 32))).problem.stack == (8,)  # the cpu backend has another
