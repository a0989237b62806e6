"""The plans that `tests/support/without_family.py` compares."""

from itertools import islice

import pytest

from tilewise.bench.calibrate import problem_of
from tilewise.kernels.registry import BY_NAME
from tilewise.planning.choose import make_plan
from without_family import Product, altered, expected, machine_of


@pytest.mark.parametrize("card", ["h200", "t4"])
def test_without_the_chosen_family_nothing_is_expected_sooner(card):
    machine, compared = machine_of(card), 0
    for one in islice(expected(machine, "3"), 40):
        chosen = one.chosen()
        assert make_plan(problem_of("3", one.number), machine).family == chosen
        other = one.chosen((chosen,))
        assert other != chosen
        assert other == one.fastest((chosen,))
        if other:
            assert one.loss(other) >= 1
            compared += 1
    assert compared > 15


def test_without_a_configuration_the_next_one_is_no_sooner():
    tall = lambda config, problem: config.tile.rows > config.tile.cols  # noqa: E731
    for chosen, other in islice(altered(BY_NAME["buffered"], tall, machine_of("h200"), "3"), 6):
        assert chosen.family == "buffered"
        assert tall(chosen.config, chosen.problem)
        assert other.family != "buffered" or not tall(other.config, other.problem)
        assert chosen.predicted <= 1.0001 * other.predicted or chosen.passes != other.passes


def test_the_fastest_other_family_is_by_measured_times():
    one = Product(1, "", {"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 4.0, "b": 9.0, "c": 6.0})
    assert (one.chosen(), one.chosen(("a",)), one.fastest(("a",))) == ("a", "b", "c")
    assert (one.loss("b"), one.loss("c"), one.loss(None)) == (2.25, 1.5, 1000.0)
