"""What a kernel takes is data: one function reads it, and says why not with the caller's own numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Groups, Layout, problem_of_shape
from tilewise.kernels.capabilities import AMPERE, HALVES, HOPPER, Capabilities, Condition, why_not
from tilewise.kernels.registry import FAMILIES

A100, H200 = KNOWN_CARDS["a100"], KNOWN_CARDS["h200"]
PRODUCT = problem_of_shape(40, 30, 20)
STACK = replace(PRODUCT, stack=(3,), layout_m=Layout(30, 1, (1200,)), layout_n=Layout(20, 1, (600,)))


@pytest.mark.parametrize(
    ("can", "problem", "machine", "why"),
    [
        (Capabilities(HOPPER, own_arch=True), PRODUCT, A100, "is made for Hopper (sm_90), and this is sm_80"),
        (Capabilities(AMPERE), PRODUCT, KNOWN_CARDS["t4"], "needs a card from Ampere on (sm_80), and this is sm_75"),
        (Capabilities(dtypes=HALVES), PRODUCT, H200, "multiplies bfloat16 and float16, not float32"),
        (Capabilities(float32_as=("tf32",)), PRODUCT, H200, "multiplies float32 with precision='tf32', not 'high'"),
        (
            Capabilities(tensor_cores=True),
            problem_of_shape(8, 8, 8, "int64"),
            H200,
            "needs tensor cores for int64, and sm_90 has none",
        ),
        (Capabilities(stacks=False), STACK, H200, "makes one product, and this is a stack of 3"),
        (Capabilities(most_k=16), PRODUCT, H200, "is for a k of 0 to 16, and this is 40x30x20"),
        (Capabilities(steps=100), PRODUCT, H200, "is for products of up to 100 steps, and this is 40x30x20"),
        (Capabilities(few=8), PRODUCT, H200, "makes up to 8 rows or columns of P, and this is 40x30x20"),
        (Capabilities(accumulates=False), replace(PRODUCT, accumulate=True), H200, "stores P, and cannot add onto it"),
        (Capabilities(partial_bytes=(1, 2)), PRODUCT, H200, "adds up in 2 bytes at most, and float32 has 4"),
        (Capabilities(), replace(PRODUCT, groups=Groups(2)), H200, "takes no groups along rows: leave kernel= out"),
        (
            Capabilities(contiguous=True),
            replace(PRODUCT, layout_n=Layout(40, 2)),
            H200,
            "takes an N of contiguous rows or columns, and this is 40x30x20",
        ),
        (
            Capabilities(problem=(Condition(lambda p: p.n > 20, "is for more than 20 columns"),)),
            PRODUCT,
            H200,
            "is for more than 20 columns, and this is 40x30x20",
        ),
    ],
)
def test_a_refusal_names_what_would_be_taken_and_what_was_given(can, problem, machine, why):
    assert why_not(can, problem, machine, "toy") == f"kernel='toy' {why}"
    assert why_not(Capabilities(groups=("rows",)), problem, machine, "toy") is None


def test_a_semiring_is_refused_in_one_sentence_by_every_kernel_that_has_plus_times_alone():
    problem = problem_of_shape(8, 8, 8, "float16", "max_plus")
    refusals = [family.refusal(problem, H200) for family in FAMILIES if family.can.plus_times]
    assert len(refusals) > 8
    reasons = [why for why in refusals if why is not None]
    assert len(reasons) == len(refusals)
    assert any(why.endswith("supports only plus_times, not max_plus") for why in reasons)
