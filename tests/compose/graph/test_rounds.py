"""Closures in files: the same as in memory, within the budget, and cycles are named."""

from __future__ import annotations

import errno
import re

import numpy as np
import pytest

import tilewise as tw
from tilewise.cli.main import run
from tilewise.compose.graph.rounds import choose_rounds, close_file
from tilewise.scale import targets


def graph(n, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    W = np.where(rng.random((n, n)) < 4 / n, rng.random((n, n)), np.inf).astype(dtype)
    W[1, 2] = np.nan
    return W


@pytest.mark.drawn(4)
@pytest.mark.parametrize("n", [1, 63, 200, 333])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_same_as_in_memory(tmp_path, n, dtype):
    W = graph(max(n, 3), dtype)[:n, :n]
    np.save(tmp_path / "W.npy", W)
    rounds = close_file(tmp_path / "W.npy", tmp_path / "D.npy", "min_plus", 900_000 * W.itemsize // 4, base=0)
    np.testing.assert_allclose(np.load(tmp_path / "D.npy"), tw.closure(W), rtol=1e-5)
    assert rounds.count == 1 or n > 64
    assert sorted(p.name for p in tmp_path.iterdir()) == ["D.npy", "W.npy"]


def test_several_rounds_and_other_algebras(tmp_path):
    W = graph(333)
    np.save(tmp_path / "W.npy", np.asfortranarray(np.where(np.isnan(W), np.inf, W)))
    rounds = close_file(tmp_path / "W.npy", tmp_path / "D.npy", "max_min", 500_000, base=0)
    assert rounds.count > 2
    np.testing.assert_array_equal(
        np.load(tmp_path / "D.npy"), tw.closure(np.load(tmp_path / "W.npy"), semiring="max_min")
    )
    np.save(tmp_path / "B.npy", W < 0.5)
    close_file(tmp_path / "B.npy", tmp_path / "R.npy", "lor_land", 200_000, base=0)
    np.testing.assert_array_equal(np.load(tmp_path / "R.npy"), tw.closure(W < 0.5, semiring="lor_land"))


def test_a_cycle_through_two_blocks_is_refused_and_nothing_is_left(tmp_path):
    W = graph(200)
    W[10, 150], W[150, 10] = -1.0, 0.25
    np.save(tmp_path / "W.npy", W)
    with pytest.raises(tw.CycleError, match="no best paths exist"):
        close_file(tmp_path / "W.npy", tmp_path / "D.npy", "min_plus", 350_000, base=0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["W.npy"]


@pytest.mark.parametrize("memory", [1_500_000, 10**7, 10**9])
def test_the_budget_is_kept_and_fewer_rounds_need_more(memory):
    rounds = choose_rounds(1000, 4, memory)
    assert rounds.needs <= memory
    assert rounds.count * rounds.block >= 1000


def test_a_graph_of_30_000_nodes_is_planned_within_8_gb():
    rounds = choose_rounds(30_000, 4, 8 * 10**9, spare=200_000_000)
    assert rounds.needs <= 8 * 10**9
    assert rounds.predicted < 1.2 * 30_000**3 / rounds.steps


def test_the_least_that_works_works():
    with pytest.raises(tw.OutOfMemoryError, match="least that works") as caught:
        choose_rounds(5000, 4, 1000)
    least = int(re.search(r"is ([\d,]+) bytes", str(caught.value))[1].replace(",", ""))
    assert choose_rounds(5000, 4, least).needs <= least


def test_the_command(tmp_path, capsys, monkeypatch):  # the budget counts the whole process, all tests before included
    monkeypatch.chdir(tmp_path)
    np.save("W.npy", graph(150))
    assert run(["closure", "W.npy", "-o", "D.npy", "--memory", "16GB"]) == 0
    assert "rounds" in capsys.readouterr().out
    np.testing.assert_allclose(np.load("D.npy"), tw.closure(graph(150)), rtol=1e-5)
    for arguments, message in (
        (["closure", "W.npy", "--memory", "16GB"], "takes a dense GRAPH and -o"),
        (["closure", "W.npy", "-o", "E.npy", "--memory", "1kB"], "least that works"),
        (["closure", "W.npy", "-o", "E.npy", "--memory", "16GB", "--device", "cuda"], "works on the CPU"),
        (["closure", "W.npy", "-o", "E.npy", "--memory", "16GB", "--semiring", "plus_times"], "add(x, x) == x"),
    ):
        assert run(arguments) in (2, 4)
        assert message in capsys.readouterr().err
    assert run(["plan", "--closure", "--semiring", "min_plus", "--shape", "30000x30000x30000", "--memory", "8GB"]) == 0
    assert "30,000 nodes" in capsys.readouterr().out


def test_a_closure_that_fails_does_not_claim_to_keep_anything(tmp_path, monkeypatch):
    np.save(tmp_path / "W.npy", np.ones((300, 300), "float32"))
    put, seen = targets.put, []

    def full(*args):
        seen.append(1)
        if len(seen) > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        put(*args)

    monkeypatch.setattr(targets, "put", full)
    with pytest.raises(tw.FileError, match="is full") as caught:
        close_file(tmp_path / "W.npy", tmp_path / "D.npy", "min_plus", 900_000, base=0)
    assert "kept" not in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["W.npy"]
