"""The plans that `tests/support/without_family.py` compares."""

import pytest

from tilewise.kernels.choosing import _weight
from tilewise.planning.choose import make_plan
from without_family import all_drawn, machine_of, numbered, plans, selected


@pytest.mark.parametrize("card", ["h200", "t4"])
def test_without_the_chosen_family_nothing_is_expected_sooner(card):
    machine, compared = machine_of(card), 0
    for one in all_drawn(machine, "3", range(40)):
        problem = numbered("3", one.number)
        chosen, next_one, any_one = plans(problem, machine, (one.family,))
        assert chosen.kernel == make_plan(problem, machine).kernel
        for other in (next_one, any_one):
            assert other is None or other.family != one.family
        if next_one:
            assert _weight(next_one) >= _weight(chosen)
            assert _weight(any_one) <= _weight(next_one)
            compared += 1
    assert compared > 20


def test_a_third_are_those_expected_to_lose_most():
    every = all_drawn(machine_of("h200"), "3", range(60))
    drawn, far = selected(every, ("direct",), 6)
    assert len(drawn) == 4
    rest = [x.loss for x in every if x.family == "direct" and x not in drawn]
    assert [x.loss for x in far] == sorted(rest, reverse=True)[:2]
