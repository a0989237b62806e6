"""The one formula of lower bounds: what its columns mean, and that limits of capabilities are in its rows."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tilewise.core.problem import problem_of_shape
from tilewise.kernels.bounds import Bound, bound, given_of, rows_of
from tilewise.kernels.capabilities import Capabilities

PROBLEM = problem_of_shape(40, 30, 20)
STACK = replace(PROBLEM, stack=(3,))
ALL = (Capabilities(),)


def least(one, problem=PROBLEM, where=ALL, scale=1.0):
    return min(bound(row, given_of(problem)) for row in rows_of([one], where, scale))


@pytest.mark.parametrize(
    ("one", "seconds"),
    [
        (Bound(2.0, share=1.0), 2.0),
        (Bound(2.0, step=0.5, block=7.0, share=1.0), 2.0 + 7.0 + 0.5 * 40 * 30 * 20),
        (Bound(inner=1.0, share=1.0), 39 * 30 * 19),
        (Bound(byte=1.0, share=1.0), 4 * (40 * 30 + 30 * 20 + 40 * 20)),
        (Bound(1.0, operand=1.0, share=1.0), 1.0 + 40 * 30 + 30 * 20),
        (Bound(lines=((2.0, 1.0), (0.0, 50.0)), share=1.0), 50.0),
        (Bound(lines=((1.0, 1.0), (0.0, 50.0)), share=0.5), 15.5),
    ],
)
def test_the_longest_of_its_parts_counts_behind_the_start(one, seconds):
    assert least(one) == pytest.approx(seconds)


def test_members_that_come_one_after_the_other_each_start():
    one = Bound(2.0, lines=((1.0, 0.0),), each=True, share=1.0)
    assert least(one, STACK) == 3 * (2.0 + 30.0)
    assert least(one._replace(each=False), STACK) == 2.0 + 30.0


@pytest.mark.parametrize(
    ("can", "problem", "taken"),
    [
        (Capabilities(least_k=31), PROBLEM, False),
        (Capabilities(most_k=30), PROBLEM, True),
        (Capabilities(most_k=29), PROBLEM, False),
        (Capabilities(few=19), PROBLEM, False),
        (Capabilities(steps=23_999), PROBLEM, False),
        (Capabilities(alone=False), PROBLEM, False),
        (Capabilities(alone=False), STACK, True),
        (Capabilities(stacks=False), STACK, False),
    ],
)
def test_what_is_not_taken_has_no_bound(can, problem, taken):
    assert (least(Bound(1.0), problem, (can,)) < math.inf) == taken
    assert least(Bound(1.0), problem, (can, Capabilities())) < math.inf, "any of several capabilities will do"


def test_a_bound_may_hold_for_some_shapes_alone():
    narrow, small = Bound(1.0, few=19), Bound(1.0, cells=799)
    assert least(narrow) == least(small) == math.inf
    assert least(narrow._replace(few=20)) == least(small._replace(cells=800)) == pytest.approx(0.999)
    assert least(Bound(4.0, share=1.0), scale=0.25) == 1.0
