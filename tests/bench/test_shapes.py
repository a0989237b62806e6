"""Random products on a CPU, from a seed: beside installed peers, against ports and bytes, against float32."""

from __future__ import annotations

import json
import time
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner

from seeds import next_seed
from tilewise.backends.cpu.touch import AT_ONCE, touch_work
from tilewise.bench import shapes
from tilewise.bench.report import CPU_RANDOM, tables
from tilewise.bench.suites import Request, pieces
from tilewise.cli.bench import command
from tilewise.errors import UsageError


def row(shape: list[int], dtype: str, **ratios: float) -> dict[str, object]:
    return {"shape": shape, "dtype": dtype, "kernel": "little", **ratios}


def test_shapes_depend_on_the_seed_alone_and_have_enough_steps() -> None:
    seed = next_seed()
    print(f"seed {seed}")
    drawn = shapes.draw(200, seed, shapes.MAX_STEPS)
    assert drawn == shapes.draw(200, seed, shapes.MAX_STEPS) != shapes.draw(200, seed + 1, shapes.MAX_STEPS)
    for m, k, n in drawn:
        assert shapes.MIN_STEPS <= m * k * n <= shapes.MAX_STEPS
        assert max(m, k, n) <= shapes.LARGEST
    assert min(min(shape) for shape in drawn) < 10  # thin ones are among them


def test_the_summary_counts_what_is_short_and_the_worst_come_first() -> None:
    rows = [
        row([1, 2, 3], "float32", over_openblas=2.0, over_mkl=0.8),
        row([4, 5, 6], "float32", over_openblas=0.5, over_mkl=1.25),
        row([7, 8, 9], "float64", over_openblas=1.5, cold_over_openblas=0.75),
    ]
    (_, _, summary), (_, _, worst) = tables({"suite": "cpu-random", "rows": rows})
    assert summary == [
        ["float32", "openblas", "2", "1.000", "1 (50 %)", "0.50"],
        ["float32", "mkl", "2", "1.000", "1 (50 %)", "0.80"],
        ["float64", "openblas", "1", "1.500", "0 (0 %)", "1.50"],
        ["float64", "openblas, cold", "1", "0.750", "1 (100 %)", "0.75"],
    ]
    assert worst[:2] == [["4×5×6", "float32", "little", "openblas", "0.50"],
                     ["7×8×9", "float64", "little", "openblas, cold", "0.75"]]  # fmt: skip


def test_cold_operands_are_many_and_never_the_same_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "COLD_BYTES", 2**20)
    shapes._cold_memory.cache_clear()
    try:
        for dtype in ("float32", "float64"):
            pairs = shapes.cold_operands((3, 50, 40), dtype)
            assert len(pairs) == 2**20 // np.dtype(dtype).itemsize // (50 * 43 + 64)
            assert all(M.shape == (3, 50) and N.shape == (50, 40) and N.dtype == dtype for M, N in pairs)
            places = [(x.ctypes.data, x.ctypes.data + x.nbytes) for pair in pairs for x in pair]
            assert places != sorted(places)
            assert all(end <= start for (_, end), (start, _) in pairwise(sorted(places)))
        assert shapes.cold_operands((300, 400, 500), "float32") == []
    finally:
        shapes._cold_memory.cache_clear()


def test_no_candidate_reads_operands_that_another_has_just_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """If all took the same operands at the same time, only the first would find them in no cache."""
    monkeypatch.setattr(shapes, "COLD_BYTES", 2**20)
    shapes._cold_memory.cache_clear()
    try:
        pairs, read = shapes.cold_operands((3, 50, 40), "float32"), {"matmul": [], "np": []}
        monkeypatch.setattr(shapes, "matmul", lambda M, N, out: read["matmul"].append(N.ctypes.data))
        monkeypatch.setattr(np, "matmul", lambda M, N, out: read["np"].append(N.ctypes.data))
        works = shapes._cold_works(pairs, np.empty((3, 40), "float32"), np.empty((3, 40), "float32"), None)
        for _ in pairs:
            works["tilewise"](), works["openblas"]()
        assert sorted(read["matmul"]) == sorted(read["np"]) == sorted(N.ctypes.data for _, N in pairs)
        apart = [(read["np"].index(place) - number) % len(pairs) for number, place in enumerate(read["matmul"])]
        assert min(apart) >= len(pairs) // 3
    finally:
        shapes._cold_memory.cache_clear()


def test_one_shape_is_measured_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    seed = next_seed() % 1000
    print(f"seed {seed}")
    monkeypatch.setattr(shapes, "MAX_STEPS", 2 * shapes.MIN_STEPS)
    arguments = ["cpu-random", "--device", "cpu", "--count", "1", "--seed", str(seed), "--quick"]
    done = CliRunner().invoke(command, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["rows"]
    assert [row["dtype"] for row in rows] == ["float32", "float64"]
    assert all(row["over_openblas"] > 0 and row["relative_error"] < 1e-4 for row in rows)
    assert all(row["cold_over_openblas"] > 0 for row in rows)


@pytest.mark.slow  # measures twice; test_one_shape_is_measured_and_shown measures once
def test_without_a_seed_the_clock_gives_one_and_it_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["cpu-random", "--device", "cpu", "--count", "1", "--quick", "--json"]
    monkeypatch.setattr(shapes, "MAX_STEPS", 2 * shapes.MIN_STEPS)
    done = CliRunner().invoke(command, arguments)
    document = json.loads(done.stdout)
    assert abs(document["seed"] - time.time()) < 600
    assert f"seed: {document['seed']}" in done.stderr
    again = json.loads(CliRunner().invoke(command, [*arguments, "--seed", str(document["seed"])]).stdout)
    assert [row["shape"] for row in again["rows"]] == [row["shape"] for row in document["rows"]]


@pytest.mark.parametrize(
    ("suite", "count"),
    [pytest.param("semirings-random", len(shapes.SEMIRINGS), marks=pytest.mark.slow), ("halves-random", 2)],
)
def test_one_shape_is_measured_against_its_limit(suite: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = next_seed() % 1000
    print(f"seed {seed}")
    monkeypatch.setattr(shapes, "LARGEST_STEPS", 2 * 10**5)
    arguments = [suite, "--device", "cpu", "--count", "1", "--seed", str(seed), "--quick"]
    done = CliRunner().invoke(command, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["seed"] == seed
    assert len(document["rows"]) == count
    semirings = suite == "semirings-random"
    assert all(0 < row["share_of_floor" if semirings else "over_float32"] < 100 for row in document["rows"])
    if semirings:
        assert all(row["share_of_floor"] > 0.9 * row["share_of_ports"] for row in document["rows"])


def test_the_summary_of_limits_counts_what_is_short() -> None:
    def row(shape: list[int], ports: float, floor: float) -> dict[str, object]:
        return {"shape": shape, "semiring": "min_plus", "dtype": "float32", "kernel": "axpy",
                "share_of_ports": ports, "share_of_floor": floor}  # fmt: skip

    rows = [row([1, 2, 3], 0.5, 0.5), row([4, 5, 6], 0.8, 1.0)]
    (_, _, summary), (_, _, worst) = tables({"suite": "semirings-random", "rows": rows})
    assert summary == [
        ["min_plus float32", "the ports", "2", "0.632", "2 (100 %)", "0.50"],
        ["min_plus float32", "the floor", "2", "0.707", "1 (50 %) below 0.88", "0.50"],
    ]
    assert worst[0] == ["1×2×3", "min_plus float32", "axpy", "the ports", "0.50"]
    halves = [{"shape": [1, 2, 3], "dtype": "float16", "kernel": "axpy", "over_float32": 0.95}]
    assert tables({"suite": "halves-random", "rows": halves})[0][2] == [
        ["float16", "float32", "1", "0.950", "1 (100 %) below 1.0", "0.95"]
    ]


@pytest.mark.parametrize("threads", [1, 2])
def test_touching_writes_all_of_p_and_leaves_the_rest(threads: int) -> None:
    M, N, P = np.ones((40, 64), np.float32), np.ones((64, 50), np.float32), np.ones((40, 50), np.float32)
    touch_work(M, N, P, threads)()
    assert M.all()
    assert N.all()
    assert P.ravel()[: P.size - 16 * AT_ONCE].max() == 0  # whole groups of vectors, of whatever machine


def test_a_card_is_not_what_they_measure() -> None:
    for suite in CPU_RANDOM:
        with pytest.raises(UsageError, match=f"bench {suite} measures the CPU's engine: pass --device cpu"):
            pieces(Request(suite, "cuda"))
