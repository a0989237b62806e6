"""`bench semirings-random` and `halves-random`: shapes by chance against ports and bytes, halves against float32."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from seeds import next_seed
from tilewise.backends.cpu.touch import AT_ONCE, touch_work
from tilewise.bench import random_rings
from tilewise.bench.suites import pieces
from tilewise.cli.bench import command
from tilewise.errors import UsageError


@pytest.mark.parametrize(("suite", "lines"), [("semirings-random", len(random_rings.CASES)), ("halves-random", 2)])
def test_one_shape_is_measured_and_shown(suite: str, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = next_seed() % 1000
    print(f"seed {seed}")
    monkeypatch.setattr(random_rings, "LARGEST_STEPS", 2 * 10**5)
    asked = [suite, "--device", "cpu", "--count", "1", "--seed", str(seed), "--quick"]
    done = CliRunner().invoke(command, [*asked, "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["seed"] == seed
    assert len(said["rows"]) == lines
    key, _ = random_rings.BARS[suite]
    assert all(0 < row[key] < 100 for row in said["rows"])
    if suite == "semirings-random":
        assert all(row["share_of_floor"] > 0.9 * row["share_of_ports"] for row in said["rows"])


def test_the_summary_counts_what_is_short_and_the_worst_come_first() -> None:
    def row(shape: list[int], ports: float, floor: float) -> dict[str, object]:
        return {"shape": shape, "semiring": "min_plus", "dtype": "float32", "kernel": "axpy",
                "share_of_ports": ports, "share_of_floor": floor}  # fmt: skip

    rows = [row([1, 2, 3], 0.5, 0.5), row([4, 5, 6], 0.8, 1.0)]
    said = random_rings.summary("semirings-random", rows)
    assert said == [["min_plus", "float32", "2", "0.632", "0.707", "1 (50 %) below 0.88", "0.50"]]
    assert random_rings.worst("semirings-random", rows, 1) == [["1×2×3", "min_plus float32", "axpy", "0.50", "0.50"]]
    halves = [{"shape": [1, 2, 3], "dtype": "float16", "kernel": "axpy", "over_float32": 0.9}]
    assert random_rings.summary("halves-random", halves) == [["float16", "1", "0.900", "1 (100 %) below 1.0", "0.90"]]


@pytest.mark.parametrize("threads", [1, 2])
def test_touching_writes_all_of_p_and_leaves_the_rest(threads: int) -> None:
    M, N, P = np.ones((40, 64), np.float32), np.ones((64, 50), np.float32), np.ones((40, 50), np.float32)
    touch_work(M, N, P, threads)()
    assert M.all()
    assert N.all()
    assert P.ravel()[: P.size - 16 * AT_ONCE].max() == 0  # whole groups of vectors, of whatever machine


def test_a_card_is_not_what_they_measure() -> None:
    for suite in random_rings.BARS:
        with pytest.raises(UsageError, match=f"bench {suite} measures the CPU's engine: pass --device cpu"):
            pieces(suite, "cuda", (), True)
