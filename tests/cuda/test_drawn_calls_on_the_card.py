"""Stacks, groups and single products that nobody chose, through the public calls, among poison: a part of what
`drawn_calls.py` draws on request."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cuda, pytest.mark.slow]

sys.path.insert(0, str(Path(__file__).parent))


@pytest.mark.parametrize("what", ["stacks,groups", "products"])
def test_drawn_calls_are_right(what):
    import drawn_calls

    found = drawn_calls.main(
        ["--what", what, "--count", "400", "--processes", "4", "--seconds", "40", "--variety", "few"]
    )
    assert found["wrong"] == [] == found["ended"], f"seed {found['seed']}"
    assert sum(found["done"].values()) > 100
