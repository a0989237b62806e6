"""What the array API standard requires of matmul, as cases; and its own test suite where a checkout of it exists.

The suite (github.com/data-apis/array-api-tests, with its submodule) is not on the package index, so its path is given:
`ARRAY_API_TESTS=/path/to/array-api-tests pytest tests/test_array_api.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewise as tw

HERE = Path(__file__).parent / "support"
SUITE = os.environ.get("ARRAY_API_TESTS", "")
REAL = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")

shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


def fits(x1: tuple[int, ...], x2: tuple[int, ...]) -> bool:
    """What the standard lets through: no 0-d array, columns of x1 meeting rows of x2, stacks that broadcast."""
    if not x1 or not x2:
        return False
    if x1[-1] != (x2[0] if len(x2) == 1 else x2[-2]):
        return False
    try:
        np.broadcast_shapes(x1[:-2], x2[:-2])
    except ValueError:
        return False
    return True


@given(shapes, shapes, st.sampled_from(REAL), st.sampled_from(REAL))
def test_shapes_dtypes_and_stacks_are_the_standards(first, second, one, other):
    rng = np.random.default_rng(len(first) + 7 * len(second))
    x1, x2 = (rng.integers(0, 5, shape).astype(dtype) for shape, dtype in ((first, one), (second, other)))
    if not fits(first, second):
        with pytest.raises(ValueError, match=r"M|N"):
            tw.matmul(x1, x2)
        return
    made = np.asarray(tw.matmul(x1, x2))
    assert made.dtype == np.result_type(x1, x2)
    stack = np.broadcast_shapes(first[:-2], second[:-2])
    rows, cols = first[-2:-1], second[-1:] if len(second) > 1 else ()
    assert made.shape == (*stack, *rows, *cols)
    wide = [np.broadcast_to(x, (*stack, *x.shape[-2:])) if x.ndim > 1 else x for x in (x1, x2)]
    for member in np.ndindex(stack):
        a, b = (x[member] if x.ndim > 1 else x for x in wide)
        np.testing.assert_array_equal(made[member], np.asarray(tw.matmul(a, b)))


@pytest.mark.skipif(not SUITE, reason="ARRAY_API_TESTS names no checkout of array-api-tests")
def test_the_suites_own_cases_pass():
    chosen = ["array_api_tests/test_linalg.py", "array_api_tests/test_signatures.py", "-k", "matmul"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, "--max-examples", "500"]
    paths = os.pathsep.join([str(HERE), str(Path(tw.__file__).parents[1])])
    settings = {"ARRAY_API_TESTS_MODULE": "numpy_with_ours", "ARRAY_API_TESTS_VERSION": "2024.12", "PYTHONPATH": paths}
    done = subprocess.run(
        command, cwd=SUITE, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
