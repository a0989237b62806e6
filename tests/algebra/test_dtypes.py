"""Names of dtypes, as people write them."""

import pytest

import tilewise as tw
from tilewise.algebra.dtypes import ABBREVIATIONS, dtype_given, dtype_named


@pytest.mark.parametrize("short", ABBREVIATIONS)
def test_short_names_are_names(short):
    assert dtype_named(short).name == dtype_given(short).name == ABBREVIATIONS[short]


def test_what_is_no_name_is_refused():
    with pytest.raises(tw.DtypeError, match=r"'bf17' is not known; known are .*bfloat16"):
        dtype_named("bf17")
