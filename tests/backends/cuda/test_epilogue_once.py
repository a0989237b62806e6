"""A product that is made in several launches applies alpha, bias and activation in the last of them, and only there."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from seeds import next_seed
from tilewise.algebra.dtypes import DTYPES
from tilewise.core.epilogue import Epilogue
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import problem_of_shape
from tilewise.errors import TilewiseError
from tilewise.kernels.keys import text_of
from tilewise.kernels.recipes import recipe_of
from tilewise.planning.choose import make_plan

H200 = KNOWN_CARDS["h200"]
KERNELS = [None, "mma_sync", "wgmma_half", "k_major", "plain", "bf16x6", "direct", "sliced_k", "direct_half"]


def applied(step):
    """Whether a launch's text does more than store sums."""
    return any(
        re.search(rf"#define {name} [1-9]", text_of(getattr(step, "source", "")))
        for name in ("ACTIVATION", "ALPHA", "BIAS")
    )


@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16"])
def test_once_and_behind_every_sum(name):
    seed = next_seed() % 10**9
    print("seed", seed)
    rng, summed = np.random.default_rng(seed), 0
    for _ in range(12):
        m, n, k = (int(2 ** rng.uniform(0, top)) for top in (9, 9, 14))
        kernel = KERNELS[rng.integers(len(KERNELS))]
        problem = replace(
            problem_of_shape(m, k, n, name),
            epilogue=Epilogue(0.5, DTYPES[name], "gelu"),
            accumulate=bool(rng.integers(2)),
            precision="tf32" if name == "float32" and rng.integers(2) else "high",
        )
        try:
            plan = make_plan(problem, H200, kernel=kernel)
        except TilewiseError:
            continue  # this kernel does not take it
        steps = list(recipe_of(plan).steps)
        if any(step.name == "add_parts" for step in steps if hasattr(step, "name")):
            summed += 1
            others = [step.name for step in steps if hasattr(step, "name") and step.name != "add_parts"]
            wrong = [step.name for step in steps if getattr(step, "name", "") in others and applied(step)]
            assert not wrong, f"seed {seed}: {wrong} of {plan} apply the epilogue to parts of a sum"


@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("accumulate", [False, True])
def test_sums_of_parts_are_stored_bare(name, accumulate):
    problem = replace(
        problem_of_shape(64, 4000, 64, name), epilogue=Epilogue(0.5, DTYPES[name], "gelu"), accumulate=accumulate,
        **({"precision": "tf32"} if name == "float32" else {}),
    )  # fmt: skip
    steps = recipe_of(make_plan(problem, H200, kernel="mma_sync")).steps
    assert [(step.name, applied(step)) for step in steps] == [("mma_sync", False), ("add_parts", True)]
