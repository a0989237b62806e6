"""Where kernels compete: borders that were measured."""

from dataclasses import replace

import pytest

from tilewise.core.problem import Groups, Layout, problem_of_shape
from tilewise.kernels.choosing import plans_in_turn
from without_family import machine_of


@pytest.mark.parametrize("k", [36, 571, 2047])
def test_a_short_k_of_odd_groups_leaves_shifted_half_to_others(k):
    p = problem_of_shape(8192, k, 1409, "bfloat16")
    p = replace(p, layout_n=Layout(1, k + 1 - k % 2, (1409 * (k + 1 - k % 2),)), groups=Groups(64))
    kernels = {plan.kernel for plan in plans_in_turn(p, machine_of("h200"))}
    assert ("shifted_half" in kernels) == (k > 1024)
