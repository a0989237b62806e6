"""The head with 50,257 classes: the example trains, the benchmark's competitors agree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tilewise.bench import linear

EXAMPLE = Path(__file__).parents[2] / "examples" / "06_vocabulary_head.py"


def test_the_example_trains_before_and_after():
    done = subprocess.run([sys.executable, "-W", "error", str(EXAMPLE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "tilewise.torch.Linear" in done.stdout


def test_all_competitors_are_checked_and_timed():
    rows = linear.forward_and_backward((16, 24, 51), "float32", rounds=2, device="cpu")
    assert [row["kernel"] for row in rows][:3] == ["tilewise", "tilewise, aligned rows", "torch"]
    assert all(row["seconds"] > 0 and row["relative_error"] < 1e-5 for row in rows)


def test_a_wrong_candidate_raises(monkeypatch):
    from tilewise.torch import linear_layer

    right = linear_layer.linear
    monkeypatch.setattr(linear_layer, "linear", lambda *a, **how: right(*a, **how) * 1.1)
    with pytest.raises(AssertionError, match="tilewise is wrong"):
        linear.forward_and_backward((16, 24, 51), "float32", rounds=1, device="cpu")
