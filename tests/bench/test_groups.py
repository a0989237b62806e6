"""`bench groups` and `bench stacks`, as far as they can be tested without a card: what they draw, and their table."""

from __future__ import annotations

import random

from seeds import next_seed
from tilewise.bench import groups, stacks
from tilewise.bench.report import tables
from tilewise.bench.suites import batch_row


def test_random_cases_fit_their_limits_and_experts_share_all_rows() -> None:
    seed = next_seed()
    print(f"seed {seed}")
    rng = random.Random(seed)
    for case in (groups.drawn(rng) for _ in range(100)):
        ends = groups.ends_of(case, rng)
        assert ends == sorted(ends)
        assert (len(ends), ends[-1], (case.k, case.n) in groups.SIDES) == (case.experts, case.rows, True)
    drawn = [stacks.drawn(rng) for _ in range(100)]
    assert {case.dtype for case in drawn} == {"bfloat16", "float32"}
    assert max(case.steps for case in drawn) < stacks.MOST_STEPS


def test_known_cases_come_first_and_random_ones_are_summed_up() -> None:
    case, seconds = stacks.KNOWN[0], {"ours": 1e-4, "torch.bmm": 2e-4}
    known = batch_row(case, "known", "simple", seconds, "torch.bmm", 1e-9, 1e-3)
    slow = batch_row(case, "seed 1", "simple", {**seconds, "ours": 4e-4}, "torch.bmm", 1.0, 1e-3)
    ((_, _, cells),) = tables({"suite": "stacks", "rows": [slow, known]})
    assert [row[0] for row in cells] == [case.name, f"worst: {case.name}", "1 random, bfloat16"]
    assert [row[4] for row in cells] == ["2.00", "0.50 WRONG", "mean 0.50, under 0.9: 100 %, lowest 0.50"]
