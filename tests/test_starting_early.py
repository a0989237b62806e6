"""Launches that may start while the one before them ends: only those whose kernel begins by waiting for it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Layout, problem_of_shape
from tilewise.core.recipe import Launch
from tilewise.kernels.keys import text_of
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.shared.dependent_launch import early, waits_first
from tilewise.planning.choose import make_plan

H200, A100 = KNOWN_CARDS["h200"], KNOWN_CARDS["a100"]
SHAPES = [
    (1, 300, 500),
    (5, 141, 3265),
    (33, 65, 17),
    (119, 91, 245),
    (700, 900, 500),
    (4097, 4097, 4097),
    (64, 60000, 64),
]
DTYPES = [("float64", "high"), ("float32", "high"), ("float32", "tf32"), ("bfloat16", "high"), ("int8", "high")]


def kernel(first, name="k"):
    return f'// about {name}\nextern "C" __global__ void {name}(int n)\n{{\n{first}    work();\n}}\n'


def test_a_kernel_begins_by_waiting_or_does_not():
    wait, let = "    wait_on_dependent_grids();\n", "    launch_dependent_grids();\n"
    assert waits_first(kernel(wait), "k")
    assert waits_first(kernel(let + wait), "k")
    assert waits_first(kernel("    M += blockIdx.y * step_M;\n" + wait), "k"), "a member of a stack"
    assert waits_first(kernel(wait).replace(")\n{", ") {"), "k"), "however its first brace stands"
    assert not waits_first(kernel(""), "k")
    assert not waits_first(kernel("    if (*verdict != 1u) return;\n" + wait), "k"), "it reads first"
    assert not waits_first(kernel("    if (!blockIdx.x) wait_on_dependent_grids();\n"), "k"), "one block waits"
    assert waits_first(kernel("", "other") + kernel(wait), "k"), "another kernel of the text does not matter"
    step = Launch.of(kernel(wait), "k", (1,), (1,), ())
    assert early([step], "sm_90a")[0].overlap
    assert not early([step], "sm_80")[0].overlap, "older cards cannot"


@pytest.mark.parametrize(("dtype", "precision"), DTYPES)
def test_whatever_overlaps_waits_and_the_first_of_a_product_waits_with_all_its_threads(dtype, precision):
    for shape in SHAPES:
        for machine in (H200, A100):
            recipe = recipe_of(make_plan(problem_of_shape(*shape, dtype, precision=precision), machine))
            launches = [step for step in recipe.steps if isinstance(step, Launch)]
            if machine is A100:
                assert not any(step.overlap for step in launches)
                continue
            for step in launches:
                assert not step.overlap or re.search(r"wait_on_dependent_grids\(\);", text_of(step.source)), step
            first = launches[0]
            if first.name == "pack_words":  # which waits at its end, after the other kernels of its product
                continue
            assert first.overlap, f"{shape} {dtype}: {first} starts when the launch before it has ended"
            if first.name in ("few_rows", "few_dots"):
                assert int.from_bytes(first.arguments[11].data, "little", signed=True) > 0, "it is not in turn"


@pytest.mark.parametrize("kernel", ["bulk_lines", "half_dots"])
def test_kernels_that_wait_before_they_read_start_early(kernel):
    problem = replace(problem_of_shape(3, 2047, 301, "bfloat16"), layout_n=Layout(1, 2047))  # contiguous along k
    recipe = recipe_of(make_plan(problem, H200, kernel))
    assert [step.overlap for step in recipe.steps] == [True]
