"""Which families compete, and on what terms: as random products showed, each timed in every family."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Layout, problem_of_shape
from tilewise.core.tuning import table_for
from tilewise.kernels.choosing import competing
from tilewise.kernels.registry import family_of
from tilewise.kernels.simt_gemm.strips import Direct, every_config
from tilewise.planning.choose import make_plan

H200 = replace(KNOWN_CARDS["h200"], arch="sm_90a", tuned=table_for("NVIDIA H200"))
A100 = KNOWN_CARDS["a100"]


def test_float32_alone_goes_by_strips_where_it_is_middling():
    assert make_plan(problem_of_shape(281, 497, 482, "float32"), H200).kernel == "buffered"  # 10 µs; 14.3 by sliced_k


@pytest.mark.parametrize(("m", "n"), [(6, 2795), (2795, 6)])
def test_more_than_four_rows_of_halves_go_to_tensor_cores(m, n):
    plan = make_plan(problem_of_shape(m, 11821, n, "float16"), H200)
    assert not plan.kernel.startswith("few")  # few_rows took four times as long as tensor cores


def test_few_halves_in_stacks_of_a_short_k_go_by_rows_only_where_they_were_timed():
    """A block's threads are idle there: up to 40 times the time that the model of few rows expects."""
    stack = replace(problem_of_shape(4, 51, 4, "float16"), stack=(2604,))
    assert "gemv" in {family.name for family in competing(stack, H200, None)}
    assert "gemv" not in {family.name for family in competing(stack, A100, None)}
    assert "gemv" in {family.name for family in competing(replace(stack, k=512), A100, None)}


@pytest.mark.parametrize(
    ("m", "k", "n", "dtype", "measured"),
    [
        (600, 30, 300, "float32", 3.61e-6),  # 2.9 blocks of a multiprocessor
        (700, 30, 400, "float32", 6.20e-6),  # 4.3: their next launch begins late
        (1202, 36, 249, "float32", 6.61e-6),
        (1369, 18, 223, "float16", 5.33e-6),
        (800, 40, 300, "bfloat16", 6.41e-6),
        (1600, 40, 400, "float32", 7.98e-6),  # 9.8: more than there is room for
    ],
)
def test_small_tiles_are_expected_to_take_what_they_took(m, k, n, dtype, measured):
    problem = problem_of_shape(m, k, n, dtype)
    config = every_config(problem.algebra.partial.itemsize, (1,))[0]
    assert Direct().seconds(config, problem, H200) == pytest.approx(measured, rel=0.14)


@pytest.mark.parametrize(
    ("m", "k", "n", "measured"),
    [(8880, 24, 4520, 84e-6), (6194, 24, 9292, 141e-6), (11987, 21, 7866, 200e-6), (11043, 24, 9968, 236e-6)],
)
def test_plain_stores_a_large_product_at_the_rate_that_was_measured(m, k, n, measured):
    problem = problem_of_shape(m, k, n, "float32", precision="tf32")
    assert make_plan(problem, H200, "plain").predicted == pytest.approx(measured, rel=0.2)


@pytest.mark.parametrize(
    ("m", "k", "n", "dtype", "lying"),
    [
        (5256, 17, 13083, "float16", "NN"),  # 53 µs; 95 by cuBLAS
        (6065, 28, 4860, "bfloat16", "NT"),  # 21; 41, 36
        (97, 30, 2128, "bfloat16", "NT"),  # 2.6; 4.4 by direct_half, 2.7
        (6194, 24, 9292, "tf32", "TT"),  # 69; 141 by plain, 101
    ],
)
def test_a_short_k_goes_by_whole_sectors_of_p(m, k, n, dtype, lying):
    kind = {"dtype": "float32", "precision": "tf32"} if dtype == "tf32" else {"dtype": dtype}
    problem = problem_of_shape(m, k, n, **kind)
    of_m, of_n = (
        Layout(1, m) if lying[0] == "T" else problem.layout_m,
        Layout(1, k) if lying[1] == "T" else problem.layout_n,
    )
    assert make_plan(replace(problem, layout_m=of_m, layout_n=of_n), H200).kernel == "short_k"


def test_a_large_product_of_halves_is_chosen_without_the_offer_of_plain_cores(monkeypatch):
    monkeypatch.setattr(family_of("plain"), "offer", None)
    assert make_plan(problem_of_shape(4096, 4096, 4096, "bfloat16"), H200).kernel == "wgmma_half"
