"""A way to multiply on the CPU is a folder and a line in the registry: what one takes, and who is asked first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewise as tw
from tilewise.engines.cpu import registry
from tilewise.engines.cpu.family import Family
from tilewise.engines.cpu.registry import FAMILIES, TIERS
from tilewise.errors import UsageError
from tilewise.planning import _plan


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Family:
    """`tiny` under another name, for squares of 5 only, entered as its line in the registry would."""
    family = replace(
        FAMILIES["tiny"],
        name="toy",
        idea="squares of five",
        takes=lambda problem, view, tile: view.m == view.k == view.n == 5,
        suits=lambda problem, view, tile: "five is its number",
    )
    monkeypatch.setattr(registry, "TIERS", ((family,), *TIERS))
    monkeypatch.setitem(FAMILIES, "toy", family)
    _plan.cache_clear()
    yield family
    _plan.cache_clear()


def test_a_new_family_is_planned_printed_and_run(toy: Family) -> None:
    M = np.random.default_rng(0).random((5, 5))
    plan = tw.plan(M, M)
    assert (plan.kernel, plan.why) == ("toy", "five is its number")
    assert "toy: squares of five" in str(plan)
    np.testing.assert_allclose(tw.matmul(M, M, kernel="toy"), M @ M)
    with pytest.raises(UsageError, match=r"kernel='toy' does not fit 6x6x6 float64: 'tiny' would run"):
        tw.plan(np.ones((6, 6)), np.ones((6, 6)), kernel="toy")


def test_any_kernel_that_takes_a_product_can_be_asked_for() -> None:
    rng = np.random.default_rng(1)
    M, N = rng.integers(-9, 9, (14, 40)).astype(np.float64), rng.integers(-9, 9, (40, 3)).astype(np.float64)
    for kernel in ("tiny", "dots", "little", "few_rows", "few_columns", "packed_n", "packed"):
        assert tw.plan(M, N, kernel=kernel).kernel == kernel
        np.testing.assert_array_equal(tw.matmul(M, N, kernel=kernel), M @ N)
    with pytest.raises(UsageError, match="kernel='bits' does not fit 14x40x3 float64: 'tiny' would run"):
        tw.plan(M, N, kernel="bits")
