"""Where kernels compete: borders that were measured."""

from dataclasses import replace

import pytest

from tilewise.core.problem import Groups, Layout, problem_of_shape
from tilewise.planning.choose import make_plan
from without_family import machine_of


def stack(members, m, k, n, dtype):
    p = problem_of_shape(m, k, n, dtype)
    lying = (p.layout_m, m * k), (p.layout_n, k * n), (p.layout_p, m * n)
    m, n, out = (Layout(x.row, x.col, (step,)) for x, step in lying)
    return replace(p, stack=(members,), layout_m=m, layout_n=n, layout_p=out)


@pytest.mark.parametrize("case", [(23, 33, 1025, 17), (140, 24, 903, 17), (19, 3, 2048, 48)])
def test_stacks_of_float64_go_to_sliced_k(case):
    assert make_plan(stack(*case, "float64"), machine_of("h200")).kernel == "sliced_k"


@pytest.mark.parametrize("k", [36, 571, 2047])
def test_a_short_k_of_odd_groups_leaves_shifted_half_to_others(k):
    p = problem_of_shape(8192, k, 1409, "bfloat16")
    p = replace(p, layout_n=Layout(1, k + 1 - k % 2, (1409 * (k + 1 - k % 2),)), groups=Groups(64))
    kernels = {plan.kernel for plan in plans(p)}
    assert ("shifted_half" in kernels) == (k > 1024)


def plans(problem):
    from tilewise.kernels.choosing import plans_in_turn

    return plans_in_turn(problem, machine_of("h200"))
