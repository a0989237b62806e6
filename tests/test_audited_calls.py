"""Nothing is silent: calls drawn at random give what their keywords mean, or are refused."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from audited_calls import LIBRARIES, audit
from audited_functions import audit as audit_function
from seeds import next_seed

COUNT = {"numpy": 40, "lists": 20, "torch": 60, "torch gradient": 30, "jax": 40, "jax jit": 25}


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "library",
    [
        "numpy", "lists",
        *(
            pytest.param(x, marks=[pytest.mark.interop, pytest.mark.skipif(not find_spec(x.split()[0]), reason=x)])
            for x in LIBRARIES if x not in ("numpy", "lists")
        ),
    ],
)  # fmt: skip
def test_random_keywords_and_dtypes(library):
    seed = next_seed() % 2**40
    print("seed", seed)
    made = 0
    for number in range(COUNT[library]):
        kind, wrong = audit(seed + number, (library,))
        assert wrong is None, f"seed {seed + number}: {wrong}"
        made += kind == "made"
    assert made > COUNT[library] // 5


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "library",
    [
        "numpy", "lists",
        *(
            pytest.param(x, marks=[pytest.mark.interop, pytest.mark.skipif(not find_spec(x), reason=x)])
            for x in ("torch", "jax")
        ),
    ],
)  # fmt: skip
def test_random_products_of_many(library):
    seed = next_seed() % 2**40
    print("seed", seed)
    kinds = []
    for number in range(30):
        kind, wrong = audit_function(seed + number, (library,))
        assert wrong is None, f"seed {seed + number}: {wrong}"
        kinds.append(kind)
    assert kinds.count("made") > 10
