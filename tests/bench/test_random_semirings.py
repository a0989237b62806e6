"""`bench semirings-random` and `halves-random`: random shapes against ports and bytes, halves against float32."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from seeds import next_seed
from tilewise.backends.cpu.touch import AT_ONCE, touch_work
from tilewise.bench import random_semirings
from tilewise.bench.report import FLOORS, tables
from tilewise.bench.suites import Request, pieces
from tilewise.cli.bench import command
from tilewise.errors import UsageError


@pytest.mark.parametrize(
    ("suite", "count"),
    [pytest.param("semirings-random", len(random_semirings.CASES), marks=pytest.mark.slow), ("halves-random", 2)],
)
def test_one_shape_is_measured_and_shown(suite: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = next_seed() % 1000
    print(f"seed {seed}")
    monkeypatch.setattr(random_semirings, "LARGEST_STEPS", 2 * 10**5)
    arguments = [suite, "--device", "cpu", "--count", "1", "--seed", str(seed), "--quick"]
    done = CliRunner().invoke(command, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["seed"] == seed
    assert len(document["rows"]) == count
    key, _ = FLOORS[suite]
    assert all(0 < row[key] < 100 for row in document["rows"])
    if suite == "semirings-random":
        assert all(row["share_of_floor"] > 0.9 * row["share_of_ports"] for row in document["rows"])


def test_the_summary_counts_what_is_short_and_the_worst_come_first() -> None:
    def row(shape: list[int], ports: float, floor: float) -> dict[str, object]:
        return {"shape": shape, "semiring": "min_plus", "dtype": "float32", "kernel": "axpy",
                "share_of_ports": ports, "share_of_floor": floor}  # fmt: skip

    rows = [row([1, 2, 3], 0.5, 0.5), row([4, 5, 6], 0.8, 1.0)]
    (_, _, summary), (_, _, worst) = tables({"suite": "semirings-random", "rows": rows})
    assert summary == [["min_plus", "float32", "2", "0.632", "0.707", "1 (50 %) below 0.88", "0.50"]]
    assert worst[:1] == [["1×2×3", "min_plus float32", "axpy", "0.50", "0.50"]]
    halves = [{"shape": [1, 2, 3], "dtype": "float16", "kernel": "axpy", "over_float32": 0.9}]
    assert tables({"suite": "halves-random", "rows": halves})[0][2] == [
        ["float16", "1", "0.900", "1 (100 %) below 1.0", "0.90"]
    ]


@pytest.mark.parametrize("threads", [1, 2])
def test_touching_writes_all_of_p_and_leaves_the_rest(threads: int) -> None:
    M, N, P = np.ones((40, 64), np.float32), np.ones((64, 50), np.float32), np.ones((40, 50), np.float32)
    touch_work(M, N, P, threads)()
    assert M.all()
    assert N.all()
    assert P.ravel()[: P.size - 16 * AT_ONCE].max() == 0  # whole groups of vectors, of whatever machine


def test_a_card_is_not_what_they_measure() -> None:
    for suite in FLOORS:
        with pytest.raises(UsageError, match=f"bench {suite} measures the CPU's engine: pass --device cpu"):
            pieces(Request(suite, "cuda"))
