"""`simt_support` and `fuzz` for the tests of this folder; programs start in a process that has the imports."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent / part) for part in ("", "parse", "host")]


@pytest.fixture(autouse=True)
def programs_start_warm(warm_starts: None) -> None:
    """Starting Python took half of the time of these tests."""
