"""Nothing is silent: calls drawn at random give what their keywords mean, or are refused."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from audited_calls import LIBRARIES, ROUTES, audit
from audited_functions import FUNCTIONS
from audited_functions import audit as audit_function
from seeds import next_seed, sample_size

COUNT = {"numpy": 40, "lists": 20, "torch": 60, "torch gradient": 30, "jax": 40, "jax jit": 25}
COUNT |= dict.fromkeys(ROUTES, 20)
OWN = ("numpy", "lists", *ROUTES)  # what comes with the packages of `make test`


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "library",
    [
        *OWN,
        *(
            pytest.param(x, marks=[pytest.mark.interop, pytest.mark.skipif(not find_spec(x.split()[0]), reason=x)])
            for x in LIBRARIES if x not in OWN
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
    assert made > COUNT[library] // (5 if library not in ROUTES else 20)  # sparse and lazy arrays refuse many


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


BATCH = 50  # 40 of them are the 2,000 draws of a function: pytest -m '' --seed clock tests/test_audited_calls.py


@pytest.mark.drawn(2)
@pytest.mark.parametrize("batch", range(40))
@pytest.mark.parametrize("function", range(len(FUNCTIONS)), ids=lambda i: FUNCTIONS[i].__name__)
def test_every_function_gives_what_it_means(function, batch):
    seed = next_seed() % 2**40
    print("seed", seed)
    for number in range(sample_size(BATCH)):
        _, wrong = audit_function(seed + number, OWN, function)
        assert wrong is None, f"seed {seed + number}: {wrong}"


@pytest.mark.drawn(1)
@pytest.mark.parametrize("batch", range(40))
def test_matmul_gives_what_its_keywords_mean(batch):
    seed = next_seed() % 2**40
    print("seed", seed)
    for number in range(sample_size(BATCH)):
        _, wrong = audit(seed + number, OWN)
        assert wrong is None, f"seed {seed + number}: {wrong}"
