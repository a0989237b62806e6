"""Seeds of random cases: fixed, so that runs repeat; `--seed N` draws others, `--seed clock` new ones each time."""

from __future__ import annotations

import hashlib
import os
from collections import Counter

_drawn: Counter[str] = Counter()


def next_seed() -> int:
    """A number of 63 bits for the test that runs now: another one for each test, and at each call within it."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    _drawn[test] += 1
    text = f"{os.environ.get('TILEWISE_TEST_SEED', '1')} {test} {_drawn[test]}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def sample_size(count: int) -> int:
    """How many random cases a test draws: `count` with `--seed`, as in campaigns, a quarter in `make test`."""
    return count if os.environ.get("TILEWISE_TEST_SEED", "1") != "1" else max(1, count // 4)
