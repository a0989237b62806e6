"""Names of dtypes, as people write them."""

import copy
import pickle

import pytest

import tilewise as tw
from tilewise.algebra.dtypes import ABBREVIATIONS, DTYPES, FLOAT8, dtype_given, dtype_named


@pytest.mark.parametrize("short", ABBREVIATIONS)
def test_short_names_are_names(short):
    assert dtype_named(short).name == dtype_given(short).name == ABBREVIATIONS[short]


def test_what_is_no_name_is_refused():
    with pytest.raises(tw.DtypeError, match=r"'bf17' is not known; known are .*bfloat16"):
        dtype_named("bf17")


@pytest.mark.parametrize("dtype", [*DTYPES.values(), *FLOAT8.values()], ids=str)
def test_copies_of_a_dtype_are_the_dtype(dtype):
    """Dtypes are compared and hashed by identity."""
    assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is copy.copy(dtype) is dtype
