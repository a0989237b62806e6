"""`bench groups` on a CPU: the random cases, and that each dtype is compared with its own peer."""

from __future__ import annotations

import random

from seeds import next_seed
from tilewise.bench import groups
from tilewise.bench.report import tables


def test_random_cases_have_every_dtype_and_small_sides_on_a_cpu_and_known_sides_on_a_card() -> None:
    seed = next_seed()
    print(f"seed {seed}")
    rng = random.Random(seed)
    cases = [groups.drawn(rng, on_card=False) for _ in range(300)]
    assert {case.dtype for case in cases} == set(groups.CPU_DTYPES)
    low, high = groups.CPU_SIDES
    assert all(low <= side <= high for case in cases for side in (case.k, case.n))
    assert min(case.k for case in cases) < 16
    assert min(case.n for case in cases) < 16
    assert {(case.k, case.n, case.dtype) for case in (groups.drawn(rng, on_card=True) for _ in range(300))} == {
        (k, n, "bfloat16") for k, n in groups.SIDES
    }


def test_groups_of_every_dtype_are_right_beside_their_loop() -> None:
    cases = [groups.RoutedRows(5, 40, 9, 7, "mild", dtype) for dtype in groups.CPU_DTYPES]
    rows = [row for case in cases for row in groups.on_cpu(1, case, [3, 3, 20, 39, 40], 1)]
    assert [(row["dtype"], row["right"]) for row in rows] == [(dtype, True) for dtype in groups.CPU_DTYPES]
    assert all(row["relative_error"] < (1e-2 if row["dtype"] == "bfloat16" else 1e-6) for row in rows)
    ((_, _, cells),) = tables({"suite": "groups", "rows": rows})
    peers = {row[0].rpartition(" ")[2]: row[1] for row in cells if " random, " in row[0]}
    assert peers == {row["dtype"]: row["peer"] for row in rows}
